"""What clients saw, second by second, on the same time axis as the rates."""

from dataclasses import dataclass

import numpy as np

from results.criteria.measures import KINDS, MoveMeasures
from results.criteria.protection_measures import bucket_quantile
from results.criteria.quantities import GAP_S, US
from results.criteria.series import RunSeries
from results.report.charts import Chart, ChartMark
from results.report.traffic import KIND_WORDS, latency

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
        """The chart as table rows: instant, median, 99th percentile."""
        return [r for r in zip(self.t, self.p50, self.p99, strict=True) if r[1] is not None]


def client_charts(measures: MoveMeasures, run: RunSeries, beside: tuple[Chart, ...]) -> tuple[ClientChart, ...]:
    """One for producers and one for consumers, where there are any, from where to where the others are."""
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
