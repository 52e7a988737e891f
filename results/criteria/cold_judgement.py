"""Was a cold read cold? What was read from devices, or from the store, against what the consumer got. Pure."""

from collections.abc import Iterable

from results.criteria.frame import criterion
from results.criteria.measures import MoveMeasures
from results.criteria.relocation_measures import NOTHING
from results.criteria.words import percent, size
from results.manifest import Manifest
from results.relocation import ColdRead, Relocation
from results.verdict import Criterion, Verdict

COLD_LEAST = 0.9
"""Share of what was consumed that must have come from a device or the store: less, and a cache was measured."""


def read_bytes(asked: Relocation, cold: ColdRead, measures: MoveMeasures) -> float | None:
    """What came from where cold data lies: devices of the brokers, or the stores' NICs, beyond the rate before."""
    found = measures.relocation or NOTHING
    if cold.source == "device":
        return found.device_bytes
    total = 0.0
    for nic in found.nics:
        if nic.host in asked.stores and nic.direction == "transmit":
            if nic.bytes is None or nic.covered_s is None or nic.before_bytes_per_s is None:
                return None
            total += nic.bytes - nic.before_bytes_per_s * nic.covered_s
    return total if asked.stores else None


def judge_cold(_manifest: Manifest, asked: Relocation, measures: MoveMeasures) -> Iterable[Criterion]:
    """`cold-read`: at least nine tenths came from a device or the store; and `cold-consumed`: it was read to its end."""
    cold = asked.cold
    if cold is None:
        yield criterion(
            "cold-read", "a consumer from the beginning", "inconclusive", "nobody read", observed=None, series=()
        )
        return
    read, verdict, share = read_bytes(asked, cold, measures), "inconclusive", None
    checked: Verdict = "inconclusive"
    if cold.consumed_bytes <= 0:
        why = "the consumer read nothing while data moved"
    elif cold.evicted_bytes is None:
        why = "the page cache was not evicted before"
    elif read is None:
        why = f"what the {cold.source} read was not counted from the move's start past its end"
    else:
        share = read / cold.consumed_bytes
        checked = "pass" if share >= COLD_LEAST else verdict  # warm is no finding: another run is needed
        told = f"{size(read)} read from the {cold.source}, {size(cold.consumed_bytes)} consumed"
        why = told if checked == "pass" else f"{told}: a cache was measured"
    yield criterion(
        "cold-read",
        f"{percent(COLD_LEAST)} of what was consumed, or more, read from the {cold.source}",
        checked,
        why,
        observed=share,
        unit="fraction",
        series=("io.read_bytes", "nic.tx.bytes", "manifest.relocation"),
    )
