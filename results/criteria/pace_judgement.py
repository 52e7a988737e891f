"""Criteria about how fast a move in steps is: its steady rate, how long it takes, and what binds.

A rest between two batches is not lost: the throttle divides by the time since the oldest of its samples *began*, so
that what was not copied in a rest may be copied afterwards. Only when that sample begins just after a rest is the rest
left out of the time. So the mean lies between the quota and the quota × (1 − rest ÷ window): `docs/throttle-bound.md`.

All of them are about moves with `batches_s`: what has none is not judged by them.
"""

import math

from results.contract.manifest import Move
from results.contract.verdict import Finding, Verdict
from results.criteria.frame import criterion
from results.criteria.measures import GAP_S, MoveMeasures
from results.criteria.model import TIE, binding_ends, carrying_all
from results.criteria.model_judgement import DURATION_TOLERANCE, kip73_words, short_words
from results.criteria.rests import LISTED, Rests
from results.criteria.unseen import gap_words
from results.criteria.window_judgement import judge_steady
from results.criteria.words import percent, size


def kept(move: Move, rests: Rests) -> float:
    """The least part of the quota that is left to a move with these rests."""
    return 1.0 - rests.mean_s / (move.window_s - move.sample_s)


def why_not(measures: MoveMeasures, move: Move) -> str | None:
    """Why the rests of a move leave its rates open; None when they do not."""
    rests = measures.rests
    if rests is None or rests.gap_s is None:
        return "nobody looked at what was listed"
    if rests.gap_s > GAP_S:
        return f"nobody looked at what was listed for {rests.gap_s:.1f} s"
    if rests.mean_s >= move.window_s - move.sample_s:
        return f"a rest is {rests.mean_s:.1f} s on average: longer than what the throttle makes up for"
    shortest = min(_copying_s(move), default=math.inf)
    if shortest < rests.mean_s:
        return f"a batch is copied in {shortest:.1f} s, and then rests {rests.mean_s:.1f} s: the quota does not decide"
    return None


def _copying_s(move: Move) -> list[float]:
    """How long each batch that copies anything takes, by the model."""
    begins = (0.0, *move.batches_s)
    return [end - begin for begin, end in zip(begins, move.batches_s, strict=False) if end > begin]


def judge_steady_in_steps(measures: MoveMeasures, move: Move) -> list[Finding]:
    """`steady-mean` where one end carries all that is copied; its least share is less by what the rests take."""
    why = why_not(measures, move)
    if why is None and not carrying_all(move):
        why = "no host carries everything: which one the quota holds back changes from batch to batch"
    if why is not None or measures.rests is None:
        return [_open("steady-mean", "steady mean close to the quota", why or "nobody looked")]
    return judge_steady(measures, move, kept=kept(move, measures.rests), only=carrying_all(move))


def judge_duration_in_steps(measures: MoveMeasures, move: Move) -> list[Finding]:
    """The move took at least what the quota asks for, and at most that and what its rests take of the quota."""
    if move.fetch != "tuned":
        return []
    least_s, moved_s, rests = move.model_seconds, measures.moved_s, measures.rests
    expected = "least: bytes ÷ quota over brokers and directions; most: batch by batch, less what its rests take"
    why = why_not(measures, move)
    if least_s is None or not math.isfinite(move.batches_s[-1]):
        why = "the model says that the move never ends"
    elif why is None:
        why = short_words(least_s, move)
    if why is not None or rests is None or least_s is None:
        return [_open("duration-model", expected, why or "nobody looked")]
    most_s = max(least_s, move.batches_s[-1] / kept(move, rests))
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if moved_s is None or measures.done_s is None:
        why = "the move was not seen to be done"
    else:
        observed = moved_s / least_s
        fits = (1 - DURATION_TOLERANCE) * least_s <= moved_s <= (1 + DURATION_TOLERANCE) * most_s
        verdict = "pass" if fits else "fail"
        why = (
            f"{moved_s:.1f} s, predicted {least_s:.1f} to {most_s:.1f} s: {len(_copying_s(move))} batches were copied, "
            f"{rests.count} rests were {rests.total_s:.1f} s, {rests.mean_s:.2f} s each; {kip73_words(measures)}"
        )
    return [
        criterion(
            "duration-model",
            f"{expected}: {least_s:.1f} to {most_s:.1f} s",
            verdict,
            why,
            observed=observed,
            unit="of the least",
            tolerance=f"- {percent(DURATION_TOLERANCE)} of the least, + {percent(DURATION_TOLERANCE)} of the most",
            series=("log.bytes", "move.in_flight", LISTED, "manifest.move.batches_s"),
        )
    ]


def judge_binding_in_steps(measures: MoveMeasures, move: Move) -> list[Finding]:
    """The end that carried most over the whole move is the one that the model says. In a batch it may be another."""
    if move.fetch != "tuned":
        return []
    expected = "the model's end carries most"
    predicted = binding_ends(move, move.quota_bytes_per_s)
    carried = {(r.host, r.direction): r.total_bytes for r in measures.rates if r.total_bytes > 0}
    gaps = [gap for r in measures.rates if (gap := gap_words(r.longest_gap_s))]
    if not predicted or not carried or gaps:
        return [
            _open(
                "bottleneck-as-modelled",
                expected,
                gaps[0] if gaps else "no listed bytes were seen" if predicted else "no model",
            )
        ]
    most = max(carried, key=lambda end: carried[end])
    near = {end for end, total in carried.items() if total >= (1 - TIE) * carried[most]}
    told = ", ".join(f"{host} {way} {size(total)}" for (host, way), total in sorted(carried.items()))
    return [
        criterion(
            "bottleneck-as-modelled",
            " or ".join(" ".join(end) for end in sorted(predicted)) + " carries most",
            "pass" if near & predicted else "fail",
            f"in all: {told}",
            observed=" ".join(most),
            tolerance=f"within {percent(TIE)} is as much",
            series=("log.bytes", "manifest.move.expected"),
        )
    ]


def _open(name: str, expected: str, why: str) -> Finding:
    return criterion(name, expected, "inconclusive", why, observed=None, series=("log.bytes", LISTED))
