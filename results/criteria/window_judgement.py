"""Criteria about the quota's own windows: the bound in any of them, the steady share, the first and the second."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from results.contract.manifest import Move
from results.contract.verdict import Direction, Finding, Verdict
from results.criteria.bounds import allowed, bound_of, long_bound, responses
from results.criteria.frame import of_end
from results.criteria.measures import READING_S, HostRates, MoveMeasures, PhaseMeasures
from results.criteria.model import binding_ends
from results.criteria.unseen import gap_words, unseen
from results.criteria.words import at, rate, size

STEADY_LOWEST, STEADY_HIGHEST = 0.95, 1.00
STEADY_WINDOWS = 3
SETTLED_TOLERANCE = 0.05
UNEVEN = 2.0
"""A second with so many times the mean is a heap."""
LOOK_S = 1.5
"""Readings of all logs are about a second apart."""
FIRST_LEAST = 0.9
"""Part of what the first window has at least: the replicas' logs have to be made first, some tenths of a second."""
BACKOFF_S = 1.0
"""Kafka's own `replica.fetch.backoff.ms`: how long a fetcher that was held back may wait before it looks again."""
WAIT_S = 0.5
"""Kafka's own `replica.fetch.wait.max.ms`: how long a fetch that finds nothing may wait at the leader."""


@dataclass(frozen=True, slots=True)
class _End:
    """One host and direction in one phase, with the words for the phase where there are several."""

    rates: HostRates
    phase: PhaseMeasures
    words: str

    @property
    def quota(self) -> float:
        return self.phase.quota_bytes_per_s

    @property
    def place(self) -> tuple[str, Direction, float]:
        """Where, and under which quota."""
        return self.rates.host, self.rates.direction, self.quota


def _ends(measures: MoveMeasures) -> Iterator[_End]:
    several = len(measures.phases) > 1
    for number, phase in enumerate(measures.phases, 1):
        words = f"phase {number}, {rate(phase.quota_bytes_per_s)} from {at(phase.begin_s)}: " if several else ""
        for rates in phase.rates:
            yield _End(rates, phase, words)


def _binding(measures: MoveMeasures, move: Move) -> Iterator[_End]:
    """Where the quota is what binds, by the model; without one everywhere: nothing says who had less to carry."""
    for end in _ends(measures):
        if not move.expected or (end.rates.host, end.rates.direction) in binding_ends(move, end.quota):
            yield end


def _telling(measures: MoveMeasures, move: Move) -> list[_End]:
    """All ends and phases, but those phases that say nothing of an end of which others with the same quota do.

    When a broker comes back just before the move is done, what is left is a phase in which nothing moves, or one too
    short for a window. It was watched without a gap, and what it has is within the bound: else it is judged.
    """
    ends = [(end, _silent(end, move)) for end in _ends(measures)]
    known = {end.place for end, silent in ends if not silent}
    return [end for end, silent in ends if not silent or end.place not in known]


def _silent(end: _End, move: Move) -> bool:
    rates, seconds = end.rates, end.phase.end_s - end.phase.begin_s
    unwatched = seconds if rates.longest_gap_s is None else rates.longest_gap_s
    if not end.words or gap_words(unwatched):
        return False
    if rates.total_bytes <= 0:
        return True
    bound, worst = bound_of(move, rates.host, rates.direction, end.quota), rates.worst_window
    if bound is None or rates.highest_window_bytes_per_s is not None or seconds >= move.window_s:
        return False
    return rates.total_bytes <= allowed(bound, worst.in_sync_bytes if worst else 0.0)


def judge_windows(measures: MoveMeasures, move: Move, *, late: bool = False) -> list[Finding]:
    """No quota window has more listed bytes than the bound. A window over it fails even beside a gap.

    With `late` the machine may have been so busy that a reading was made long after its instant, though before the
    next one's: a window may be longer then by up to the longest gap, and is held against what two may have.
    """
    return [_window(end, move, 2 if late else 1) for end in _telling(measures, move)] or [
        unseen("throttled-window", "throttled bytes within the bound of any window", measures, ("log.bytes",))
    ]


def _window(end: _End, move: Move, windows: int) -> Finding:
    rates, quota = end.rates, end.quota
    worst, highest = rates.worst_window, rates.highest_window_bytes_per_s
    bound = bound_of(move, rates.host, rates.direction, quota)
    bound = None if bound is None else windows * bound
    most = bound
    verdict: Verdict = "inconclusive"
    if rates.longest_gap_s is None or rates.total_bytes <= 0 or worst is None:
        why = "no throttled bytes were seen"
    elif bound is None:
        why = f"the manifest names no fetcher of {rates.host} that could {rates.direction}"
    else:
        most = allowed(bound, worst.in_sync_bytes)
        why = f"{size(worst.bytes)} in {worst.elapsed_s:.2f} s from {at(worst.start_s)}"
        if worst.in_sync_bytes:
            why += f", {size(worst.in_sync_bytes)} of them to replicas in sync"
        if highest is not None:
            why += f"; highest {move.window_s:g} s rate {highest / quota:.3f} of the strict quota"
        if worst.bytes > most:
            verdict = "fail"
        elif gap := gap_words(rates.longest_gap_s):
            why = f"{gap}: a burst may hide in it"
        elif highest is None and not (end.words and end.phase.end_s - end.phase.begin_s >= move.window_s):
            # Of a phase the readings at its edges lie inside: one of just a window has readings of a little less.
            why = f"the {'phase' if end.words else 'move'} took less than {move.window_s:g} s"
        else:
            verdict = "pass"
    within = f"at most {size(most)} in any {move.window_s:g} s" if most else "within the bound of any window"
    within += ", a busy machine's late readings allowed for" if windows > 1 else ""
    return of_end(
        "throttled-window",
        rates,
        end.words + within,
        verdict,
        why,
        observed=worst.bytes if worst else None,
        unit="bytes",
        tolerance="none beyond the bound",
    )


def judge_mean(measures: MoveMeasures, move: Move) -> list[Finding]:
    """The mean of each phase is within what its quota promises of a time of any length."""
    return [_mean(end, move) for end in _telling(measures, move)] or [
        unseen("long-window-bound", "the mean within the bound of a long time", measures, ("log.bytes",))
    ]


def _mean(end: _End, move: Move) -> Finding:
    rates, found = end.rates, end.rates.all
    verdict: Verdict = "inconclusive"
    most: float | None = None
    if found is None or rates.total_bytes <= 0:
        why = "no throttled bytes were seen"
    elif (bound := long_bound(move, rates.host, rates.direction, end.quota, found.elapsed_s + READING_S)) is None:
        why = f"the manifest names no fetcher of {rates.host} that could {rates.direction}"
    else:
        most = allowed(bound, found.in_sync_bytes)
        share = found.bytes / found.elapsed_s / end.quota
        why = f"{size(found.bytes)} in {found.elapsed_s:.1f} s, {share:.3f} of the quota"
        if found.in_sync_bytes:
            why += f", {size(found.in_sync_bytes)} of them to replicas in sync"
        if found.bytes > most:
            verdict = "fail"
        elif gap := gap_words(rates.longest_gap_s):
            why = gap
        else:
            verdict = "pass"
    return of_end(
        "long-window-bound",
        rates,
        f"{end.words}at most {size(most)} in all" if most else f"{end.words}within the bound of a long time",
        verdict,
        why,
        observed=found.bytes if found else None,
        unit="bytes",
        tolerance="none beyond the bound",
    )


def default_lowest(move: Move, quota: float) -> float:
    """Part of the quota that a follower with Kafka's own settings uses at least, where the quota binds.

    It is held back only when there was more than quota × e in the last e seconds, and looks again after a pause of at
    most backoff + wait: e ÷ (e + pause) of the quota. The oldest response that counts is at least as old as the window
    less the time between two responses.
    """
    pause = BACKOFF_S + WAIT_S
    spanned = max(move.window_s - move.response_max_bytes / quota - pause, move.sample_s)
    return spanned / (spanned + pause)


def judge_steady(
    measures: MoveMeasures, move: Move, *, kept: float = 1.0, only: Collection[tuple[str, Direction]] | None = None
) -> list[Finding]:
    """In the steady part a tuned follower uses 0.95 to 1.00 of the quota, where the quota is what binds.

    With Kafka's own settings it uses at least `default_lowest`; how much at most is what `long-window-bound` is about.
    `kept`
    is the part of the least share that is left when the move rests now and then; `only` these ends are judged.
    """
    ends = (end for end in _binding(measures, move) if only is None or (end.rates.host, end.rates.direction) in only)
    return [_steady(end, move, kept) for end in ends] or [
        unseen("steady-mean", "steady mean close to the quota", measures, ("log.bytes",))
    ]


def _steady(end: _End, move: Move, kept: float) -> Finding:
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
    elif gap := gap_words(rates.longest_gap_s):
        why = gap
    elif steady is None or observed is None or steady.windows < STEADY_WINDOWS:
        seconds = steady.seconds if steady else 0.0
        why = f"the steady part is {seconds:.1f} s; {STEADY_WINDOWS} windows of {move.window_s:g} s are needed"
    else:
        # The part begins and ends between two responses: one per fetcher may stand on the wrong side of an edge.
        highest = STEADY_HIGHEST + edge
        verdict = "pass" if lowest <= observed <= highest else "fail"
        why = f"{rate(mean)} over {steady.seconds:.1f} s is {observed:.3f} of the quota"
    return of_end(
        "steady-mean",
        rates,
        f"{end.words}{lowest:.2f} to {STEADY_HIGHEST:.2f} of {rate(end.quota)}",
        verdict,
        why,
        observed=observed,
        unit="of quota",
        tolerance=f"{lowest:.2f} to {STEADY_HIGHEST:.2f} + one response per fetcher, {edge:.4f}",
    )


def _steady_default(end: _End, move: Move, kept: float) -> Finding:
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
    elif gap := gap_words(rates.longest_gap_s):
        why = gap
    elif observed is None:
        why = f"it took less than two windows of {move.window_s:g} s"
    else:
        verdict = "pass" if observed >= lowest else "fail"
        why = f"{rate(mean)} over {seconds:.1f} s is {observed:.3f} of the quota"
    return of_end(
        "steady-mean",
        rates,
        f"{end.words}at least {lowest:.2f} of {rate(end.quota)}, with the pauses of Kafka's own settings",
        verdict,
        why,
        observed=observed,
        unit="of quota",
        tolerance=f"one response per fetcher, {edge:.4f}, is in that already",
    )


def judge_settled(measures: MoveMeasures, move: Move) -> list[Finding]:
    """From the second window of each phase on the mean where the quota binds is within 5 % of it.

    With Kafka's own settings it is at least `default_lowest`, less one response per fetcher, which may be early.
    What a raise let through at once comes back in heaps, a window apart (`docs/kip73.md`, *After a raise*), and one
    window may have two of them, or none. So it is the mean of all that begin within a window's time; where the phase
    is too short for that, uneven windows say nothing. And of heaps it is at least `uneven_lowest`.
    """
    return [_settled(end, move) for end in _binding(measures, move)] or [
        unseen(
            "rate-after-throttle-change",
            "the mean from the second window on close to the quota",
            measures,
            ("log.bytes",),
        )
    ]


def uneven_lowest(move: Move) -> float:
    """Part of the quota that is used at least where the bytes come in heaps, as a raise lets them pass: 10 of 12.

    What is allowed is quota × the time since the oldest sample that counts began, a sample less than the window at
    least; and a heap is forgotten when its sample, which may have gone on for another one, is as old as the window.
    """
    return (move.window_s - move.sample_s) / (move.window_s + move.sample_s)


def _settled(end: _End, move: Move) -> Finding:
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
    if gap := gap_words(rates.longest_gap_s):
        why = gap
    elif second is None or settled is None:
        seconds = end.phase.end_s - end.phase.begin_s
        why = f"the phase took {seconds:.1f} s; two windows of {move.window_s:g} s are needed"
    else:
        observed = settled / end.quota
        verdict = "pass" if lowest <= observed and (default or observed <= 1 + SETTLED_TOLERANCE) else "fail"
        why = (
            f"{rate(settled)} over {second.elapsed_s:.2f} s from {at(second.start_s)} to "
            f"{at(second.start_s + rates.settled_s)} on average is {observed:.3f} of the quota"
        )
        if verdict == "fail" and uneven and rates.settled_s < move.window_s - LOOK_S:
            verdict = "inconclusive"
            why += f"; it came in heaps, whose mean takes three windows of {move.window_s:g} s"
    return of_end(
        "rate-after-throttle-change",
        rates,
        f"{end.words}from the second {move.window_s:g} s on at {rate(end.quota)}",
        verdict,
        why,
        observed=observed,
        unit="of quota",
        tolerance=f"at least {lowest:.2f}"
        if default
        else f"{lowest:.2f} to {1 + SETTLED_TOLERANCE:.2f}{', in heaps' if uneven else ''}",
    )


def judge_first(measures: MoveMeasures, move: Move) -> list[Finding]:
    """What the first window carries is predicted by the size of a response against quota × window."""
    return [_first(end, move) for end in _ends(measures) if end.phase is measures.phases[0]] or [
        unseen("first-window", "the first window as predicted", measures, ("log.bytes",))
    ]


def first_window_range(move: Move, rates: HostRates, quota: float, seconds: float) -> tuple[float, float]:
    """Least and most bytes that the first so many seconds of a move can have through one host and direction.

    The first fetch of each fetcher finds an empty window and is answered whole. The next one is let through as soon
    as the bytes so far are below quota × time. So responses that are larger than quota × window go beyond it: that is
    KIP-73's burst. With Kafka's own settings a fetcher's last look may lie a pause before the window's end.
    """
    burst = responses(move, rates.host, rates.direction)
    looked_s = seconds - (BACKOFF_S if move.fetch == "default" else 0.0)
    least, most = max(burst, quota * looked_s), quota * seconds + burst
    return FIRST_LEAST * min(least, rates.total_bytes), min(most, rates.total_bytes)


def _first(end: _End, move: Move) -> Finding:
    rates, first = end.rates, end.rates.first_window
    seconds = first.elapsed_s if first else move.window_s
    least, most = first_window_range(move, rates, end.quota, seconds)
    burst = responses(move, rates.host, rates.direction)
    in_window = end.quota * seconds
    verdict: Verdict = "inconclusive"
    if gap := gap_words(rates.longest_gap_s):
        why = gap
    elif burst <= 0:
        why = f"the manifest names no fetcher of {rates.host} that could {rates.direction}"
    elif first is None:
        why = f"the move took less than {move.window_s:g} s"
    else:
        verdict = "pass" if least <= first.bytes <= most else "fail"
        larger = "more" if burst > in_window else "less"
        why = (
            f"one response per fetcher is {size(burst)}, {larger} than quota × {seconds:.2f} s, {size(in_window)}; "
            f"that time had {first.bytes / in_window:.3f} of quota × time"
        )
    return of_end(
        "first-window",
        rates,
        f"{size(least)} to {size(most)} in the first {seconds:.2f} s",
        verdict,
        why,
        observed=first.bytes if first else None,
        unit="bytes",
        tolerance=f"{FIRST_LEAST:g} of the larger of response and quota × window, up to their sum",
    )
