"""Measures of a throttled move, computed with numpy from its samples and events."""

from typing import Any

import numpy as np

from results.criteria.measures import (
    READING_S,
    SECOND_S,
    Conservation,
    Control,
    HostRates,
    MachineLoad,
    MoveMeasures,
    QuotaPolls,
    Side,
    Steady,
    Window,
)
from results.criteria.series import RunSeries, Series, flows_through
from results.criteria.windows import US, growth, longest_gap_s, trailing_mean_max, windows, windows_within
from results.manifest import FlowKind, Manifest, Move
from results.verdict import DIRECTIONS, Direction

KAFKA_RATE = {
    "transmit": "broker.leader_replication.byte_rate",
    "receive": "broker.follower_replication.byte_rate",
}
SIDES: tuple[Side, ...] = ("leader", "follower")


def measure_move(manifest: Manifest, samples: Any, events: Any) -> MoveMeasures:
    """All measures of the run's move; `samples` and `events` as Arrow tables or pandas DataFrames.

    Raises ValueError when the manifest has no move.
    """
    if manifest.move is None:
        raise ValueError(f"run {manifest.run_id}: its manifest has no move to measure")
    return _MoveMeasurer(manifest, manifest.move, RunSeries(samples, events)).measure()


class _MoveMeasurer:
    """One move's measuring: the instants that all measures share, and a method for each."""

    def __init__(self, manifest: Manifest, move: Move, run: RunSeries) -> None:
        self.manifest, self.move, self.run = manifest, move, run
        self.started = run.event_us("move.started")
        self.done = run.event_us("move.done")

    def measure(self) -> MoveMeasures:
        move, started = self.move, self.started
        if started is None:
            none = MachineLoad(0, None, None, None, None)
            return MoveMeasures(None, None, None, move.kip73_seconds, None, (), (), (), (), none)
        busy = [
            (host, direction)
            for host in move.brokers
            for direction in DIRECTIONS
            if flows_through(move.flows, "throttled", host, direction)
        ]
        rates = tuple(self._rates(started, host, direction) for host, direction in busy)
        ends = [r.end_s for r in rates if r.end_s is not None]
        throttled_s = max(ends) if ends else None
        end = self._watched_until() if throttled_s is None else started + round(throttled_s * US)
        return MoveMeasures(
            started_us=started,
            throttled_s=throttled_s,
            done_s=None if self.done is None else (self.done - started) / US,
            kip73_s=move.kip73_seconds,
            kip73_ratio=throttled_s / move.kip73_seconds if throttled_s and move.kip73_seconds > 0 else None,
            rates=rates,
            quotas=tuple(self._quota(host, side, started, end) for host in move.brokers for side in SIDES),
            conservation=tuple(self._conservation(h, d, started, end) for h, d in busy),
            controls=self._controls(started, end),
            load=self._load(started, end),
        )

    def _watched_until(self) -> int:
        """The instant until which samples must be there: the move's end, else the last sample."""
        return self.done or self.run.last_us() or 0

    def _rates(self, started: int, host: str, direction: Direction) -> HostRates:
        series = self.run.flow_bytes(flows_through(self.move.flows, "throttled", host, direction))
        gap = longest_gap_s(series.t, started, max(started, self._watched_until()))
        if len(series) == 0:
            return HostRates(host, direction, 0.0, None, gap, None, None, None, None, None, None, 0)
        series = _from_start(series, started)
        last = len(series) - 1 if self.done is None else int(np.searchsorted(series.t, self.done))
        series = series.cut(0, last)
        grew = np.flatnonzero(np.diff(series.value) > 0) + 1
        if len(grew) == 0:
            return HostRates(host, direction, 0.0, None, gap, None, None, None, None, None, None, 0)
        series = series.cut(0, int(grew[-1]))
        whole, seconds = windows(series, self.move.window_s), windows(series, SECOND_S)
        judged = windows_within(series, self.move.window_s - READING_S)
        ratio, polls = self._kafka(series, host, direction, started)
        return HostRates(
            host=host,
            direction=direction,
            total_bytes=float(series.value[-1] - series.value[0]),
            end_s=(int(series.t[-1]) - started) / US,
            longest_gap_s=gap,
            worst_window=_window(judged, int(np.argmax(judged.bytes)), started) if len(judged.bytes) else None,
            highest_window_bytes_per_s=float(np.max(whole.rate)) if len(whole.bytes) else None,
            highest_second_bytes_per_s=float(np.max(seconds.rate)) if len(seconds.start) else None,
            warmup_bytes_per_s=self._warmup(series, started),
            steady=self._steady(series, started),
            kafka_ratio=ratio,
            kafka_polls=polls,
        )

    def _warmup(self, series: Series, started: int) -> float | None:
        j = int(np.searchsorted(series.t, started + round(self.move.warmup_s * US)))
        if j >= len(series) or j == 0:
            return None
        return float((series.value[j] - series.value[0]) / (series.t[j] - series.oldest[0]) * US)

    def _steady_span(self, series: Series, started: int) -> tuple[int, int]:
        return started + round(self.move.warmup_s * US), int(series.t[-1]) - round(self.move.tail_s * US)

    def _steady(self, series: Series, started: int) -> Steady | None:
        begin, end = self._steady_span(series, started)
        first = int(np.searchsorted(series.t, begin))
        last = int(np.searchsorted(series.t, end, side="right")) - 1
        if last <= first:
            return None
        part = series.cut(first, last)
        seconds = (int(part.t[-1]) - int(part.t[0])) / US
        rates = windows(part, SECOND_S).rate
        whole = windows(part, self.move.window_s).rate
        mean = float(np.mean(rates)) if len(rates) else 0.0
        return Steady(
            mean_bytes_per_s=float(part.value[-1] - part.value[0]) / seconds,
            seconds=seconds,
            windows=int(seconds / self.move.window_s),
            variation=float(np.std(rates)) / mean if mean > 0 else None,
            lowest_window_bytes_per_s=float(np.min(whole)) if len(whole) else None,
        )

    def _kafka(self, series: Series, host: str, direction: Direction, started: int) -> tuple[float | None, int]:
        """Median of Kafka's byte-rate over ours, each for the window before a poll in the steady part."""
        kafka = self.run.gauge(KAFKA_RATE[direction], host)
        begin, end = self._steady_span(series, started)
        ratios = []
        for t, rate in zip(kafka.t, kafka.value, strict=True):
            if not begin <= t <= end:
                continue
            j = int(np.searchsorted(series.t, t, side="right")) - 1
            i = int(np.searchsorted(series.t, series.t[j] - round(self.move.window_s * US), side="right")) - 1
            if i < 0 or j <= i or series.value[j] <= series.value[i]:
                continue
            ours = (series.value[j] - series.value[i]) / ((series.t[j] - series.oldest[i]) / US)
            ratios.append(rate / ours)
        return (float(np.median(ratios)) if ratios else None), len(ratios)

    def _quota(self, host: str, side: Side, started: int, end: int) -> QuotaPolls:
        series = self.run.gauge(f"quota.{side}.rate", host)
        inside = (series.t >= started) & (series.t <= end)
        t, value = series.t[inside], series.value[inside]
        different = np.flatnonzero(value != self.move.quota_bytes_per_s)
        first = int(different[0]) if len(different) else None
        return QuotaPolls(
            host=host,
            side=side,
            polls=len(t),
            longest_gap_s=longest_gap_s(t, started, end),
            different=len(different),
            first_different_s=None if first is None else (int(t[first]) - started) / US,
            first_different_bytes_per_s=None if first is None else float(value[first]),
        )

    def _conservation(self, host: str, direction: Direction, started: int, end: int) -> Conservation:
        """Over the move and the control transfer, whichever is longer: both must be quiet at the edges."""
        begin = min(started, self.run.event_us("control.started") or started)
        until = max(end, self.run.event_us("control.done") or end)
        devices = [n.device for n in self.manifest.nics if n.host == host and n.direction == direction]
        counter = "nic.tx.bytes" if direction == "transmit" else "nic.rx.bytes"
        client: float | None = 0.0
        if direction == "receive":
            client = growth(self.run.gauge("broker.bytes_in", host), begin, until)
        kinds: tuple[FlowKind, ...] = ("throttled", "control", "calibration")
        logs: dict[FlowKind, float | None] = {}
        for kind in kinds:
            flows = flows_through(self.move.flows, kind, host, direction)
            logs[kind] = growth(self.run.flow_bytes(flows), begin, until) if flows else 0.0
        nic = growth(self.run.gauge(counter, host, devices), begin, until) if devices else None
        return Conservation(
            host=host,
            direction=direction,
            nic_bytes=nic,
            throttled_bytes=logs["throttled"],
            control_bytes=logs["control"],
            calibration_bytes=logs["calibration"],
            client_bytes=client,
        )

    def _controls(self, started: int, end: int) -> tuple[Control, ...]:
        begin = self.run.event_us("throttle.in_force") or started
        until = max(end, self.run.event_us("control.done") or end)
        until = min(until, self.run.event_us("throttle.restored") or until)
        controls = []
        for host in self.move.brokers:
            flows = flows_through(self.move.flows, "control", host, "receive")
            if not flows:
                continue
            series = self.run.flow_bytes(flows)
            first = max(int(np.searchsorted(series.t, begin, side="right")) - 1, 0)
            part = series.cut(first, int(np.searchsorted(series.t, until)))
            rate = windows(part, SECOND_S).rate
            grew = np.flatnonzero(np.diff(part.value) > 0) + 1
            last = int(part.t[grew[-1]]) if len(grew) else None
            listed = self.run.flow_bytes(flows_through(self.move.flows, "throttled", host, "receive"))
            controls.append(
                Control(
                    host=host,
                    leaders=tuple(sorted({f.leader for f in flows})),
                    total_bytes=float(part.value[-1] - part.value[0]) if len(part) else 0.0,
                    peak_bytes_per_s=float(np.max(rate)) if len(rate) else None,
                    longest_gap_s=longest_gap_s(series.t, begin, until),
                    last_s=None if last is None else (last - started) / US,
                    with_throttled_bytes=None
                    if last is None
                    else _both(series, listed, int(part.t[grew[0] - 1]), last),
                )
            )
        return tuple(controls)

    def _load(self, started: int, end: int) -> MachineLoad:
        busy, steal = self.run.gauge("cpu.busy", "machine"), self.run.gauge("cpu.steal", "machine")
        inside = (busy.t > started) & (busy.t <= end)
        return MachineLoad(
            polls=int(np.count_nonzero(inside)),
            longest_gap_s=longest_gap_s(busy.t, started, end),
            busy_mean=float(np.mean(busy.value[inside])) if inside.any() else None,
            busy_window_max=trailing_mean_max(busy, started, end, self.move.window_s),
            steal_window_max=trailing_mean_max(steal, started, end, self.move.window_s),
        )


def _both(control: Series, listed: Series, first: int, last: int) -> float | None:
    grown = growth(control, first, last), growth(listed, first, last)
    return None if grown[0] is None or grown[1] is None else grown[0] + grown[1]


def _from_start(series: Series, started: int) -> Series:
    """From the last reading at or before the start on. Without one: an adding replica holds nothing then."""
    first = int(np.searchsorted(series.t, started, side="right")) - 1
    if first >= 0:
        return series.cut(first, len(series) - 1)
    start = np.array([started])
    return Series(
        np.concatenate([start, series.t]),
        np.concatenate([start, series.oldest]),
        np.concatenate([[0.0], series.value]),
    )


def _window(found: Any, index: int, started: int) -> Window:
    start_s = (int(found.start[index]) - started) / US
    return Window(float(found.bytes[index]), float(found.elapsed_s[index]), start_s)
