"""The report of a move that no quota held back: its time and the formula's, its bytes, the clients' view, requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from results.contract.manifest import Manifest
from results.contract.relocation import CALM, Membership, Relocation
from results.contract.texts import plural
from results.contract.verdict import Finding
from results.criteria.catalogue.handover import longest_pause, partitions_per_s
from results.criteria.measures import MoveMeasures
from results.criteria.quantities import size
from results.criteria.relocation_measures import NOTHING, copied_bytes, formula, uploaded_bytes
from results.render import NOTHING as DASH
from results.report import traffic

WIDTH, ROW, LEFT, RIGHT = 900.0, 30, 240, 90
STORED = {
    "disk": "Apache Kafka, logs on disk",
    "tiered": "Apache Kafka, tiered storage (KIP-405)",
    "automq": "AutoMQ",
}
"""What is called what: tiered storage is never called AutoMQ."""


@dataclass(frozen=True, slots=True)
class DurationBar:
    """A length of time in the picture; `width` in its units."""

    name: str
    kind: str
    y: int
    width: float
    text: str


def render_relocation(
    manifest: Manifest, asked: Relocation, criteria: Sequence[Finding], measures: MoveMeasures
) -> dict[str, Any]:
    """Return what the template is filled with."""
    rows = bars(manifest, asked, measures)
    return {
        "stored": STORED[asked.storage],
        "answer": answer(criteria, asked, measures),
        "table": article(manifest, asked, measures),
        "nics": nic_rows(measures),
        "requests": [(r.operation, f"{r.count:.0f}") for r in (measures.relocation or NOTHING).requests or ()],
        "bars": rows,
        "width": WIDTH,
        "left": LEFT,
        "height": ROW * len(rows) + 8,
        "clients": traffic.client_rows(measures.clients),
        "load": traffic.load_rows(manifest.facts.live),
    }


def answer(criteria: Sequence[Finding], asked: Relocation, measures: MoveMeasures) -> str:
    """Return the run in one sentence."""
    what = f"{plural(asked.partitions, 'partition')}, {size(asked.total_bytes)}"
    took = "not seen to arrive" if measures.done_s is None else f"moved in {measures.done_s:.1f} s"
    wrong = sorted((c for c in criteria if c.verdict != "pass"), key=lambda c: c.verdict != "fail")
    first = f" First of {len(wrong)} that did not pass: {wrong[0].name}, {wrong[0].why}." if wrong else ""
    return f"{STORED[asked.storage]}: {what}, {took}.{first}"


def article(manifest: Manifest, asked: Relocation, measures: MoveMeasures) -> list[tuple[str, str]]:
    """Return the article's table, of this run: names and values."""
    whole, least = formula(manifest, asked, whole=True), formula(manifest, asked, whole=False)
    copied, found = copied_bytes(asked, measures), measures.relocation or NOTHING
    before, during = measures.seen_by("produce", "before"), measures.seen_by("produce", "during")
    uploaded = uploaded_bytes(asked, measures)
    requests = None if found.requests is None else sum(r.count for r in found.requests)
    cores, busy = manifest.machine.cores, measures.load.busy_mean
    return [
        ("Partitions", f"{asked.partitions}"),
        ("Log, all of it", size(asked.total_bytes)),
        ("Of it on disk", DASH if asked.local_bytes is None else size(asked.local_bytes)),
        ("Seconds", _seconds(measures.done_s)),
        ("Log size ÷ NIC", _seconds(whole)),
        ("What lay on disk ÷ NIC", _seconds(least)),
        ("Bytes between brokers, beyond the load's", DASH if copied is None else size(copied)),
        ("Uploaded to the object store, beyond the load's", DASH if uploaded is None else size(uploaded)),
        ("99 % of acknowledgements, before", traffic.latency(before.p99_us if before else None)),
        ("99 % of acknowledgements, during", traffic.latency(during.p99_us if during else None)),
        ("Longest wait for an acknowledgement", traffic.latency(found.longest_ack_us)),
        ("99 % as before again after", _seconds(found.p99_back_s)),
        ("Cores busy during the move", DASH if busy is None else f"{busy * cores:.1f} of {cores}"),
        *_membership(asked, measures),
        *_handed_over(manifest),
        ("Requests to the object store", DASH if requests is None else f"{requests:.0f}"),
    ]


WORDS = {
    "provisioned": "container and links made",
    "started": "its process started",
    "registered": "registered, and answers",
    CALM: "the machine was calm",
    "drained": "the replicas of internal topics moved",
    "stopped": "stopped",
    "unregistered": "unregistered",
    "removed": "container removed",
}


def _membership(asked: Relocation, measures: MoveMeasures) -> list[tuple[str, str]]:
    """Return the parts of the time in which a broker joined or left; none where none did."""
    member = asked.membership
    if member is None:
        return []
    rows, since = [], member.asked_us
    for step in member.steps:
        rows.append((f"{member.host}: {WORDS.get(step.name, step.name)} after", f"{(step.ts_us - since) / 1e6:.2f} s"))
        since = step.ts_us
    balanced = _balanced_s(asked, measures)
    if balanced is not None:
        until = "every broker has its share" if member.change == "joined" else "it is gone"
        rows.append((f"From the command until {until}", f"{balanced:.1f} s"))
    return rows


def _calm_s(member: Membership) -> float:
    """Return the seconds for which a new broker waited for a calm machine; 0 without such a step."""
    total_us, since = 0, member.asked_us
    for step in member.steps:
        total_us += step.ts_us - since if step.name == CALM else 0
        since = step.ts_us
    return total_us / 1e6


def _balanced_s(asked: Relocation, measures: MoveMeasures) -> float | None:
    """Return the seconds from the command to add or remove a broker until the move was done, or the broker gone.

    It is the sum of the parts. The wait for a calm machine does not count, nor what the runner does between the move
    and the other parts: it reads counters, commits offsets, and lets the probe of a handover write for some seconds.
    """
    member = asked.membership
    if member is None or not member.steps or measures.done_s is None:
        return None
    return measures.done_s + (member.steps[-1].ts_us - member.asked_us) / 1e6 - _calm_s(member)


def _handed_over(manifest: Manifest) -> list[tuple[str, str]]:
    """Return figures of partitions that were handed over; none of a move that copies."""
    seen = manifest.facts.handover
    if seen is None:
        return []
    pace, pause = partitions_per_s(seen), longest_pause(seen)
    return [
        ("Partitions handed over a second, until the last was led", DASH if pace is None else f"{pace:.2f}"),
        ("Longest time without an acknowledgement", DASH if pause is None else f"{pause[0]:.3f} s, {pause[1]}"),
    ]


def nic_rows(measures: MoveMeasures) -> list[tuple[str, ...]]:
    """Return bytes of each NIC over the move, and what its load alone would have been."""
    rows: list[tuple[str, ...]] = []
    for nic in (measures.relocation or NOTHING).nics:
        usual = None
        if nic.before_bytes_per_s is not None and nic.covered_s is not None:
            usual = nic.before_bytes_per_s * nic.covered_s
        rows.append(
            (
                f"{nic.host} {nic.direction}",
                DASH if nic.bytes is None else size(nic.bytes),
                DASH if usual is None else size(usual),
                _seconds(nic.covered_s),
            )
        )
    return rows


def bars(manifest: Manifest, asked: Relocation, measures: MoveMeasures) -> list[DurationBar]:
    """Return the move's time and the formula's."""
    times = [
        ("as it was", "observed", measures.done_s),
        ("log size ÷ NIC", "formula", formula(manifest, asked, whole=True)),
    ]
    if asked.storage != "disk":
        times.append(("what lay on disk ÷ NIC", "local", formula(manifest, asked, whole=False)))
    known = [(name, kind, seconds) for name, kind, seconds in times if seconds is not None]
    longest = max((seconds for _name, _kind, seconds in known), default=0.0) or 1.0
    return [
        DurationBar(name, kind, ROW * row + 4, round((WIDTH - LEFT - RIGHT) * seconds / longest, 1), _seconds(seconds))
        for row, (name, kind, seconds) in enumerate(known)
    ]


def _seconds(seconds: float | None) -> str:
    return DASH if seconds is None else f"{seconds:.1f} s"
