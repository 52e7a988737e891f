"""Chart data from samples: plain lists for the page's script, and the same data as tables for readers.

Instants are seconds after the move's start, rates bytes per second, latencies milliseconds.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from results.contract.move import Move, flows_through, recorded_through
from results.criteria.cluster_measures import lowest_isr
from results.criteria.host_rates import HostRates
from results.criteria.measures import KINDS, MoveMeasures
from results.criteria.model import bound_of
from results.criteria.phase_directions import bottleneck_directions
from results.criteria.protection_measures import bucket_quantile, bucket_us
from results.criteria.quantities import DRIVER, GAP_S, SECOND_S, US, rate
from results.criteria.sample_series import Micros, RunSeries, Series
from results.report.traffic import KIND_WORDS, latency

EVENT_WORDS = {
    "throttle.in_force": "quota in force",
    "throttle.changing": "changing",
    "move.started": "move starts",
    "control.started": "control starts",
    "control.done": "control done",
    "broker.leaving": "leaves",
    "broker.back": "back",
    "move.stuck": "stuck",
    "move.raised": "raised",
    "move.done": "move done",
    "throttle.restored": "restored",
}
SHORT_S = 1.0
"""A change that took less has one mark, at its end."""
BEFORE_S, AFTER_S = 3.0, 2.5


@dataclass(frozen=True, slots=True)
class ChartMark:
    """An event on the time axis."""

    t: float
    label: str


@dataclass(frozen=True, slots=True)
class Band:
    """A rectangle: the steady part's times and rates."""

    start: float
    stop: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Level:
    """A quota and its window bound, both as rates, between two instants."""

    start: float
    stop: float
    quota: float
    bound: float | None


@dataclass(frozen=True, slots=True)
class Chart:
    """One panel: rate over 1 s and (for throttled flows) over a sliding quota window, on common instants."""

    id: str
    title: str
    summary: str
    t: tuple[float, ...]
    second: tuple[float | None, ...]
    window: tuple[float | None, ...]
    band: Band | None
    marks: tuple[ChartMark, ...]
    start: float
    stop: float
    window_s: float
    kind: str
    levels: tuple[Level, ...]

    @property
    def rows(self) -> list[tuple[float, float | None, float | None]]:
        """Return the chart as table rows: instant, 1 s rate, window rate."""
        return [r for r in zip(self.t, self.second, self.window, strict=True) if r[1] is not None]


@dataclass(frozen=True, slots=True)
class _TimeAxis:
    """What all charts of a run have below them; `started` in microseconds, the rest in seconds after it."""

    started: int
    start: float
    stop: float
    marks: tuple[ChartMark, ...]


def charts(move: Move, measures: MoveMeasures, run: RunSeries, summaries: dict[str, str]) -> tuple[Chart, ...]:
    """Return a chart for each busy host and direction, and one for each host that control bytes went into."""
    if measures.started_us is None:
        return ()
    axis = _axis(run, measures, measures.started_us)
    chart = partial(Chart, marks=axis.marks, start=axis.start, stop=axis.stop, window_s=move.window_s)
    one = len(measures.phases) < 2
    banded = {(end.rates.host, end.rates.direction) for end in bottleneck_directions(measures, move)} if one else set()
    panels = []
    for rates in measures.rates:
        key, levels = f"{rates.host}-{rates.direction}", _levels(move, measures, rates, axis)
        listed = recorded_through(move, rates.host, rates.direction)
        t, second, window = _curves(run.flow_bytes(listed, received=rates.direction == "receive"), axis, move)
        panels.append(
            chart(
                key,
                f"{rates.host} {rates.direction}",
                summaries.get(key, ""),
                t,
                second,
                tuple(
                    mean if _is_whole(at, rates.end_s or 0.0, levels, move.window_s) else None
                    for at, mean in zip(t, window, strict=True)
                ),
                _band(move, rates) if (rates.host, rates.direction) in banded else None,
                kind="throttled",
                levels=levels,
            )
        )
    for control in measures.controls:
        key = f"{control.host}-control"
        t, second, _window = _curves(
            run.flow_bytes(flows_through(move.flows, "control", control.host, "receive")), axis, move
        )
        panels.append(
            chart(
                key,
                f"{control.host} receive, control",
                summaries.get(key, ""),
                t,
                second,
                (None,) * len(t),
                None,
                kind="control",
                levels=(Level(axis.start, axis.stop, move.quota_bytes_per_s, None),),
            )
        )
    return tuple(panels)


def _axis(run: RunSeries, measures: MoveMeasures, started: int) -> _TimeAxis:
    """Return the time that there is something to see of: the move, and what clients saw before and after it."""
    marks = marks_of(run, started)
    start = min([m.t for m in marks], default=0.0) - BEFORE_S
    stop = max([m.t for m in marks] + [measures.throttled_s or 0.0]) + AFTER_S
    seen = run.of_metric("client.produce.latency")["us"].to_numpy()
    if len(seen):
        alone = run.event_us("load.before") or int(np.min(seen))
        start = min(start, (alone - started) / US)
        stop = max(stop, (int(np.max(seen)) - started) / US)
    return _TimeAxis(started, start, stop, marks)


Heights = tuple[float | None, ...]


def _curves(series: Series, axis: _TimeAxis, move: Move) -> tuple[tuple[float, ...], Heights, Heights]:
    """Return the instants, and the rates over 1 s and over the quota window that end there."""
    series = _within(series, axis)
    second, window = _at_stops(series, SECOND_S), _at_stops(series, move.window_s)
    return _with_breaks(
        (round((us - axis.started) / US, 3), second.get(us), window.get(us)) for us in series.t.tolist()
    )


def _with_breaks(
    rows: Iterable[tuple[float, float | None, float | None]],
) -> tuple[tuple[float, ...], Heights, Heights]:
    """Return the columns of rows (instant, two values). In a gap stands an instant without values: the line breaks."""
    found: list[tuple[float, float | None, float | None]] = []
    for row in rows:
        if found and row[0] - found[-1][0] > GAP_S:
            found.append(((found[-1][0] + row[0]) / 2, None, None))
        found.append(row)
    return tuple(r[0] for r in found), tuple(r[1] for r in found), tuple(r[2] for r in found)


def _is_whole(at: float, end_s: float, levels: Sequence[Level], window_s: float) -> bool:
    """Return whether the quota window that ends at an instant lies within the move, under one quota."""
    if at > end_s:
        return False
    if len(levels) < 2:
        return at >= window_s
    return any(level.start + window_s <= at <= level.stop for level in levels)


def _within(series: Series, axis: _TimeAxis) -> Series:
    first = int(np.searchsorted(series.t, axis.started + int(axis.start * US)))
    last = int(np.searchsorted(series.t, axis.started + int(axis.stop * US)))
    return series.cut(first, last - 1)


def _at_stops(series: Series, length_s: float) -> dict[int, float]:
    """Return the rate of the shortest window that ends at each instant.

    Several hosts are drawn only: each one's bytes are as late at the end of a window as at its beginning.
    """
    begins = np.searchsorted(series.t, series.t - round(length_s * US), side="right") - 1
    ends = np.flatnonzero(begins >= 0)
    begins = begins[ends]
    rate = (series.value[ends] - series.value[begins]) / (series.t[ends] - series.t[begins]) * US
    return {int(series.t[e]): round(float(r), 1) for e, r in zip(ends, rate, strict=True)}


def _band(move: Move, rates: HostRates) -> Band | None:
    if move.fetch != "tuned" or rates.end_s is None or rates.end_s - move.tail_s <= move.warmup_s:
        return None
    quota = move.quota_bytes_per_s
    return Band(move.warmup_s, rates.end_s - move.tail_s, 0.95 * quota, quota)


def _levels(move: Move, measures: MoveMeasures, rates: HostRates, axis: _TimeAxis) -> tuple[Level, ...]:
    """Return the quota of each phase; of a move with but one over all of the chart."""
    if len(measures.phases) < 2:
        bound = bound_of(move, rates.host, rates.direction)
        most = None if bound is None else bound / move.window_s
        return (Level(axis.start, axis.stop, move.quota_bytes_per_s, most),)
    found = []
    for phase in measures.phases:
        bound = bound_of(move, rates.host, rates.direction, phase.quota_bytes_per_s)
        judged = bound is not None and (phase.leaders_known or rates.direction == "receive")
        most = bound / move.window_s if bound is not None and judged else None
        found.append(Level(round(phase.begin_s, 3), round(phase.end_s, 3), phase.quota_bytes_per_s, most))
    return tuple(found)


def marks_of(run: RunSeries, started: int) -> tuple[ChartMark, ...]:
    """Return the events on the time axis; those of a host with its name."""
    found: list[ChartMark] = []
    for event in run.events_of(EVENT_WORDS):
        at = round((event.us - started) / US, 3)
        quota = event.detail.get("rate_bytes_per_s")
        words = EVENT_WORDS[event.kind]
        if event.kind == "throttle.in_force" and at > 0 and isinstance(quota, int | float):
            words = rate(quota)
        label = f"{event.host} {words}" if event.host and event.kind.startswith("broker.") else words
        found.append(ChartMark(at, label))
    # A change that is quick needs no mark of its beginning.
    return tuple(
        mark
        for mark, after in zip(found, [*found[1:], None], strict=True)
        if not (mark.label == EVENT_WORDS["throttle.changing"] and after and after.t - mark.t < SHORT_S)
    )


FLOOR_MS = 0.1


@dataclass(frozen=True, slots=True)
class ClientChart:
    """Latencies in ms: median and 99th percentile of all records that were due (or read) in each second."""

    id: str
    title: str
    summary: str
    t: tuple[float, ...]
    p50: tuple[float | None, ...]
    p99: tuple[float | None, ...]
    marks: tuple[ChartMark, ...]
    start: float
    stop: float
    kind: str = "latency"

    @property
    def rows(self) -> list[tuple[float, float | None, float | None]]:
        """Return the chart as table rows: instant, median, 99th percentile."""
        return [r for r in zip(self.t, self.p50, self.p99, strict=True) if r[1] is not None]


def client_charts(measures: MoveMeasures, run: RunSeries, beside: tuple[Chart, ...]) -> tuple[ClientChart, ...]:
    """Return a chart for producers and one for consumers, where there are any, from where to where the others are."""
    if measures.started_us is None or not beside:
        return ()
    found = []
    for kind in KINDS:
        table = run.of_metric(f"client.{kind}.latency")
        if not table.num_rows:
            continue
        us, count = table["us"].to_numpy(), table["value"].to_numpy()
        bucket = bucket_us(table)
        rows = []
        for second, here in grouped(us):
            at = (second - measures.started_us) / US
            if beside[0].start <= at <= beside[0].stop:
                p50, p99 = (_milliseconds(bucket_quantile(bucket[here], count[here], q)) for q in (0.5, 0.99))
                rows.append((round(at, 3), p50, p99))
        if all(p50 is None for _at, p50, _p99 in rows):
            continue
        parts = [f"p99 {v.part} {latency(v.p99_us)}" for v in measures.clients if v.kind == kind and v.p99_us]
        title = f"{KIND_WORDS[kind]} latency"
        chart = ClientChart(
            f"client-{kind}",
            title,
            ", ".join(parts),
            *_with_breaks(rows),
            beside[0].marks,
            beside[0].start,
            beside[0].stop,
        )
        found.append(chart)
    return tuple(found)


def grouped(instants: Micros) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
    """Yield each instant once, in order, with the places at which it stands."""
    order = np.argsort(instants, kind="stable")
    found, first = np.unique(instants[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, first[1:])[: len(found)], strict=True)


def _milliseconds(microseconds: float | None) -> float | None:
    return None if microseconds is None else max(FLOOR_MS, round(microseconds / 1000, 3))


def scale(low: float, high: float, first: float, last: float) -> Callable[[float], float]:
    """Return the function from values to places in a picture: `low` is at `first`, `high` at `last`."""
    return lambda value: round(first + (value - low) / (high - low) * (last - first), 1)


WIDTH, HEIGHT, LEFT, TOP, BELOW = 960.0, 120.0, 64.0, 10.0, 22.0
"""Of the picture of a `StepLine`."""


@dataclass(frozen=True, slots=True)
class StepLine:
    """One line of steps in its own picture: `points` as SVG has them; ticks are (place, label)."""

    title: str
    points: str
    up: tuple[tuple[float, str], ...]
    across: tuple[tuple[float, str], ...]
    summary: str


def flights(measures: MoveMeasures, run: RunSeries) -> tuple[StepLine, ...]:
    """Return both lines, of a move whose steps were watched; none of any other: at once there is nothing to see."""
    listed = run.gauge("move.listed", DRIVER)
    if measures.started_us is None or not len(listed):
        return ()
    begin, end = measures.started_us, int(listed.t[-1])
    lines = (
        ("Partitions being reassigned", listed.between(begin, end), "at most"),
        ("Fewest replicas in sync", lowest_isr(run).between(begin, end), "at least"),
    )
    return tuple(_steps(title, line, begin, end, word) for title, line, word in lines if len(line) and end > begin)


def _steps(title: str, line: Series, begin: int, end: int, word: str) -> StepLine:
    t, value = line.t, line.value
    most = max(1.0, float(np.max(value)))
    x, y = scale(begin, end, LEFT, WIDTH), scale(0.0, most, HEIGHT - BELOW, TOP)
    points = [f"{x(int(t[0]))},{y(float(value[0]))}"]
    for before, at, now in zip(value, t[1:], value[1:], strict=False):
        if now != before:  # a step: along, then up or down
            points += [f"{x(int(at))},{y(float(before))}", f"{x(int(at))},{y(float(now))}"]
    points.append(f"{x(end)},{y(float(value[-1]))}")
    seconds = (end - begin) / US
    decimals = 1 if seconds < 100 else 0
    bound = float(np.max(value)) if word == "at most" else float(np.min(value))
    across = tuple(
        (x(begin + round(part * (end - begin))), f"{round(part * seconds, decimals):.12g} s")
        for part in (0.0, 0.25, 0.5, 0.75)
    )
    return StepLine(title, " ".join(points), ((y(0), "0"), (y(most), f"{most:g}")), across, f"{word} {bound:g}")
