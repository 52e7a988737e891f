"""The move took as long as the model says."""

import math

from results.contract.move import Move
from results.contract.texts import counted
from results.contract.verdict import Finding, Power, Verdict
from results.criteria.batching import copying_s, kept, open_in_steps, why_not, without_batch_model
from results.criteria.criterion import RATES, Criterion
from results.criteria.findings import finding
from results.criteria.measures import LISTED_METRIC, MoveMeasures
from results.criteria.pace import slower_move
from results.criteria.quantities import change_percent, percent
from results.criteria.run_view import RunView

DURATION_TOLERANCE = 0.10
EDGES_S = 2.0
"""Seconds in which the quota holds back nothing: until the new replicas fetch, and until the end is read. In healthy
runs they took 0.9 to 1.8 s. Of moves shorter than 20 s that is more than a tenth."""


def judge_duration(measures: MoveMeasures, move: Move) -> list[Finding]:
    """Judge whether the move took as long as the model says.

    Nothing is judged of Kafka's own fetch settings, or without a model.
    """
    if move.fetch != "tuned" or not move.expected:
        return []
    model_s = move.model_seconds
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if model_s is None:
        why = f"there is no prediction: {move.model_why or 'the run did not say why'}"
    elif not math.isfinite(model_s) or model_s <= 0:
        why = "the model says that the move never ends"
    elif short := too_short(model_s, move) or slower_move(move):
        why = short
    else:
        verdict, observed, why = _compared(measures, model_s, model_s, f"predicted {model_s:.1f} s")
    return [
        finding(
            "duration-model",
            "most of bytes ÷ (quota - in-sync replication traffic) over brokers and directions"
            + (f": {model_s:.1f} s" if model_s is not None else ""),
            verdict,
            why,
            observed=observed,
            unit="of the prediction",
            power=_power(observed, longest_s(model_s or 0.0) / (model_s or 1.0)),
            tolerance=f"± {percent(DURATION_TOLERANCE)}, or {EDGES_S:g} s more",
            series=("log.bytes", "move.in_flight", "manifest.move.expected"),
        )
    ]


def longest_s(predicted_s: float) -> float:
    """Return the longest time of a healthy move for which so many seconds are predicted."""
    return max((1 + DURATION_TOLERANCE) * predicted_s, predicted_s + EDGES_S)


def _compared(
    measures: MoveMeasures, least_s: float, most_s: float, predicted: str
) -> tuple[Verdict, float | None, str]:
    """Return verdict, ratio and reason. A move that was not seen to be done, and watched for long enough, is late."""
    moved_s, watched_s = measures.moved_s, measures.watched_s
    if moved_s is not None and measures.done_s is not None:
        fits = (1 - DURATION_TOLERANCE) * least_s <= moved_s <= longest_s(most_s)
        why = f"{moved_s:.1f} s, {predicted}; {kip73_estimate(measures)}"
        return "pass" if fits else "fail", moved_s / least_s, why
    if watched_s is None or watched_s <= longest_s(most_s):
        return "inconclusive", None, "the move was not seen to be done"
    return "fail", watched_s / most_s, f"the move was not done after {watched_s:.1f} s, predicted {most_s:.1f} s"


def too_short(model_s: float, move: Move) -> str | None:
    """Return why the quota does not tell how long a move takes: it holds over its window, and no shorter."""
    if model_s >= move.window_s:
        return None
    return f"the model says {model_s:.1f} s: the quota holds over {move.window_s:g} s, not over less"


def kip73_estimate(measures: MoveMeasures) -> str:
    """Return KIP-73's own estimate, and by how much it is wrong."""
    if not math.isfinite(measures.kip73_s) or measures.kip73_s <= 0:
        return "KIP-73's MoveTime has no value here"
    error = "" if measures.moved_s is None else f", wrong by {change_percent(measures.kip73_s / measures.moved_s)}"
    return f"KIP-73's MoveTime is {measures.kip73_s:.1f} s{error}"


def _power(observed: float | None, most: float) -> Power | None:
    """Return the smaller change of a move's time that would have failed: how much slower, or how much faster.

    `observed` and the `most` that passes are parts of the same prediction.
    """
    if not observed:
        return None
    slower, faster = most / observed, observed / (1 - DURATION_TOLERANCE)
    text = f"would have failed from {slower:.3f} times as slow, or {faster:.3f} times as fast, on"
    return Power(min(slower, faster), "×", text)


def judge_duration_in_steps(measures: MoveMeasures, move: Move) -> list[Finding]:
    """Judge whether the move took what the quota asks for at least; at most also what its rests take of the quota."""
    if move.fetch != "tuned":
        return []
    least_s, rests = move.model_seconds, measures.rests
    expected = "least: bytes ÷ quota over brokers and directions; most: batch by batch, less what its rests take"
    why = why_not(measures, move)
    if least_s is None or not math.isfinite(move.batches_s[-1]):
        why = "the model says that the move never ends"
    elif why is None:
        why = too_short(least_s, move) or slower_move(move)
    if why or rests is None or least_s is None:
        return [open_in_steps("duration-model", expected, why or "the list of reassignments was not polled")]
    most_s = max(least_s, move.batches_s[-1] / kept(move, rests))
    predicted = (
        f"predicted {least_s:.1f} to {most_s:.1f} s: {counted(len(copying_s(move)), 'batch', 'was')} copied, "
        f"{counted(rests.count, 'rest', 'was')} {rests.total_s:.1f} s, {rests.mean_s:.2f} s each"
    )
    verdict, observed, why = _compared(measures, least_s, most_s, predicted)
    return [
        finding(
            "duration-model",
            f"{expected}: {least_s:.1f} to {most_s:.1f} s",
            verdict,
            why,
            observed=observed,
            unit="of the least",
            power=_power(observed, longest_s(most_s) / least_s),
            tolerance=f"- {percent(DURATION_TOLERANCE)} of the least, + {percent(DURATION_TOLERANCE)} of the most, "
            f"or {EDGES_S:g} s more",
            series=("log.bytes", "move.in_flight", LISTED_METRIC, "manifest.move.batches_s"),
        )
    ]


def _skips(run: RunView) -> str | None:
    """Return why nothing is judged of a run: its batches have no model, or its throttle lets single responses pass."""
    move = run.move
    response_s = move.response_max_bytes / move.quota_bytes_per_s
    if move.fetch == "tuned" and response_s > move.sample_s:
        return f"a response is worth {response_s:.1f} s of the throttle: whole ones come early, as many as fit"
    return without_batch_model(run)


CRITERION = Criterion(
    name="duration-model",
    title="As long as the model says",
    section=RATES,
    judge=lambda run: (judge_duration_in_steps if run.batched else judge_duration)(run.measures, run.move),
    rests_on_preconditions=True,
    quota_binds=True,
    skips=_skips,
    catches="A move that is slower than its bytes and its quota explain.",
    smallest="12 % slower, 8 % faster",
)
