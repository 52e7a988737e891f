"""In the steady part of each phase the quota is used, where it is the bottleneck."""

import math
from collections.abc import Collection
from dataclasses import dataclass

from results.contract.move import Move
from results.contract.verdict import Direction, Finding, Verdict
from results.criteria.batching import kept, open_in_steps, why_not, without_batch_model
from results.criteria.catalogue.broker_rate_agrees import unknown_s
from results.criteria.criterion import RATES, Criterion
from results.criteria.findings import finding, gap_text, missing_data, times_power
from results.criteria.measures import MoveMeasures
from results.criteria.model import allowed, carrying_all, fresh_ends, raced, responses, sampled, written_unseen
from results.criteria.phase_directions import PhaseDirection, bottleneck_directions, default_lowest
from results.criteria.quantities import percent, rate
from results.criteria.run_view import RunView

STEADY_LOWEST = 0.95
"""A tuned follower waits 50 ms at the leader and 50 ms by itself, a response takes 22 ms on the wire, and the log does
not take up to 3 % of it; what is left of 5 % in 10 s is for a busy machine: `docs/throttle-bound.md`."""
STEADY_HIGHEST = 1.0
"""What passes from the oldest sample to a response is at most quota × time: the response itself is not yet counted."""
STEADY_WINDOWS = 3
DEVIATIONS = 4.0


def judge_steady(
    measures: MoveMeasures, move: Move, *, kept: float = 1.0, only: Collection[tuple[str, Direction]] | None = None
) -> list[Finding]:
    """Judge whether in the steady part the quota is used, and no more than it, where the quota is what binds.

    `docs/throttle-bound.md` derives the interval from Kafka's sensor; with Kafka's own settings the least is
    `default_lowest`. A phase that ended before it could be steady is judged by all its bytes.
    `kept` is the part of the least share that is left when the move rests now and then; `only` these ends are judged.
    """
    ends = (
        end
        for end in bottleneck_directions(measures, move)
        if only is None or (end.rates.host, end.rates.direction) in only
    )
    return [_steady(end, move, kept) for end in ends] or [
        missing_data("steady-mean", "steady mean close to the quota", measures, ("log.bytes",))
    ]


@dataclass(frozen=True, slots=True)
class SteadyInterval:
    """Where the mean of a healthy steady part lies, in parts of the quota; `mean` is None if it is not known."""

    mean: float | None
    seconds: float
    least: float
    most: float


def steady_interval(end: PhaseDirection, move: Move, kept: float = 1.0) -> SteadyInterval | None:
    """Return the mean of a steady part and its healthy interval; None where it is too short to be known.

    With Kafka's own settings a short move is judged by its whole phase: it has no smooth part to wait for.
    """
    rates, steady, everything = end.rates, end.rates.steady, end.rates.all
    part, default = responses(move, rates.host, rates.direction), move.fetch == "default"
    lowest = kept * (default_lowest(move, end.quota) if default else STEADY_LOWEST)
    if default and (steady is None or steady.windows < STEADY_WINDOWS):
        if everything is None or everything.elapsed_s < 2 * move.window_s:
            return None
        allows = end.quota * everything.elapsed_s
        most = allowed(end.long_bound(move) or math.inf, everything.in_sync_bytes) / allows
        return SteadyInterval(everything.bytes / allows, everything.elapsed_s, lowest - part / allows, most)
    if steady is None or not steady.windows:
        return None
    in_samples = sampled(move, rates.host, rates.direction, end.quota)
    # The quota of one follower meters what passes, response by response. A leader whose window ran before the move
    # sends in bursts when it feeds several followers.
    even = end.begins and in_samples and len(fresh_ends(move, rates.host, rates.direction) or ()) == 1
    if not even and steady.windows < STEADY_WINDOWS:
        return None
    response, race = part / end.quota, raced(move, rates.host, rates.direction) / end.quota
    uncertain = min(1.0, DEVIATIONS / math.sqrt(6 * max(1, steady.averaged)))
    if default or even:
        edge = response / move.window_s * (1.0 if default else uncertain) + race / (move.window_s - move.sample_s)
    else:
        # A window may have a burst more: one response per fetcher may come late in every window.
        edge = response / steady.seconds + response / move.window_s
    if default:
        lowest -= response / steady.seconds
    elif steady.windows < STEADY_WINDOWS or not in_samples:
        lowest -= response / move.window_s
    edge += written_unseen(move, rates.host, rates.direction) / (end.quota * steady.seconds)
    recorded = 1 + (rates.refetched or 0.0)
    return SteadyInterval(
        steady.typical_bytes_per_s / end.quota, steady.seconds, lowest, (STEADY_HIGHEST + edge) / recorded
    )


def _steady(end: PhaseDirection, move: Move, kept: float) -> Finding:
    rates = end.rates
    found = steady_interval(end, move, kept)
    verdict: Verdict = "inconclusive"
    observed = found.mean if found else None
    if rates.longest_gap_s is None or rates.total_bytes <= 0:
        why = "no throttled bytes were seen"
    elif gap := gap_text(rates.longest_gap_s):
        why = gap
    elif found is None or observed is None:
        why = end.too_much(move) or ""
        if why:
            verdict, observed = "fail", (rates.mean_bytes_per_s or 0.0) / end.quota
        else:
            seconds = rates.steady.seconds if rates.steady else 0.0
            why = f"the steady part is {seconds:.1f} s; {STEADY_WINDOWS} windows of {move.window_s:g} s are needed"
    else:
        verdict = "pass" if found.least <= observed <= found.most else "fail"
        why = f"{rate(observed * end.quota)} over {found.seconds:.1f} s is {observed:.3f} of the quota"
        if observed < found.least and (slower := end.slower_than_quota(move)):
            verdict, why = "inconclusive", f"{slower}; {why}"
        if rates.refetched:
            why += f"; {percent(rates.refetched)} more were fetched and count, too"
        if above := _above(end, move):
            verdict, why = "fail", f"{why}; {above}"
    interval = f"{found.least:.3f} to {found.most:.4f}" if found else f"{STEADY_LOWEST} to {STEADY_HIGHEST}"
    words = ", with the pauses of Kafka's own settings" if move.fetch == "default" else ""
    return finding(
        "steady-mean",
        f"{end.words}{interval} of {rate(end.quota)}{words}",
        verdict,
        why,
        host=rates.host,
        direction=rates.direction,
        observed=observed,
        unit="of quota",
        tolerance=interval,
        power=times_power(found.most / observed, "what passed, on both sides") if found and observed else None,
        series=("log.bytes",),
    )


def _above(end: PhaseDirection, move: Move) -> str:
    """Return what is said of a quota window in which the broker itself read more than its quota; empty without one.

    A check passes with a reading of at most the quota, and a response of each fetcher may follow. So the mean of a
    window's readings exceeds the quota by that response over the time that the sensor divides by, and by what a
    second's bytes vary: a pause that leaves the sensor lets it read more than it admits. Where the quota does not check
    all that it records there is no such bound. A byte-rate that is higher than the logs explain is no such reading.
    """
    rates, kafka = end.rates, end.rates.kafka
    fresh = end.begins and fresh_ends(move, rates.host, rates.direction) is not None
    fresh = fresh and sampled(move, rates.host, rates.direction, end.quota)
    if kafka.highest_bytes_per_s is None or not fresh or move.inbound_bytes_per_s:
        return ""
    response_s = responses(move, rates.host, rates.direction) / end.quota
    off_s = DEVIATIONS * unknown_s(rates, move) / math.sqrt(move.window_samples)
    most = 1 + (response_s + off_s) / kafka.spanned_s
    highest = kafka.highest_bytes_per_s / max(1.0, kafka.ratio or 1.0) / end.quota
    if highest <= most:
        return ""
    return f"over {move.window_s:g} s the broker itself read {highest:.3f} of its quota, at most {most:.3f} is healthy"


def judge_steady_in_steps(measures: MoveMeasures, move: Move) -> list[Finding]:
    """Judge `steady-mean` where one end carries all that is copied; its least share is less by what the rests take."""
    why = why_not(measures, move)
    if why is not None or measures.rests is None:
        return [
            open_in_steps(
                "steady-mean", "steady mean close to the quota", why or "the list of reassignments was not polled"
            )
        ]
    return judge_steady(measures, move, kept=kept(move, measures.rests), only=carrying_all(move))


def _skips(run: RunView) -> str | None:
    why = without_batch_model(run)
    if why is None and run.batched and not carrying_all(run.move):
        why = "no host carries everything: which one the quota holds back changes from batch to batch"
    return why


CRITERION = Criterion(
    name="steady-mean",
    title="Steady rate close to the quota",
    section=RATES,
    judge=lambda run: (judge_steady_in_steps if run.batched else judge_steady)(run.measures, run.move),
    rests_on_preconditions=True,
    quota_binds=True,
    skips=_skips,
    catches="A throttle that uses too little of its quota, or exceeds it for long.",
    smallest="2 % more than the quota on both sides",
)
