"""In the steady part of each phase the quota is used, where it is the bottleneck."""

from collections.abc import Collection

from results.contract.move import Move
from results.contract.verdict import Direction, Finding, Verdict
from results.criteria.batching import kept, open_in_steps, why_not, without_batch_model
from results.criteria.criterion import RATES, Criterion, has_move
from results.criteria.findings import gap_text, missing_data, of_broker_direction
from results.criteria.measures import MoveMeasures
from results.criteria.model import carrying_all, responses
from results.criteria.phase_directions import PhaseDirection, bottleneck_directions, default_lowest
from results.criteria.quantities import rate

STEADY_LOWEST, STEADY_HIGHEST = 0.95, 1.00
STEADY_WINDOWS = 3


def judge_steady(
    measures: MoveMeasures, move: Move, *, kept: float = 1.0, only: Collection[tuple[str, Direction]] | None = None
) -> list[Finding]:
    """In the steady part a tuned follower uses 0.95 to 1.00 of the quota, where the quota is what binds.

    With Kafka's own settings it uses at least `default_lowest`; how much at most is what `long-window-bound` is about.
    `kept`
    is the part of the least share that is left when the move rests now and then; `only` these ends are judged.
    """
    ends = (
        end
        for end in bottleneck_directions(measures, move)
        if only is None or (end.rates.host, end.rates.direction) in only
    )
    return [_steady(end, move, kept) for end in ends] or [
        missing_data("steady-mean", "steady mean close to the quota", measures, ("log.bytes",))
    ]


def _steady(end: PhaseDirection, move: Move, kept: float) -> Finding:
    if move.fetch == "default":
        return _steady_default(end, move, kept)
    lowest = STEADY_LOWEST * kept
    rates, steady = end.rates, end.rates.steady
    verdict: Verdict = "inconclusive"
    part = responses(move, rates.host, rates.direction)
    edge = part / (end.quota * steady.seconds) if steady else 0.0
    mean = steady.mean_bytes_per_s if steady else 0.0
    if steady and move.expected:
        # One response per fetcher may come late in every window: `docs/throttle-bound.md`, *Longer windows*.
        edge += part / (end.quota * move.window_s)
        mean = steady.typical_bytes_per_s
    observed = mean / end.quota if steady else None
    if rates.longest_gap_s is None or rates.total_bytes <= 0:
        why = "no throttled bytes were seen"
    elif gap := gap_text(rates.longest_gap_s):
        why = gap
    elif steady is None or observed is None or steady.windows < STEADY_WINDOWS:
        seconds = steady.seconds if steady else 0.0
        why = f"the steady part is {seconds:.1f} s; {STEADY_WINDOWS} windows of {move.window_s:g} s are needed"
    else:
        # The part begins and ends between two responses: one per fetcher may stand on the wrong side of an edge.
        highest = STEADY_HIGHEST + edge
        verdict = "pass" if lowest <= observed <= highest else "fail"
        why = f"{rate(mean)} over {steady.seconds:.1f} s is {observed:.3f} of the quota"
    return of_broker_direction(
        "steady-mean",
        rates,
        f"{end.words}{lowest:.2f} to {STEADY_HIGHEST:.2f} of {rate(end.quota)}",
        verdict,
        why,
        observed=observed,
        unit="of quota",
        tolerance=f"{lowest:.2f} to {STEADY_HIGHEST:.2f} + one response per fetcher, {edge:.4f}",
    )


def _steady_default(end: PhaseDirection, move: Move, kept: float) -> Finding:
    """The mean of the steady part; of a phase too short for that the whole phase's, if that has two windows."""
    rates, steady, everything = end.rates, end.rates.steady, end.rates.all
    verdict: Verdict = "inconclusive"
    seconds, mean = 0.0, 0.0
    if steady and steady.windows >= STEADY_WINDOWS:
        seconds, mean = steady.seconds, steady.typical_bytes_per_s
    elif everything and everything.elapsed_s >= 2 * move.window_s:
        seconds, mean = everything.elapsed_s, everything.bytes / everything.elapsed_s
    edge = responses(move, rates.host, rates.direction) / (end.quota * seconds) if seconds else 0.0
    lowest = kept * default_lowest(move, end.quota) - edge
    observed = mean / end.quota if seconds else None
    if rates.longest_gap_s is None or rates.total_bytes <= 0:
        why = "no throttled bytes were seen"
    elif gap := gap_text(rates.longest_gap_s):
        why = gap
    elif observed is None:
        why = f"it took less than two windows of {move.window_s:g} s"
    else:
        verdict = "pass" if observed >= lowest else "fail"
        why = f"{rate(mean)} over {seconds:.1f} s is {observed:.3f} of the quota"
    return of_broker_direction(
        "steady-mean",
        rates,
        f"{end.words}at least {lowest:.2f} of {rate(end.quota)}, with the pauses of Kafka's own settings",
        verdict,
        why,
        observed=observed,
        unit="of quota",
        tolerance=f"one response per fetcher, {edge:.4f}, is in that already",
    )


def judge_steady_in_steps(measures: MoveMeasures, move: Move) -> list[Finding]:
    """`steady-mean` where one end carries all that is copied; its least share is less by what the rests take."""
    why = why_not(measures, move)
    if why is None and not carrying_all(move):
        why = "no host carries everything: which one the quota holds back changes from batch to batch"
    if why is not None or measures.rests is None:
        return [open_in_steps("steady-mean", "steady mean close to the quota", why or "nobody looked")]
    return judge_steady(measures, move, kept=kept(move, measures.rests), only=carrying_all(move))


CRITERION: Criterion[MoveMeasures] = Criterion(
    name="steady-mean",
    title="Steady rate close to the quota",
    section=RATES,
    measure=lambda run: run.measures,
    judge=lambda run, measures: (judge_steady_in_steps if run.batched else judge_steady)(measures, run.move),
    needs=has_move,
    rests_on_preconditions=True,
    skips=without_batch_model,
    catches="A throttle that wastes a part of its quota, or exceeds it for long.",
)
