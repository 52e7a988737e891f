"""Where a quota lies above what a NIC carries, the slowest NIC's rate is seen."""

import math
from collections.abc import Sequence

from results.contract.manifest import NicMeasurement
from results.contract.move import Expected, Move
from results.contract.verdict import Direction, Finding, Verdict
from results.criteria.batching import in_steps
from results.criteria.catalogue.nic_measured import NIC_HIGHEST, NIC_LOWEST
from results.criteria.criterion import RATES, Criterion
from results.criteria.findings import finding, gap_text, times_power
from results.criteria.host_rates import HostRates
from results.criteria.measures import MoveMeasures, NicPayload
from results.criteria.model import TIE
from results.criteria.quantities import NIC_BYTES, rate
from results.criteria.windows import sum_of_all

QUOTA_LEAST = 0.95
"""Part of the quota from which on it is the quota that binds: what a healthy throttle uses at least, `STEADY_LOWEST`.
`kip73-nic-bound` asks for a quota of 1.5 times the NIC, so a healthy run has at most 0.67. It decides whether a failure
names the quota; a quota that binds at less of its rate is named *neither*."""


def judge_nic_bound(measures: MoveMeasures, move: Move, nics: Sequence[NicMeasurement]) -> list[Finding]:
    """Judge whether, under a quota above what a NIC carries, the slowest NIC's rate is seen and not the quota's."""
    needs = {(e.host, e.direction): _nic_seconds(e, nics) for e in move.expected if e.bytes}
    ends = {end for end, seconds in needs.items() if seconds >= (1 - TIE) * max(needs.values())}
    rates = {(r.host, r.direction): r for r in measures.rates}
    found = [_nic_bound(n, rates.get(end), move, nics) for n in measures.nics if (end := (n.host, n.direction)) in ends]
    if found:
        return found
    why = "no move.started was recorded" if measures.started_us is None else "the model names no busiest NIC"
    return [finding("nic-bound", "the NIC's rate", "inconclusive", why, observed=None, series=("nic.tx.bytes",))]


def _nic_seconds(expected: Expected, nics: Sequence[NicMeasurement]) -> float:
    """Return how long the NIC needs there; infinite when it was not measured, so that the finding names it."""
    carries = _carries(nics, expected.host, expected.direction)
    return expected.bytes / carries if carries else math.inf


def _carries(nics: Sequence[NicMeasurement], host: str, direction: Direction) -> float | None:
    return sum_of_all([n.payload_bytes_per_s for n in nics if (n.host, n.direction) == (host, direction)])


def _nic_bound(nic: NicPayload, rates: HostRates | None, move: Move, nics: Sequence[NicMeasurement]) -> Finding:
    carried, carries = nic.payload_bytes_per_s, _carries(nics, nic.host, nic.direction)
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if carries is None:
        why = "the NIC was not measured before the move"
    elif gap := gap_text(None if rates is None else rates.longest_gap_s):
        why = gap
    elif carried is None or rates is None or rates.steady is None or nic.seconds < move.window_s:
        why = f"the steady part is {nic.seconds:.1f} s; {move.window_s:g} s are needed"
    else:
        observed = carried / carries
        of_quota = rates.steady.mean_bytes_per_s / move.quota_bytes_per_s
        is_nic = NIC_LOWEST <= observed <= NIC_HIGHEST
        bound = "the NIC" if is_nic else "the quota" if of_quota >= QUOTA_LEAST else "neither"
        verdict = "pass" if is_nic and of_quota < QUOTA_LEAST else "fail"
        why = (
            f"{bound} bound: {rate(carried)} of payload is {observed:.3f} of what the NIC was measured to carry, "
            f"throttled bytes are {of_quota:.3f} of the quota"
        )
    return finding(
        "nic-bound",
        "the payload rate that was measured before the move" + ("" if carries is None else f", {rate(carries)}"),
        verdict,
        why,
        host=nic.host,
        direction=nic.direction,
        observed=observed,
        unit="of the NIC",
        power=times_power(NIC_LOWEST / observed, "that rate, or less,") if observed else None,
        tolerance=f"{NIC_LOWEST} to {NIC_HIGHEST}",
        series=(NIC_BYTES[nic.direction], "log.bytes", "manifest.nics"),
    )


CRITERION = Criterion(
    name="nic-bound",
    title="The NIC is the bottleneck",
    section=RATES,
    judge=lambda run: judge_nic_bound(run.measures, run.move, run.manifest.nics),
    rests_on_preconditions=True,
    of_nic_bytes=True,
    skips=in_steps("a NIC rests when the steps do"),
    catches="A quota that holds back a move although it lies above the NIC.",
    smallest="5 % slower than the NIC",
)
