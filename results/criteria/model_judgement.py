"""Criteria about the model: how long the move took, which broker and direction bound, the quota or the NIC."""

import math
from collections.abc import Sequence

from results.contract.manifest import Expected, Move, NicMeasurement
from results.contract.verdict import Finding, Verdict
from results.criteria.frame import criterion, of_end
from results.criteria.measures import HostRates, MoveMeasures, NicRate
from results.criteria.model import TIE, binding_ends
from results.criteria.unseen import gap_words
from results.criteria.words import percent, rate

DURATION_TOLERANCE = 0.10
NIC_LOWEST, NIC_HIGHEST = 0.95, 1.02
QUOTA_LEAST = 0.95
"""Part of the quota from which on it is the quota that binds."""


def judge_duration(measures: MoveMeasures, move: Move) -> list[Finding]:
    """The move took as long as the model says. Nothing is judged of Kafka's own fetch settings, or without a model."""
    if move.fetch != "tuned" or not move.expected:
        return []
    model_s, moved_s = move.model_seconds, measures.moved_s
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if model_s is None:
        why = f"there is no prediction: {move.model_why or 'the run did not say why'}"
    elif not math.isfinite(model_s) or model_s <= 0:
        why = "the model says that the move never ends"
    elif short := short_words(model_s, move):
        why = short
    elif moved_s is None or measures.done_s is None:
        why = "the move was not seen to be done"
    else:
        observed = moved_s / model_s
        verdict = "pass" if abs(observed - 1) <= DURATION_TOLERANCE else "fail"
        why = f"{moved_s:.1f} s, predicted {model_s:.1f} s; {kip73_words(measures)}"
    return [
        criterion(
            "duration-model",
            "most of bytes ÷ (quota - listed keep-up) over brokers and directions"
            + (f": {model_s:.1f} s" if model_s is not None else ""),
            verdict,
            why,
            observed=observed,
            unit="of the prediction",
            tolerance=f"± {percent(DURATION_TOLERANCE)}",
            series=("log.bytes", "move.in_flight", "manifest.move.expected"),
        )
    ]


def short_words(model_s: float, move: Move) -> str | None:
    """Why the quota does not tell how long a move takes: it holds over its window, and this one ends within it."""
    if model_s >= move.window_s:
        return None
    return f"the model says {model_s:.1f} s: the quota holds over {move.window_s:g} s, not over less"


def kip73_words(measures: MoveMeasures) -> str:
    """KIP-73's own estimate, and by how much it is wrong."""
    if not math.isfinite(measures.kip73_s) or measures.kip73_s <= 0:
        return "KIP-73's MoveTime has no value here"
    error = "" if measures.moved_s is None else f", wrong by {(measures.kip73_s / measures.moved_s - 1) * 100:+.1f} %"
    return f"KIP-73's MoveTime is {measures.kip73_s:.1f} s{error}"


def judge_binding(measures: MoveMeasures, move: Move) -> list[Finding]:
    """The broker and direction that came nearest to the quota is the one that the model says."""
    if move.fetch != "tuned" or not move.expected:
        return []
    return [_binding(measures, move)]


def _binding(measures: MoveMeasures, move: Move) -> Finding:
    predicted = binding_ends(move, move.quota_bytes_per_s)
    rates = {(r.host, r.direction): r for r in measures.rates}
    carried = {(r.host, r.direction): r.steady_bytes_per_s for r in measures.rates if r.steady_bytes_per_s is not None}
    missing = [f"{e.host} {e.direction}" for e in move.expected if e.bytes and (e.host, e.direction) not in carried]
    gaps = [gap for r in rates.values() if (gap := gap_words(r.longest_gap_s))]
    verdict: Verdict = "inconclusive"
    observed: str | None = None
    if not predicted or missing or gaps:
        few = f"the steady part of {', '.join(missing)} has no whole window of {move.window_s:g} s"
        why = gaps[0] if gaps else few if missing else "the model names none"
    else:
        nearest = max(carried, key=lambda end: carried[end])
        # An end that carries as much as the nearest but for what was under way is as near as that.
        near = {end for end, mean in carried.items() if mean >= (1 - TIE) * carried[nearest]}
        verdict = "pass" if near & predicted else "fail"
        observed = " ".join(nearest)
        shares = ", ".join(
            f"{host} {way} {mean / move.quota_bytes_per_s:.3f}" for (host, way), mean in sorted(carried.items())
        )
        why = f"steady, of the quota: {shares}"
    return criterion(
        "bottleneck-as-modelled",
        " or ".join(" ".join(end) for end in sorted(predicted)) + " comes nearest to the quota",
        verdict,
        why,
        observed=observed,
        tolerance=f"within {percent(TIE)} is as near",
        series=("log.bytes", "manifest.move.expected"),
    )


def judge_nic_bound(measures: MoveMeasures, move: Move, nics: Sequence[NicMeasurement]) -> list[Finding]:
    """Where a quota lies above what a NIC carries, the slowest NIC's rate is seen, and the quota is not reached."""
    needs = {(e.host, e.direction): _nic_seconds(e, nics) for e in move.expected if e.bytes}
    ends = {end for end, seconds in needs.items() if seconds >= (1 - TIE) * max(needs.values())}
    found = [_nic_bound(n, _rates_of(n, measures), move, nics) for n in measures.nics if (n.host, n.direction) in ends]
    if found:
        return found
    why = "no move.started was recorded" if measures.started_us is None else "the model names no busiest NIC"
    return [criterion("nic-bound", "the NIC's rate", "inconclusive", why, observed=None, series=("nic.tx.bytes",))]


def _nic_seconds(expected: Expected, nics: Sequence[NicMeasurement]) -> float:
    """How long the NIC needs there; infinite when it was not measured, so that it is looked at."""
    measured = [n.payload_bytes_per_s for n in nics if (n.host, n.direction) == (expected.host, expected.direction)]
    known = sum(p for p in measured if p is not None)
    return expected.bytes / known if known > 0 and None not in measured else math.inf


def _rates_of(nic: NicRate, measures: MoveMeasures) -> HostRates | None:
    return next((r for r in measures.rates if (r.host, r.direction) == (nic.host, nic.direction)), None)


def _nic_bound(nic: NicRate, rates: HostRates | None, move: Move, nics: Sequence[NicMeasurement]) -> Finding:
    measured = [n.payload_bytes_per_s for n in nics if (n.host, n.direction) == (nic.host, nic.direction)]
    known = [p for p in measured if p is not None]
    carried = nic.payload_bytes_per_s
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if not known or len(known) < len(measured):
        why = "the NIC was not measured before the move"
    elif gap := gap_words(None if rates is None else rates.longest_gap_s):
        why = gap
    elif carried is None or rates is None or rates.steady is None or nic.seconds < move.window_s:
        why = f"the steady part is {nic.seconds:.1f} s; {move.window_s:g} s are needed"
    else:
        observed = carried / sum(known)
        of_quota = rates.steady.mean_bytes_per_s / move.quota_bytes_per_s
        is_nic = NIC_LOWEST <= observed <= NIC_HIGHEST
        bound = "the NIC" if is_nic else "the quota" if of_quota >= QUOTA_LEAST else "neither"
        verdict = "pass" if is_nic and of_quota < QUOTA_LEAST else "fail"
        why = (
            f"{bound} bound: {rate(carried)} of payload is {observed:.3f} of what the NIC was measured to carry, "
            f"listed bytes are {of_quota:.3f} of the quota"
        )
    return of_end(
        "nic-bound",
        nic,
        "the payload rate that was measured before the move" + (f", {rate(sum(known))}" if known else ""),
        verdict,
        why,
        observed=observed,
        unit="of the NIC",
        tolerance=f"{NIC_LOWEST} to {NIC_HIGHEST}",
        series=("nic.tx.bytes" if nic.direction == "transmit" else "nic.rx.bytes", "log.bytes", "manifest.nics"),
    )
