"""Nine tenths of what a consumer of cold data got came from a device or the store."""

from results.contract.relocation import ColdRead, Relocation
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion, has_relocation
from results.criteria.findings import finding
from results.criteria.foreign_traffic import unless_shared
from results.criteria.measures import MoveMeasures
from results.criteria.quantities import percent, size
from results.criteria.relocation_measures import NOTHING
from results.criteria.run_view import RunView

COLD_LEAST = 0.9
"""Share of what was consumed that must have come from a device or the store: less, and a cache was measured."""


def read_bytes(asked: Relocation, cold: ColdRead, measures: MoveMeasures) -> float | None:
    """Return what came from where cold data lies, beyond what the move itself reads there. None: not known."""
    found = measures.relocation or NOTHING
    if cold.source == "device":
        # What moves is read from the same devices, once at most: as if all of it had been.
        device, moved = found.device_bytes, asked.local_bytes
        return None if device is None or moved is None else device - moved
    return found.store_bytes


def _judge(run: RunView) -> Finding:
    """Return the finding, left open where less came from there: a cache was measured."""
    cold, share = run.relocation.cold, None
    expected = f"{percent(COLD_LEAST)} or more from the device or the object store"
    verdict: Verdict = "inconclusive"
    read = None if cold is None else read_bytes(run.relocation, cold, run.measures)
    if cold is None or cold.consumed_bytes <= 0:
        why = "no consumer read from the beginning while data moved"
    elif cold.evicted_bytes is None:
        why = "the runner did not evict the page cache before the consumer read"
    elif read is None:
        why = f"the bytes that came from the {cold.source} were not counted while the consumer read"
    else:
        share, expected = read / cold.consumed_bytes, f"{percent(COLD_LEAST)} or more read from the {cold.source}"
        why = f"{size(read)} read from the {cold.source}, {size(cold.consumed_bytes)} consumed"
        if share >= COLD_LEAST:
            verdict = "pass"
        else:
            why += ": a cache was measured"
    found = finding(
        "cold-read",
        expected,
        verdict,
        why,
        observed=share,
        unit="fraction",
        series=("io.read_bytes", "nic.tx.bytes", "manifest.relocation"),
    )
    return unless_shared(run, found) if cold is not None and cold.source == "store" else found


CRITERION = Criterion(
    name="cold-read",
    title="The read was cold",
    section=FACTS,
    judge=lambda run: [_judge(run)],
    needs=has_relocation,
    catches="A cold read that a cache answered.",
)
