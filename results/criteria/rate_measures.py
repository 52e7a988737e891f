"""Phases of a move, and the rates of one host in one direction in each of them.

A phase is a span in which the quota was one and no broker restarted. It begins when the move starts, when every broker
shows a changed quota, or when a broker is back; it ends just before a change is written, when a broker leaves, or when
the move is done. Windows are judged within one phase.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from results.contract.move import Move, flows_through, in_sync_through, recorded_through, throttled_through
from results.contract.verdict import Direction
from results.criteria.host_rates import FADING_S, ByteWindow, HostRates, SensorPart, SensorReadings, SteadyPart
from results.criteria.model import allowed, bound_of, fresh_ends, sampled
from results.criteria.phase_directions import BACKOFF_S
from results.criteria.quantities import READING_S, SECOND_S, US
from results.criteria.sample_series import Floats, RunSeries, Series
from results.criteria.sensor import EMPTY_US, predicted
from results.criteria.windows import Windows, counted, longest_gap_s, windows, windows_within

EDGES = (
    "throttle.in_force",
    "throttle.changing",
    "broker.leaving",
    "broker.back",
    "move.started",
    "move.done",
)


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """One phase, in microseconds since the epoch.

    `first` begins with the move (nothing was copied before), `last` ends with it (growth that stopped earlier is its
    end). `leaders_known` is False once a broker has restarted: its partitions were led by others meanwhile, and maybe
    are still; a `broker.back` with ``leaders_as_planned`` says that they are not.
    """

    quota_bytes_per_s: float
    begin_us: int
    end_us: int
    first: bool = True
    last: bool = True
    leaders_known: bool = True


def phases(run: RunSeries, move: Move, started_us: int, watched_us: int) -> tuple[PhaseSpan, ...]:
    """Return the phases of a move, in order. Without `move.done` the last one ends at `watched_us`.

    A quota in force again without a change before it changes nothing.
    """
    edges = [event for event in run.events_of(EDGES) if event.kind == "throttle.in_force" or event.us >= started_us]
    quota = move.quota_bytes_per_s
    down, changing, known, ended = 0, False, True, False
    begin: int | None = None
    found: list[PhaseSpan] = []

    def close(at: int, *, last: bool) -> None:
        if begin is not None and at > begin:
            found.append(PhaseSpan(quota, begin, at, first=begin == started_us, last=last, leaders_known=known))

    for event in edges:
        if event.us < started_us:
            quota = event.number("rate_bytes_per_s") or quota
            continue
        if event.kind == "throttle.in_force" and not changing:
            continue
        close(event.us, last=event.kind == "move.done")
        if event.kind == "move.done":
            ended = True
            break
        if event.kind == "throttle.changing":
            changing = True
        elif event.kind == "throttle.in_force":
            changing, quota = False, event.number("rate_bytes_per_s") or quota
        elif event.kind == "broker.leaving":
            down, known = down + 1, False
        elif event.kind == "broker.back":
            down, known = down - 1, event.detail.get("leaders_as_planned") is True
        begin = None if changing or down > 0 else event.us
    if not ended:
        close(watched_us, last=True)
    return tuple(found)


KAFKA_RATE = {
    "transmit": "broker.leader_replication.byte_rate",
    "receive": "broker.follower_replication.byte_rate",
}
FETCHED = {"transmit": "broker.reassignment.bytes_out", "receive": "broker.reassignment.bytes_in"}
KAFKA_POLLS = 5
"""Polls of Kafka's byte-rate that a comparison needs."""
EARLY_SAMPLES = 4
"""After so many samples' time a sensor is compared when the steady part has too few polls: it divides by that time at
least."""
STILL_S = 0.5
"""After the last growth, a reading of the logs says that nothing came since: a poll so much later is of a sensor that
records nothing any more."""


@dataclass(frozen=True, slots=True)
class RateMeasurer:
    """Measures spans of one move; instants in the results are seconds after `started`."""

    run: RunSeries
    move: Move
    started: int

    def measure(self, span: PhaseSpan, host: str, direction: Direction) -> HostRates:
        """Return the listed bytes through a host within a span."""
        listed = self.run.flow_bytes(recorded_through(self.move, host, direction), received=direction == "receive")
        inside = (span.first | (listed.t >= span.begin_us)) & (span.last | (listed.t <= span.end_us))
        gap = longest_gap_s(listed.t[inside], span.begin_us, max(span.begin_us, span.end_us))
        series = _within(listed, span)
        grew = np.flatnonzero(np.diff(series.value) > 0) + 1
        if len(grew) == 0:
            return HostRates(host, direction, 0.0, None, gap, None, None, None, None, None)
        if span.last:
            series = series.cut(0, int(grew[-1]))
        return self._rates(series, span, host, direction, gap)

    def _rates(self, series: Series, span: PhaseSpan, host: str, direction: Direction, gap: float | None) -> HostRates:
        whole, seconds = windows(series, self.move.window_s), windows(series, SECOND_S)
        judged = windows_within(series, self.move.window_s - READING_S)
        in_sync = self._in_sync(judged, host, direction)
        first, second, settled = self._first_two(series, span, host, direction)
        share = self._counted(host, direction)
        return HostRates(
            host=host,
            direction=direction,
            total_bytes=float(series.value[-1] - series.value[0]),
            end_s=(int(series.t[-1]) - self.started) / US,
            longest_gap_s=gap,
            worst_window=self._worst(judged, in_sync, span, host, direction),
            highest_window_bytes_per_s=float(np.max(whole.rate)) if len(whole.bytes) else None,
            highest_second_bytes_per_s=float(np.max(seconds.rate)) if len(seconds.start) else None,
            warmup_bytes_per_s=self._warmup(series, span),
            steady=self._steady(series, span),
            kafka=self._kafka(series, span, host, direction, max(0.0, (share or 1.0) - 1)),
            counted=share,
            first_window=first,
            second_window=second,
            settled_bytes_per_s=float(np.mean(settled.rate)) if len(settled.bytes) else None,
            settled_s=float(settled.start[-1] - settled.start[0]) / US if len(settled.bytes) else 0.0,
            all=self._opening(series, len(series) - 1, span, host, direction) if len(series) > 1 else None,
            fullest=self._fullest(series, span, host, direction),
        )

    def _fullest(self, series: Series, span: PhaseSpan, host: str, direction: Direction) -> ByteWindow | None:
        """Return the time from a move's start with most bytes beyond what the quotas of fresh sensors allow of it.

        With a wildcard a broker fetches before the move is seen to start, so its first seconds say nothing.
        """
        ends = None if self.move.wildcard else fresh_ends(self.move, host, direction)
        if not span.first or ends is None or len(series) < 2:
            return None
        elapsed_s = (series.t[1:] - max(span.begin_us, int(series.oldest[0]))) / US + READING_S
        due = len(ends) * span.quota_bytes_per_s * np.maximum(elapsed_s, self.move.sample_s)
        last = int(np.argmax(series.value[1:] - series.value[0] - due)) + 1
        return self._opening(series, last, span, host, direction)

    def _opening(self, series: Series, last: int, span: PhaseSpan, host: str, direction: Direction) -> ByteWindow:
        """Return the window from the beginning of a span to its reading `last`."""
        ends, grown = (series.t[:1], series.t[last : last + 1]), series.value[last : last + 1] - series.value[:1]
        # What was read before a move began is what there was at its beginning.
        begin = np.array([max(span.begin_us, int(series.oldest[0]))])
        elapsed = (ends[1] - begin) / US
        in_sync = self._in_sync(Windows(*ends, elapsed, grown), host, direction)
        return self._window(Windows(begin, ends[1], elapsed, grown), 0, in_sync)

    def _in_sync(self, found: Windows, host: str, direction: Direction) -> Floats:
        """Return bytes of each window that went to listed replicas in sync."""
        flows = in_sync_through(self.move, host, direction)
        series = self.run.flow_bytes(flows, received=direction == "receive") if flows else None
        if series is None or len(series) == 0:
            return np.zeros(len(found.bytes))
        return series.at(found.end) - series.at(found.start)

    def _worst(
        self, judged: Windows, in_sync: Floats, span: PhaseSpan, host: str, direction: Direction
    ) -> ByteWindow | None:
        if len(judged.bytes) == 0:
            return None
        bound = bound_of(self.move, host, direction, span.quota_bytes_per_s)
        over = judged.bytes
        if bound is not None:
            over = judged.bytes - np.array([allowed(bound, float(b)) for b in in_sync])
        return self._window(judged, int(np.argmax(over)), in_sync)

    def _window(self, found: Windows, index: int, in_sync: Floats) -> ByteWindow:
        start_s = (int(found.start[index]) - self.started) / US
        return ByteWindow(float(found.bytes[index]), float(found.elapsed_s[index]), start_s, float(in_sync[index]))

    def _first_two(
        self, series: Series, span: PhaseSpan, host: str, direction: Direction
    ) -> tuple[ByteWindow | None, ByteWindow | None, Windows]:
        """Return the first window, the second, and that with all that begin within a window's time after it."""
        later = int(np.searchsorted(series.t, span.begin_us + round(self.move.window_s * US)))
        first = self._opening(series, later, span, host, direction) if 0 < later < len(series) else None
        whole = windows(series.cut(later, len(series) - 1), self.move.window_s)
        settled = whole.cut(whole.start < whole.start[:1] + round(self.move.window_s * US))
        second = self._window(settled, 0, self._in_sync(settled, host, direction)) if len(settled.bytes) else None
        return first, second, settled

    def _warmup(self, series: Series, span: PhaseSpan) -> float | None:
        j = int(np.searchsorted(series.t, span.begin_us + round(self.move.warmup_s * US)))
        if j >= len(series) or j == 0:
            return None
        return float((series.value[j] - series.value[0]) / (series.t[j] - series.oldest[0]) * US)

    def steady_span(self, end_us: int, span: PhaseSpan) -> tuple[int, int]:
        """Return the span between what fills the quota's window and the last responses, which are not whole."""
        tail_s = self.move.tail_s if span.last else 0.0
        return span.begin_us + round(self.move.warmup_s * US), end_us - round(tail_s * US)

    def _steady(self, series: Series, span: PhaseSpan) -> SteadyPart | None:
        begin, end = self.steady_span(int(series.t[-1]), span)
        first = int(np.searchsorted(series.t, begin))
        last = int(np.searchsorted(series.t, end, side="right")) - 1
        if last <= first:
            return None
        part = series.cut(first, last)
        seconds = (int(part.t[-1]) - int(part.t[0])) / US
        rates = windows(part, SECOND_S).rate
        whole = windows(part, self.move.window_s).rate
        # Of several hosts each reading is as late at the end of a window as at its beginning: on average its time is
        # that between its ends, though any one window may contain bytes of the oldest reading in its beginning.
        typical = windows(Series(part.t, part.t, part.value), self.move.window_s).rate
        mean = float(np.mean(rates)) if len(rates) else 0.0
        return SteadyPart(
            mean_bytes_per_s=float(part.value[-1] - part.value[0]) / seconds,
            seconds=seconds,
            windows=int(seconds / self.move.window_s),
            variation=float(np.std(rates)) / mean if mean > 0 else None,
            lowest_window_bytes_per_s=float(np.min(whole)) if len(whole) else None,
            window_mean_bytes_per_s=float(np.mean(typical)) if len(typical) else None,
            averaged=len(typical),
        )

    def _counted(self, host: str, direction: Direction) -> float | None:
        """Return what the broker counts of the move over the growth of the logs; None if it does not say.

        A response ends in the middle of a batch: the log does not take its part, which is fetched again. The counter
        stops when a replica is in sync, and begins again with its broker. It counts nothing of replicas that no
        reassignment adds.
        """
        if self.move.inbound_bytes_per_s or self.run.event_us("broker.leaving") is not None:
            return None
        count = self.run.gauge(FETCHED[direction], host)
        begin = max(int(np.searchsorted(count.t, self.started, side="right")) - 1, 0)
        flows = throttled_through(self.move, host, direction)
        control = flows_through(self.move.flows, "control", host, direction)
        logs = 0.0
        for flow in (flows, control):
            grown = self.run.flow_bytes(flow) if flow else None
            if grown is not None and len(grown):
                logs += float(grown.value[-1] - grown.at(np.array([self.started]))[0])
        if len(count) < begin + 2 or logs <= 0:
            return None
        return counted(count.value[begin:]) / logs or None

    def _kafka(
        self, series: Series, span: PhaseSpan, host: str, direction: Direction, refetched: float
    ) -> SensorReadings:
        """Return Kafka's byte-rate in the steady part over what its sensor should read of such logs, on average."""
        polls = self.run.gauge(KAFKA_RATE[direction], host)
        begin, end = self.steady_span(int(series.t[-1]), span)
        inside, spanned_s = (polls.t >= begin) & (polls.t <= end), self.move.window_s - self.move.sample_s
        early = np.count_nonzero(inside) < KAFKA_POLLS and span.first
        if early:
            early_s = EARLY_SAMPLES * self.move.sample_s
            begin, spanned_s = span.begin_us + round(early_s * US), early_s - self.move.sample_s
            inside = (polls.t >= begin) & (polls.t <= int(series.t[-1]))
        t, readings = polls.t[inside], polls.value[inside]
        grown = series.at(t[-1:]) - series.at(t[:1]) if len(t) > 1 else np.zeros(1)
        if len(t) < KAFKA_POLLS or grown[0] <= 0:
            return SensorReadings(None, len(t), 0.0, 0.0)
        rate = float(grown[0]) / (int(t[-1] - t[0]) / US)
        response = float(self.move.response_max_bytes)
        if self.move.fetch == "default":  # what a pause held back comes at once
            response = max(response, rate * BACKOFF_S)
        first = int(np.flatnonzero(np.diff(series.value) > 0)[0])
        growth = series.cut(first, len(series) - 1)
        samples, sample_s = self.move.window_samples, self.move.sample_s
        sensed = partial(predicted, response_bytes=response, samples=samples, sample_s=sample_s)
        in_sync = in_sync_through(self.move, host, direction)
        also_empty = direction == "transmit" or self.move.inbound_bytes_per_s or in_sync
        empties = (False, True) if also_empty else (False,)
        expected = [sensed(growth, t, empty=empty) for empty in empties]
        recorded = readings / (1 + refetched)
        whole = _part(recorded, expected, rate)
        if not sampled(self.move, host, direction, span.quota_bytes_per_s):
            # Expired samples stay empty then, from the check on at which they expired, which no poll tells.
            pause_s = BACKOFF_S if self.move.fetch == "default" else EMPTY_US / US
            sensed = partial(sensed, checks_us=round(pause_s * US))
            checked = [sensed(growth, t, empty=empty) for empty in empties]
            far = max(abs(float(np.mean(each)) / (whole.share * rate) - 1) for each in checked)
            whole, expected = replace(whole, spread=max(whole.spread, far)), [*expected, *checked]
        if early:
            # Such readings are divided by the time since the first response, which no log tells.
            late = float(np.mean(sensed(_begun_late(growth), t))) / (whole.share * rate)
            return SensorReadings(whole.ratio, len(t), max(whole.spread, abs(late - 1)), spanned_s, rate)
        worst, highest, ended = None, None, None
        if len(t) >= samples:
            worst = _worst_part(recorded, expected, samples)
            highest = float(np.max(np.convolve(readings, np.ones(samples), "valid"))) / samples
        followers = {flow.follower for flow in throttled_through(self.move, host, direction)}
        alone = not self.move.inbound_bytes_per_s and not in_sync and len(followers) == 1
        after = np.flatnonzero(
            (polls.t >= series.t[-1] + round(STILL_S * US)) & (polls.t <= series.t[-1] + round(FADING_S * US))
        )
        if alone and span.last and len(after):
            at, reading = polls.t[after[-1:]], polls.value[after[-1:]] / (1 + refetched)
            ended = _part(reading, [sensed(growth, at, empty=empty) for empty in empties], rate)
        return SensorReadings(whole.ratio, len(t), whole.spread, spanned_s, rate, worst, highest, ended)


def _part(readings: Floats, expected: Sequence[Floats], rate: float) -> SensorPart:
    """Return the comparison of readings with their predictions, of logs that grew at `rate` on average."""
    likely = [float(np.mean(each)) for each in expected]
    middle = (max(likely) + min(likely)) / 2
    return SensorPart(float(np.mean(readings)) / middle, len(readings), (max(likely) - middle) / middle, middle / rate)


def _worst_part(readings: Floats, expected: Sequence[Floats], polls: int) -> SensorPart:
    """Return the comparison of so many consecutive polls whose ratio is furthest from 1, beyond its spread."""
    sums = [np.convolve(each, np.ones(polls), "valid") for each in (readings, *expected)]
    low, high = np.min(sums[1:], axis=0), np.max(sums[1:], axis=0)
    seen = low > 0  # logs that did not grow for a whole window leave nothing to compare
    middle = np.where(seen, (low + high) / 2, 1.0)
    ratio, spread = np.where(seen, sums[0] / middle, 1.0), np.where(seen, (high - middle) / middle, 0.0)
    worst = int(np.argmax(np.abs(ratio - 1) - spread))
    return SensorPart(float(ratio[worst]), polls, float(spread[worst]))


def _begun_late(growth: Series) -> Series:
    """Return a growth whose first bytes all came just before the first reading that has them."""
    late = growth.t.copy()
    late[0] = growth.t[1] - 1
    return Series(late, growth.oldest, growth.value)


def _within(series: Series, span: PhaseSpan) -> Series:
    """Return the readings of a span.

    A move's own edges lie outside (nothing flows there), those of other phases inside.
    """
    if len(series) == 0:
        return series
    if span.first:
        series = _from_start(series, span.begin_us)
    else:
        series = series.cut(int(np.searchsorted(series.oldest, span.begin_us)), len(series) - 1)
    if span.last:
        return series.cut(0, int(np.searchsorted(series.t, span.end_us)))
    return series.cut(0, int(np.searchsorted(series.t, span.end_us, side="right")) - 1)


def _from_start(series: Series, started: int) -> Series:
    """Return the series from the last reading at or before the start on.

    Without such a reading it begins with 0: an adding replica holds nothing then.
    """
    first = int(np.searchsorted(series.t, started, side="right")) - 1
    if first >= 0:
        return series.cut(first, len(series) - 1)
    start = np.array([started])
    return Series(
        np.concatenate([start, series.t]),
        np.concatenate([start, series.oldest]),
        np.concatenate([[0.0], series.value]),
    )
