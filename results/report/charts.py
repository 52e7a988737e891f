"""Chart data from samples: plain lists for the page's script, and the same as tables for those who read them.

Instants are seconds after the move's start, rates bytes per second, latencies milliseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from results.contract.move import Flow, Move, flows_through, recorded_through
from results.contract.verdict import Direction
from results.criteria.measures import KINDS, HostRates, MoveMeasures
from results.criteria.model import bound_of
from results.criteria.protection_measures import bucket_quantile
from results.criteria.quantities import DRIVER, GAP_S, SECOND_S, US, rate
from results.criteria.series import Floats, Micros, RunSeries, Series
from results.report.traffic import KIND_WORDS, binding, latency

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
    quota: float
    bound: float | None
    band: Band | None
    marks: tuple[ChartMark, ...]
    start: float
    stop: float
    window_s: float
    kind: str
    levels: tuple[Level, ...] = ()

    @property
    def rows(self) -> list[tuple[float, float | None, float | None]]:
        """Return the chart as table rows: instant, 1 s rate, window rate."""
        return [r for r in zip(self.t, self.second, self.window, strict=True) if r[1] is not None]


def charts(move: Move, measures: MoveMeasures, run: RunSeries, summaries: dict[str, str]) -> tuple[Chart, ...]:
    """Return a chart for each busy host and direction, and one for each host that control bytes went into."""
    if measures.started_us is None:
        return ()
    marks = marks_of(run, measures.started_us)
    start, stop = _span(run, measures, marks)
    one = len(measures.phases) < 2
    banded = {(end.rates.host, end.rates.direction) for end in binding(measures, move)} if one else set()
    panels = []
    for rates in measures.rates:
        flows = recorded_through(move, rates.host, rates.direction)
        key = f"{rates.host}-{rates.direction}"
        title = f"{rates.host} {rates.direction}"
        panels.append(
            _chart(
                key,
                title,
                "throttled",
                flows,
                move,
                run,
                measures.started_us,
                (start, stop),
                marks,
                summaries.get(key, ""),
                _bound(move, rates.host, rates.direction),
                _band(move, rates) if (rates.host, rates.direction) in banded else None,
                rates.end_s or 0.0,
                _levels(move, measures, rates, (start, stop)),
            )
        )
    for control in measures.controls:
        flows = flows_through(move.flows, "control", control.host, "receive")
        key = f"{control.host}-control"
        panels.append(
            _chart(
                key,
                f"{control.host} receive, control",
                "control",
                flows,
                move,
                run,
                measures.started_us,
                (start, stop),
                marks,
                summaries.get(key, ""),
                None,
                None,
                0.0,
                (Level(start, stop, move.quota_bytes_per_s, None),),
            )
        )
    return tuple(panels)


def _span(run: RunSeries, measures: MoveMeasures, marks: tuple[ChartMark, ...]) -> tuple[float, float]:
    """Return from when to when there is something to see: the move, and what clients saw before and after it."""
    start = min([m.t for m in marks], default=0.0) - BEFORE_S
    stop = max([m.t for m in marks] + [measures.throttled_s or 0.0]) + AFTER_S
    seen = run.of_metric("client.produce.latency")["us"].to_numpy()
    if measures.started_us is None or not len(seen):
        return start, stop
    alone = run.event_us("load.before") or int(seen[0])
    return (
        min(start, (alone - measures.started_us) / US),
        max(stop, (int(seen[-1]) - measures.started_us) / US),
    )


def _chart(
    key: str,
    title: str,
    kind: str,
    flows: Sequence[Flow],
    move: Move,
    run: RunSeries,
    started: int,
    span: tuple[float, float],
    marks: tuple[ChartMark, ...],
    summary: str,
    bound: float | None,
    band: Band | None,
    end_s: float,
    levels: tuple[Level, ...],
) -> Chart:
    series = _within(run.flow_bytes(flows), started, span)
    second, window = _at_stops(series, SECOND_S), _at_stops(series, move.window_s)
    t: list[float] = []
    seconds: list[float | None] = []
    means: list[float | None] = []
    for instant in series.t:
        at = (int(instant) - started) / US
        if t and at - t[-1] > GAP_S:  # a gap is drawn as one: the line breaks
            t.append((t[-1] + at) / 2)
            seconds.append(None)
            means.append(None)
        t.append(round(at, 3))
        seconds.append(second.get(int(instant)))
        mean = window.get(int(instant))
        whole = at <= end_s and (
            any(level.start + move.window_s <= at <= level.stop for level in levels)
            if len(levels) > 1
            else at >= move.window_s
        )
        means.append(mean if kind == "throttled" and whole else None)
    return Chart(
        key,
        title,
        summary,
        tuple(t),
        tuple(seconds),
        tuple(means),
        move.quota_bytes_per_s,
        bound,
        band,
        marks,
        span[0],
        span[1],
        move.window_s,
        kind,
        levels,
    )


def _within(series: Series, started: int, span: tuple[float, float]) -> Series:
    first = int(np.searchsorted(series.t, started + int(span[0] * US)))
    last = int(np.searchsorted(series.t, started + int(span[1] * US)))
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


def _bound(move: Move, host: str, direction: Direction) -> float | None:
    bound = bound_of(move, host, direction)
    return None if bound is None else bound / move.window_s


def _band(move: Move, rates: HostRates) -> Band | None:
    if move.fetch != "tuned" or rates.end_s is None or rates.end_s - move.tail_s <= move.warmup_s:
        return None
    quota = move.quota_bytes_per_s
    return Band(move.warmup_s, rates.end_s - move.tail_s, 0.95 * quota, quota)


def _levels(move: Move, measures: MoveMeasures, rates: HostRates, span: tuple[float, float]) -> tuple[Level, ...]:
    """Return the quota of each phase; of a move with but one over all of the chart."""
    if len(measures.phases) < 2:
        return (Level(*span, move.quota_bytes_per_s, _bound(move, rates.host, rates.direction)),)
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
        bucket = np.array([float(label) for label in table["label"].to_pylist()])
        t: list[float] = []
        p50: list[float | None] = []
        p99: list[float | None] = []
        for second in np.unique(us):
            at = (int(second) - measures.started_us) / US
            if not beside[0].start <= at <= beside[0].stop:
                continue
            if t and at - t[-1] > GAP_S:  # a gap is drawn as one: the line breaks
                t.append((t[-1] + at) / 2)
                p50.append(None)
                p99.append(None)
            here = us == second
            t.append(round(at, 3))
            p50.append(_milliseconds(bucket_quantile(bucket[here], count[here], 0.5)))
            p99.append(_milliseconds(bucket_quantile(bucket[here], count[here], 0.99)))
        parts = [f"p99 {v.part} {latency(v.p99_us)}" for v in measures.clients if v.kind == kind and v.p99_us]
        title = f"{KIND_WORDS[kind]} latency"
        chart = ClientChart(
            f"client-{kind}",
            title,
            ", ".join(parts),
            tuple(t),
            tuple(p50),
            tuple(p99),
            beside[0].marks,
            beside[0].start,
            beside[0].stop,
        )
        found.append(chart)
    return tuple(found)


def _milliseconds(microseconds: float | None) -> float | None:
    return None if microseconds is None else max(FLOOR_MS, round(microseconds / 1000, 3))


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
    table = run.of_metric("isr.size").sort_by("us")
    us, size = table["us"].to_numpy(), table["value"].to_numpy()
    looks, first = np.unique(us, return_index=True)
    lowest = np.minimum.reduceat(size, first) if len(first) else size
    lines = (
        ("Partitions being reassigned", listed.t, listed.value, "at most"),
        ("Fewest replicas in sync", looks, lowest, "at least"),
    )
    return tuple(
        _steps(title, t, value, begin, end, word)
        for title, t, value, word in lines
        if np.any((t >= begin) & (t <= end)) and end > begin
    )


def _steps(title: str, t: Micros, value: Floats, begin: int, end: int, word: str) -> StepLine:
    inside = (t >= begin) & (t <= end)
    t, value = t[inside], value[inside]
    most = max(1.0, float(np.max(value)))

    def x(us: int) -> float:
        return round(LEFT + (us - begin) / (end - begin) * (WIDTH - LEFT), 1)

    def y(height: float) -> float:
        return round(HEIGHT - BELOW - height / most * (HEIGHT - BELOW - TOP), 1)

    points = [f"{x(int(t[0]))},{y(float(value[0]))}"]
    for before, at, now in zip(value, t[1:], value[1:], strict=False):
        if now != before:  # a step: along, then up or down
            points += [f"{x(int(at))},{y(float(before))}", f"{x(int(at))},{y(float(now))}"]
    points.append(f"{x(end)},{y(float(value[-1]))}")
    seconds = (end - begin) / US
    bound = float(np.max(value)) if word == "at most" else float(np.min(value))
    across = tuple(
        (x(begin + round(part * (end - begin))), f"{part * seconds:.0f} s") for part in (0.0, 0.25, 0.5, 0.75)
    )
    return StepLine(title, " ".join(points), ((y(0), "0"), (y(most), f"{most:g}")), across, f"{word} {bound:g}")
