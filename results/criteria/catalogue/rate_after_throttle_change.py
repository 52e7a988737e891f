"""From the second window of each phase on the mean is close to its quota."""

from results.contract.move import Move
from results.contract.verdict import Finding, Power, Verdict
from results.criteria.batching import in_steps
from results.criteria.criterion import RATES, Criterion
from results.criteria.findings import finding, gap_text, missing_data, times_power
from results.criteria.measures import MoveMeasures
from results.criteria.model import responses
from results.criteria.phase_directions import PhaseDirection, bottleneck_directions, default_lowest
from results.criteria.quantities import at, rate

SETTLED_TOLERANCE = 0.05
"""Below: as `STEADY_LOWEST`. Above: a response more at each edge of a window is 3.8 % of it, for 1 MiB at 5 MB/s.
Healthy moves had 0.958 to 1.016 (docs/measurements/kip73.md). It does not find a rate that is wrong by less than 5 %.
Nor does it find a change that is late by less than a window: the first one is not judged."""
UNEVEN = 2.0
"""A second with so many times the mean is a burst."""
LOOK_S = 1.5
"""Readings of all logs are about a second apart."""


def judge_settled(measures: MoveMeasures, move: Move) -> list[Finding]:
    """Judge whether from the second window of each phase on the mean where the quota binds is within 5 % of it.

    With Kafka's own settings it is at least `default_lowest`, less one response per fetcher, which may be early.
    What a raise let through at once comes back in bursts, a window apart (`docs/kip73.md`, *After a raise*), and one
    window may have two of them, or none. So it is the mean of all that begin within a window's time; where the phase
    is too short for that, uneven windows say nothing. And of bursts it is at least `uneven_lowest`.
    """
    return [_settled(end, move) for end in bottleneck_directions(measures, move)] or [
        missing_data(
            "rate-after-throttle-change",
            "the mean from the second window on close to the quota",
            measures,
            ("log.bytes",),
        )
    ]


def uneven_lowest(move: Move) -> float:
    """Return part of the quota that is used at least where the bytes come in bursts, as a raise lets them pass: 10 of
    12.

    What is allowed is quota × the time since the oldest sample that counts began, a sample less than the window at
    least; and a burst is forgotten when its sample, which may have gone on for another one, is as old as the window.
    """
    return (move.window_s - move.sample_s) / (move.window_s + move.sample_s)


def _settled(end: PhaseDirection, move: Move) -> Finding:
    rates, second, settled = end.rates, end.rates.second_window, end.rates.settled_bytes_per_s
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    default = move.fetch == "default"
    seconds = second.elapsed_s if second else move.window_s
    part = responses(move, rates.host, rates.direction)
    uneven = settled is not None and (rates.highest_second_bytes_per_s or 0.0) > UNEVEN * settled
    lowest = uneven_lowest(move) if uneven else 1 - SETTLED_TOLERANCE
    if default:
        lowest = min(lowest, default_lowest(move, end.quota) - part / (end.quota * seconds))
    if gap := gap_text(rates.longest_gap_s):
        why = gap
    elif second is None or settled is None:
        why = end.too_much(move) or ""
        if why:
            verdict, observed = "fail", (rates.mean_bytes_per_s or 0.0) / end.quota
        else:
            seconds = end.phase.end_s - end.phase.begin_s
            why = f"the phase took {seconds:.1f} s; two windows of {move.window_s:g} s are needed"
    else:
        observed = settled / end.quota
        verdict = "pass" if lowest <= observed and (default or observed <= 1 + SETTLED_TOLERANCE) else "fail"
        why = (
            f"{rate(settled)} over {second.elapsed_s:.2f} s from {at(second.start_s)} to "
            f"{at(second.start_s + rates.settled_s)} on average is {observed:.3f} of the quota"
        )
        if observed < lowest and (slower := end.slower_than_quota(move)):
            verdict, why = "inconclusive", f"{slower}; {why}"
        if verdict == "fail" and uneven and rates.settled_s < move.window_s - LOOK_S:
            verdict = "inconclusive"
            why += f"; it came in bursts, whose mean takes three windows of {move.window_s:g} s"
    return finding(
        "rate-after-throttle-change",
        f"{end.words}from the second {move.window_s:g} s on at {rate(end.quota)}",
        verdict,
        why,
        host=rates.host,
        direction=rates.direction,
        observed=observed,
        unit="of quota",
        power=_power(observed, lowest, default),
        tolerance=f"at least {lowest:.2f}"
        if default
        else f"{lowest:.2f} to {1 + SETTLED_TOLERANCE:.2f}{', in bursts' if uneven else ''}",
        series=("log.bytes",),
    )


def _power(observed: float | None, lowest: float, default: bool) -> Power | None:
    if not observed:
        return None
    if default:
        return times_power(lowest / observed, "that rate, or less,")
    return times_power((1 + SETTLED_TOLERANCE) / observed, "that rate")


CRITERION = Criterion(
    name="rate-after-throttle-change",
    title="Close to the quota by the second window",
    section=RATES,
    judge=lambda run: judge_settled(run.measures, run.move),
    rests_on_preconditions=True,
    quota_binds=True,
    skips=in_steps("11 s have as many rests as happen to lie in them: only longer times make up for them"),
    catches="A changed throttle that takes effect late, or not at all.",
    smallest="7 % more than the new quota",
)
