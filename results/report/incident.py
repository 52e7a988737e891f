"""The report of a replayed incident: the timeline drawn over the signals, and the expectations."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from results.contract.manifest import IncidentRecord, Manifest
from results.contract.verdict import Finding
from results.criteria.quantities import DRIVER, GAP_S, US
from results.criteria.replayed_run import ReplayedRun
from results.report import page
from results.report.charts import ChartMark, grouped

QUIET_BYTES = 500_000
"""A log that grew by less is left out of the picture."""
BEFORE_S, AFTER_S = 2.0, 3.0

TITLES = {
    "timeline": "It happened as written",
    "throttle-removed": "No throttle is left",
    "isr": "In-sync replicas",
    "fully-replicated": "Fully replicated",
    "rate": "Rate",
    "nic-bound": "The NIC's limit",
    "uplink-bound": "The uplink's limit",
    "produce-latency": "Produce latency",
    "all-acknowledged": "Every record acknowledged",
    "moves-ended": "Reassignments ended as requested",
    "isr-explained": "Falls of the ISR have a cause",
    "throttle-bound": "The throttle's bound",
    "metadata-replayed": "The metadata log replays",
    "logs-removed": "Old logs are deleted",
    "preferred-leaders": "Preferred leaders",
}
"""Of expectations; another one has the title of the criterion of that name, or its name."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve; `style` is a name the page's script knows: line, step, dashed."""

    label: str
    values: tuple[float | None, ...]
    style: str = "line"


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart of curves on common instants (seconds after the beginning)."""

    id: str
    title: str
    unit: str
    t: tuple[float, ...]
    lines: tuple[Curve, ...]
    start: float
    stop: float

    @property
    def rows(self) -> list[tuple[float | None, ...]]:
        """Return the chart as table rows, without those that break lines."""
        found = ((t, *(line.values[i] for line in self.lines)) for i, t in enumerate(self.t))
        return [row for row in found if any(value is not None for value in row[1:])]


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry of the timeline that acted; seconds after the start."""

    name: str
    trigger: str
    did: str
    planned: float
    actual: float

    @property
    def late_ms(self) -> float:
        """Return how much later than planned."""
        return (self.actual - self.planned) * 1000


class _Signals:
    """A run's samples and events on the incident's own time."""

    def __init__(self, manifest: Manifest, samples: Any, events: Any) -> None:
        self.run = ReplayedRun(manifest, samples, events)
        self._begin_us = self.run.started_us - round(BEFORE_S * US)
        self._end_us = self.run.ended_us + round(AFTER_S * US)

    def keys(self, metric: str) -> list[tuple[str, str]]:
        """Return host and topic of every series of a metric."""
        table = self.run.series.of_metric(metric)
        return sorted(
            {(h, t or "") for h, t in zip(table["host"].to_pylist(), table["topic"].to_pylist(), strict=True)}
        )

    def points(self, metric: str, host: str, topic: str = "") -> list[Point]:
        """Return the readings on the incident's time; values of one instant are summed."""
        series = self.run.readings(metric, host, topic or None).between(self._begin_us, self._end_us)
        return [(self.run.seconds(int(us)), float(v)) for us, v in zip(series.t, series.value, strict=True)]


def steps(events: Sequence[dict[str, Any]]) -> tuple[EntryRow, ...]:
    """Return what acted, in order of time."""
    found = [
        EntryRow(
            e["name"],
            e["detail"]["trigger"],
            "; ".join(e["detail"]["do"]),
            float(e["detail"]["planned_s"]),
            float(e["detail"]["actual_s"]),
        )
        for e in events
    ]
    return tuple(sorted(found, key=lambda step: step.actual))


def rates(points: Sequence[Point]) -> list[Point]:
    """Return growth per second between readings, each at the later one."""
    return [(b[0], max(0.0, (b[1] - a[1]) / (b[0] - a[0]))) for a, b in itertools.pairwise(points)]


def panel(key: str, title: str, unit: str, curves: Sequence[tuple[str, Sequence[Point], str]]) -> Panel | None:
    """Return curves on the union of their instants; None when there are no points.

    In each gap of a curve stands an instant, at which the page breaks it.
    """
    seen = [sorted(round(t, 3) for t, _ in points) for _, points, _ in curves]
    breaks = {round((a + b) / 2, 3) for each in seen for a, b in itertools.pairwise(each) if b - a > GAP_S}
    instants = sorted({t for each in seen for t in each} | breaks)
    if not instants:
        return None
    lines = []
    for label, points, style in curves:
        at = {round(t, 3): value for t, value in points}
        lines.append(Curve(label, tuple(at.get(t) for t in instants), style))
    return Panel(key, title, unit, tuple(instants), tuple(lines), instants[0], instants[-1])


def _panels(signals: _Signals) -> list[Panel]:
    grown = []
    for host, topic in signals.keys("log.bytes"):
        points = signals.points("log.bytes", host, topic)
        if points and max(v for _, v in points) - points[0][1] > QUIET_BYTES:
            grown.append((f"{topic} on {host}", [(t, v / 1e6) for t, v in rates(points)], "line"))
    grown += _throttles(signals)
    shares = [
        (topic, [(t, v * 100) for t, v in signals.points("move.moved", DRIVER, topic)], "line")
        for _, topic in signals.keys("move.moved")
    ]
    uplinks = [
        (f"{rack} {way}", [(t, v * 8 / 1e6) for t, v in rates(signals.points(metric, rack))], "line")
        for metric, way in (("uplink.tx.bytes", "out"), ("uplink.rx.bytes", "in"))
        for rack, _ in signals.keys(metric)
    ]
    replicas = [(topic, signals.points("topic.isr", DRIVER, topic), "step") for _, topic in signals.keys("topic.isr")]
    found = [
        panel("rates", "Logs growing", "MB/s", grown),
        panel("moved", "Moved", "%", shares),
        panel("uplinks", "Uplinks", "Mbit/s", uplinks),
        panel("latency", "Produce latency, per second", "ms", _latency(signals)),
        panel("isr", "Fewest in-sync replicas of a partition", "replicas", replicas),
    ]
    return [each for each in found if each is not None]


def _throttles(signals: _Signals) -> list[tuple[str, list[Point], str]]:
    """Return the quota as one curve, or one for all brokers that had the same rates."""
    alike: dict[frozenset[float], dict[str, list[Point]]] = {}
    for host, _ in signals.keys("quota.follower.rate"):
        points = [(t, value / 1e6) for t, value in signals.points("quota.follower.rate", host) if value >= 0]
        if points:
            alike.setdefault(frozenset(value for _, value in points), {})[host] = points
    return [
        (
            "throttle" if len(alike) == 1 else f"throttle of {', '.join(by_host)}",
            sorted(point for points in by_host.values() for point in points),
            "dashed",
        )
        for by_host in alike.values()
    ]


def _latency(signals: _Signals) -> list[tuple[str, list[Point], str]]:
    us, latency_s = signals.run.latencies()
    seconds = [(s, latency_s[here] * 1000) for s, here in grouped((us - signals.run.started_us) // US)]
    if not seconds:
        return []
    return [
        ("slowest", [(s + 0.5, float(np.max(found))) for s, found in seconds], "line"),
        ("99 %", [(s + 0.5, float(np.percentile(found, 99))) for s, found in seconds], "line"),
        ("median", [(s + 0.5, float(np.median(found))) for s, found in seconds], "line"),
    ]


def _row(criterion: Finding) -> page.Row:
    title = TITLES.get(criterion.name, page.title_of(criterion))
    return page.Row(criterion, title, page.observed(criterion, "g"))


def answer(record: IncidentRecord, criteria: Sequence[Finding]) -> str:
    """Return the verdict in one sentence, compared with what the file expects of the variant."""
    failed = [c for c in criteria if c.verdict == "fail"]
    unknown = [c for c in criteria if c.verdict == "inconclusive"]
    if failed:
        names = sorted({c.name for c in failed})
        matches = "as expected" if names == sorted(set(record.expected_failures)) else "not as the file expects"
        more = f" Not judged: {', '.join(sorted({c.name for c in unknown}))}." if unknown else ""
        first = failed[0]
        return f"It fails {', '.join(names)}, {matches}: the expectation was {first.expected}; {first.why}.{more}"
    if unknown:
        return f"Cannot say: {unknown[0].name}: {unknown[0].why}."
    if not criteria:
        return page.NOTHING_JUDGED
    wrong = f" The {record.variant} variant was expected to fail." if record.expected_failures else ""
    return f"Every expectation is met.{wrong}"


def render_incident(manifest: Manifest, samples: Any, events: Any, criteria: Sequence[Finding]) -> dict[str, Any]:
    """Return the values of the template `incident.html.j2`. Raise ValueError when the run is no incident."""
    record = manifest.incident
    if record is None:
        raise ValueError(f"run {manifest.run_id}: its manifest has no incident to report")
    signals = _Signals(manifest, samples, events)
    acted = steps(signals.run.events("incident.entry"))
    panels = _panels(signals)
    marks = [ChartMark(step.actual, step.name) for step in acted if step.did]
    moved = signals.run.events("move.done")
    marks += [ChartMark(signals.run.seconds(each["us"]), f"{each['name']} moved") for each in moved]
    return {
        "record": record,
        "answer": answer(record, criteria),
        "steps": acted,
        "panels": panels,
        "rows": [_row(each) for each in criteria],
        "document": json.dumps(record.document, indent=2, ensure_ascii=False),
        "charts": {
            "panels": [asdict(each) for each in panels],
            "marks": [asdict(mark) for mark in marks],
            "gap_s": GAP_S,
        },
    }
