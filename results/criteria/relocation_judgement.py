"""Judgement of a move that no quota holds back: what it copied, how long it took beside the formula, who saw it.

Bytes are of NICs, counted from outside the brokers. What is expected comes from what lay on disks when the move began,
from the calibration and from the load before it. Pure.
"""

from collections.abc import Callable, Iterable, Sequence

from results.contract.manifest import Manifest
from results.contract.relocation import LOCAL_MOST, Relocation, Sent, formula_seconds
from results.contract.verdict import Direction, Finding, Verdict
from results.criteria.cold_judgement import judge_cold
from results.criteria.fact_judgement import judge_facts
from results.criteria.frame import criterion, not_judged
from results.criteria.ground_judgement import machine_idle, nics_as_declared
from results.criteria.handover_judgement import judge_handover
from results.criteria.live_judgement import judge_live_records, judge_load_held
from results.criteria.log_judgement import judge_logs
from results.criteria.measures import GAP_S, MoveMeasures
from results.criteria.rate_judgement import CONSERVATION_TOLERANCE
from results.criteria.relocated import P99_BACK, NicBytes
from results.criteria.relocation_measures import LOAD_WINDOW_S, NOTHING
from results.criteria.words import percent, size

FACTS = ("records-intact", "leaders-as-planned", "move-done")
"""Of the facts of any move those that one without a throttle has."""
NIC_FULL = 0.85
"""From this mean share of its busiest NIC on a move is called bound by it: below it something else took the time."""
WRITTEN_S = 1.0
"""Clients that had to wait make up for it afterwards: what they write may be off by that much at the move's ends."""
Part = Callable[[Manifest, Relocation, MoveMeasures], Iterable[Finding]]


def copied_bytes(asked: Relocation, measures: MoveMeasures) -> float | None:
    """NIC bytes that brokers sent each other beyond what the load explains.

    What brokers received, less what the stores sent them, less both at the rates before the move. None when a part is
    not known.
    """
    total = 0.0
    for nic in (measures.relocation or NOTHING).nics:
        sign = 1 if (nic.host in asked.brokers and nic.direction == "receive") else 0
        sign = -1 if (nic.host in asked.stores and nic.direction == "transmit") else sign
        if not sign:
            continue
        if nic.bytes is None or nic.covered_s is None or nic.before_bytes_per_s is None:
            return None
        total += sign * (nic.bytes - nic.before_bytes_per_s * nic.covered_s)
    return total


def judge_copied(_manifest: Manifest, asked: Relocation, measures: MoveMeasures) -> list[Finding]:
    """`copied-bytes`: what crossed brokers' NICs is what lay on disks, no more; of a log on disk no less either."""
    verdict: Verdict = "inconclusive"
    observed, local, f = copied_bytes(asked, measures), asked.local_bytes, asked.f
    nics = (measures.relocation or NOTHING).nics
    expected, low, high = "what lay on the leaders' disks, times the overhead of the wire", 0.0, 0.0
    if local is None:
        why = "what lay on the leaders' disks when the move began was not seen"
    elif f is None:
        why = "the calibration gave no overhead of the wire"
    elif observed is None or (gap := _gap(nics, asked)):
        why = gap if observed is not None else "a NIC's bytes are not known from before the move past its end"
    else:
        covered_s = max(nic.covered_s or 0.0 for nic in nics)
        low, high = local * f, (local + asked.written_bytes_per_s * covered_s) * f
        slack = CONSERVATION_TOLERANCE * high + asked.written_bytes_per_s * f * WRITTEN_S
        low, high = (low - slack if asked.storage == "disk" else 0.0), high + slack
        expected = f"{size(low)} to {size(high)}: {size(local)} on disks × {f:.3f}, and what is written meanwhile"
        verdict = "pass" if low <= observed <= high or (observed < 0 and asked.storage != "disk") else "fail"
        share = f", {percent(observed / (asked.total_bytes * f))} of the whole log" if asked.total_bytes else ""
        why = f"{size(observed)} between brokers{share}"
    return [
        criterion(
            "copied-bytes",
            expected,
            verdict,
            why,
            observed=observed,
            unit="bytes",
            tolerance=f"± {percent(CONSERVATION_TOLERANCE)}, and {WRITTEN_S:g} s of what is written",
            series=("nic.rx.bytes", "nic.tx.bytes", "manifest.relocation"),
        )
    ]


def judge_local(_manifest: Manifest, asked: Relocation, _measures: MoveMeasures) -> list[Finding]:
    """`tiered-local-fraction`: of tiered logs, under a tenth lies on disk when the move begins."""
    if asked.storage != "tiered":
        return []
    local, total = asked.local_bytes, asked.total_bytes
    share = local / total if local is not None and total else None
    verdict: Verdict = "inconclusive" if share is None else "pass" if share < LOCAL_MOST else "fail"
    return [
        criterion(
            "tiered-local-fraction",
            f"less than {percent(LOCAL_MOST)} of the log on disk",
            verdict,
            "not seen" if share is None else f"{size(local or 0)} of {size(total)} on the leaders' disks",
            observed=share,
            unit="fraction",
            series=("log.bytes", "manifest.relocation"),
        )
    ]


def formula(manifest: Manifest, asked: Relocation, *, whole: bool) -> float | None:
    """Log size ÷ NIC, with the whole logs or with what lay on disks; None when a part is not known."""
    carries: dict[tuple[str, Direction], float | None] = {
        (nic.host, nic.direction): nic.payload_bytes_per_s for nic in manifest.nics
    }
    sizes: list[tuple[Sent, int]] = []
    for sent in asked.sent:
        found = sent.total_bytes if whole else sent.local_bytes
        if found is None:
            return None
        sizes.append((sent, found))
    return formula_seconds(sizes, carries)


def nic_share(manifest: Manifest, measures: MoveMeasures) -> float | None:
    """The mean of the busiest NIC over the move, as a share of what it was measured to carry."""
    carries = {(nic.host, nic.direction): nic.payload_bytes_per_s for nic in manifest.nics}
    found = [
        use.mean_bytes_per_s / rate
        for use in (measures.burden.nics if measures.burden else ())
        if use.mean_bytes_per_s is not None and (rate := carries.get((use.host, use.direction)))
    ]
    return max(found, default=None)


def judge_duration(manifest: Manifest, asked: Relocation, measures: MoveMeasures) -> list[Finding]:
    """`duration-formula`: on disk as long as the formula, when the NIC binds; in S3 less than the formula's time.

    Nothing is sooner than what lay on disks can have crossed the NIC.
    """
    verdict: Verdict = "inconclusive"
    seconds, whole, least = (
        measures.done_s,
        formula(manifest, asked, whole=True),
        formula(manifest, asked, whole=False),
    )
    share, expected = nic_share(manifest, measures), "log size ÷ NIC"
    if seconds is None:
        why = "the move was not seen to be done"
    elif whole is None or least is None:
        why = "a NIC or a log was not measured: there is no formula"
    else:
        told = f"{seconds:.1f} s; the whole log ÷ NIC is {whole:.1f} s, what lay on disks {least:.1f} s"
        low = least * (1 - CONSERVATION_TOLERANCE)
        if asked.storage == "disk":
            expected = f"{whole:.1f} s, or more where clients use the NIC as well"
            if seconds < low:
                verdict, why = "fail", f"{told}: that is faster than the NIC"
            elif share is None or share < NIC_FULL:
                seen = "not known" if share is None else f"used to {percent(share)}"
                why = f"{told}; the busiest NIC was {seen}: it is not what bound, so the formula does not apply"
            else:
                verdict, why = "pass", f"{told}; the busiest NIC was used to {percent(share)}"
        else:
            expected = f"{least:.1f} s or more, and less than {whole:.1f} s"
            verdict = "pass" if low <= seconds < whole else "fail"
            why = told
    return [
        criterion(
            "duration-formula",
            expected,
            verdict,
            why,
            observed=seconds,
            unit="s",
            tolerance=f"- {percent(CONSERVATION_TOLERANCE)}",
            series=("events", "manifest.nics", "manifest.relocation"),
        )
    ]


def judge_requests(_manifest: Manifest, asked: Relocation, measures: MoveMeasures) -> list[Finding]:
    """`store-requests`: the store was asked all the time; a new broker reads at least once for each partition.

    Whoever gets a replica of a log whose beginning is in the store needs its leader epochs from there, or its streams.
    """
    if not asked.stores:
        return []
    found = measures.relocation or NOTHING
    reads = None if found.requests is None else sum(r.count for r in found.requests if _reads(r.operation))
    verdict: Verdict = "inconclusive"
    least = 0 if asked.storage == "disk" else asked.partitions
    if found.requests is None or reads is None or found.requests_gap_s is None:
        why = "the store's requests were not counted from the move's start past its end"
    elif found.requests_gap_s > GAP_S:
        why = f"the store was not asked for its requests for {found.requests_gap_s:.1f} s"
    else:
        verdict = "pass" if reads >= least else "fail"
        why = ", ".join(f"{r.count:g} {r.operation}" for r in found.requests) or "no request at all"
    return [
        criterion(
            "store-requests",
            f"counted all the time; {least} reads or more" if least else "counted all the time",
            verdict,
            why,
            observed=reads if verdict != "inconclusive" else None,
            unit="reads",
            series=("s3.requests",),
        )
    ]


def _reads(operation: str) -> bool:
    return operation.lower().startswith(("get", "head"))


def judge_back(_manifest: Manifest, _asked: Relocation, measures: MoveMeasures) -> list[Finding]:
    """`p99-recovery`: the 99th percentile of acknowledgements is seen to be again what it was before."""
    found = measures.relocation or NOTHING
    most = f"{P99_BACK * (found.p99_before_us or 0.0) / 1000:.1f} ms"
    verdict: Verdict = "inconclusive"
    if found.p99_before_us is None:
        why = "no acknowledgements were seen before the move"
    elif found.p99_back_s is None:
        why = f"it was still above {most} when the load was stopped"
    else:
        verdict, why = "pass", f"no more above {most}, {P99_BACK:g} times the highest before the move"
    return [
        criterion(
            "p99-recovery",
            f"at most {P99_BACK:g} times the highest before the move, in any 5 s",
            verdict,
            why,
            observed=found.p99_back_s,
            unit="s",
            series=("client.produce.latency",),
        )
    ]


def _gap(nics: Sequence[NicBytes], asked: Relocation) -> str:
    for nic in nics:
        if nic.longest_gap_s is None or nic.longest_gap_s > GAP_S:
            return f"the NIC of {nic.host} was not read for {nic.longest_gap_s or 0.0:.1f} s"
    missing = {*asked.brokers, *asked.stores} - {nic.host for nic in nics}
    return f"the NIC of {sorted(missing)[0]} was not read" if missing else ""


def relocation_judged_by(*parts: Part) -> Callable[[Manifest, MoveMeasures], list[Finding]]:
    """A judgement from its parts, which need firm ground; facts are judged in any case."""

    def judge(manifest: Manifest, measures: MoveMeasures) -> list[Finding]:
        asked = manifest.relocation
        if asked is None:
            raise ValueError(f"run {manifest.run_id}: its manifest has no relocation to judge")
        ground = [*nics_as_declared(manifest.nics, (*asked.brokers, *asked.stores))]
        ground += [machine_idle(measures.load, LOAD_WINDOW_S)]
        ground += judge_load_held(manifest.facts.live) if asked.written_bytes_per_s else []
        found = [criterion for part in parts for criterion in part(manifest, asked, measures)]
        shaky = [each for each in ground if each.verdict == "inconclusive"]
        # A slow machine makes a move longer, and no byte more: bytes and counts hold on any ground.
        found = [not_judged(c, shaky) if shaky and c.name in ("duration-formula", "p99-recovery") else c for c in found]
        facts = [each for each in judge_facts(manifest.facts) if each.name in FACTS]
        facts += judge_live_records(manifest.facts.live) if asked.written_bytes_per_s else []
        facts += judge_handover(manifest.facts.handover) if asked.storage == "automq" else []
        return [*found, *facts, *judge_logs(manifest.facts.logs, asked.brokers), *ground]

    return judge


REASSIGN: tuple[Part, ...] = (judge_local, judge_copied, judge_duration, judge_requests)
SCALE: tuple[Part, ...] = (judge_local, judge_copied, judge_requests, judge_back)
COLD: tuple[Part, ...] = (judge_local, judge_cold, judge_requests)
