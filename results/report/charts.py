"""Chart data from samples: plain lists for the page's script, and the same as tables for those who read them.

Instants are seconds after the move's start, rates bytes per second.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from results.criteria.measures import GAP_S, SECOND_S, HostRates, MoveMeasures
from results.criteria.rate_judgement import bound_of
from results.criteria.series import RunSeries, Series, flows_through
from results.criteria.windows import US
from results.manifest import Flow, Move
from results.verdict import Direction

EVENT_WORDS = {
    "throttle.in_force": "quota in force",
    "move.started": "move starts",
    "control.started": "control starts",
    "control.done": "control done",
    "move.done": "move done",
    "throttle.restored": "restored",
}
BEFORE_S, AFTER_S = 3.0, 2.5


@dataclass(frozen=True, slots=True)
class Mark:
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
    marks: tuple[Mark, ...]
    start: float
    stop: float
    window_s: float
    kind: str

    @property
    def rows(self) -> list[tuple[float, float | None, float | None]]:
        """The chart as table rows: instant, 1 s rate, window rate."""
        return [r for r in zip(self.t, self.second, self.window, strict=True) if r[1] is not None]


def charts(move: Move, measures: MoveMeasures, run: RunSeries, summaries: dict[str, str]) -> tuple[Chart, ...]:
    """A chart for each busy host and direction, and one for each host that control bytes went into."""
    if measures.started_us is None:
        return ()
    marks = _marks(run, measures.started_us)
    start = min([m.t for m in marks], default=0.0) - BEFORE_S
    stop = max([m.t for m in marks] + [measures.throttled_s or 0.0]) + AFTER_S
    panels = []
    for rates in measures.rates:
        flows = flows_through(move.flows, "throttled", rates.host, rates.direction)
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
                _band(move, rates),
                rates.end_s or 0.0,
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
            )
        )
    return tuple(panels)


def _chart(
    key: str,
    title: str,
    kind: str,
    flows: Sequence[Flow],
    move: Move,
    run: RunSeries,
    started: int,
    span: tuple[float, float],
    marks: tuple[Mark, ...],
    summary: str,
    bound: float | None,
    band: Band | None,
    end_s: float,
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
        means.append(mean if kind == "throttled" and move.window_s <= at <= end_s else None)
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
    )


def _within(series: Series, started: int, span: tuple[float, float]) -> Series:
    first = int(np.searchsorted(series.t, started + int(span[0] * US)))
    last = int(np.searchsorted(series.t, started + int(span[1] * US)))
    return series.cut(first, last - 1)


def _at_stops(series: Series, length_s: float) -> dict[int, float]:
    """The rate of the shortest window that ends at each instant."""
    begins = np.searchsorted(series.t, series.t - round(length_s * US), side="right") - 1
    ends = np.flatnonzero(begins >= 0)
    begins = begins[ends]
    rate = (series.value[ends] - series.value[begins]) / (series.t[ends] - series.oldest[begins]) * US
    return {int(series.t[e]): round(float(r), 1) for e, r in zip(ends, rate, strict=True)}


def _bound(move: Move, host: str, direction: Direction) -> float | None:
    bound = bound_of(move, host, direction)
    return None if bound is None else bound / move.window_s


def _band(move: Move, rates: HostRates) -> Band | None:
    if move.fetch != "tuned" or rates.end_s is None or rates.end_s - move.tail_s <= move.warmup_s:
        return None
    quota = move.quota_bytes_per_s
    return Band(move.warmup_s, rates.end_s - move.tail_s, 0.95 * quota, quota)


def _marks(run: RunSeries, started: int) -> tuple[Mark, ...]:
    found: list[Any] = [(run.event_us(kind), words) for kind, words in EVENT_WORDS.items()]
    return tuple(Mark(round((us - started) / US, 3), words) for us, words in found if us is not None)
