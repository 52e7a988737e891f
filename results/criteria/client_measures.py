"""Measures of what clients saw before, during and after a move: latencies and silences."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.criteria.measures import KINDS, PARTS, ClientKind, ClientView, Part
from results.criteria.quantities import US
from results.criteria.series import Floats, Micros, RunSeries

COUNTED: dict[ClientKind, str] = {"produce": "client.produce.acked", "consume": "client.consume.records"}
QUANTILES = (0.5, 0.99, 0.999)


def measure_clients(run: RunSeries, started: int, done: int | None) -> tuple[ClientView, ...]:
    """What the clients saw before, during and after the move; empty without clients. Without an end: no after.

    *Before* begins when the load was said to be alone, else when the calibration was over: that is load as well.
    *After* ends where the partitions begin to move back.
    """
    views = []
    begin = run.event_us("load.before") or run.event_us("calibration.done") or 0
    returned = run.event_us("return.started") or 2**62
    for kind in KINDS:
        latency, count = run.of_metric(f"client.{kind}.latency"), run.of_metric(COUNTED[kind])
        if latency.num_rows == 0 and count.num_rows == 0:
            continue
        # A second is reported at its end: the move's first second is the last one before, its last one is still during.
        edges: dict[Part, tuple[int, int]] = {
            "before": (begin + US, started),
            "during": (started + 1, 2**62 if done is None else done + US),
            "after": (2**62 if done is None else done + US + 1, returned),
        }
        views += [_view(kind, part, latency, count, *edges[part]) for part in PARTS]
    return tuple(views)


def _view(kind: ClientKind, part: Part, latency: pa.Table, count: pa.Table, first: int, last: int) -> ClientView:
    rows = _between(latency, first, last)
    bucket = np.array([_microseconds(label) for label in rows["label"].to_pylist()], np.float64)
    p50, p99, p999 = (bucket_quantile(bucket, rows["value"].to_numpy(), q) for q in QUANTILES)
    rows_counted = _between(count, first, last)
    silences = [_silence_s(rows_counted, host) for host in sorted(set(rows_counted["host"].to_pylist()))]
    known = [s for s in silences if s is not None]
    records = int(np.sum(rows["value"].to_numpy()))
    return ClientView(kind, part, records, p50, p99, p999, max(known) if known else None)


def bucket_quantile(bucket: Floats, count: Floats, quantile: float) -> float | None:
    """The highest value of the bucket that holds the quantile, of buckets merged by their value; None when empty."""
    total = float(np.sum(count))
    if total <= 0:
        return None
    values, where = np.unique(bucket, return_inverse=True)
    reached = np.cumsum(np.bincount(where, weights=count, minlength=len(values)))
    return float(values[int(np.searchsorted(reached, math.ceil(quantile * total)))])


def _silence_s(rows: pa.Table, host: str) -> float | None:
    """Longest time for which a count did not grow, between readings; None with fewer than two of them."""
    chosen = rows.filter(pc.equal(rows["host"], host)).sort_by("us")
    t, value = chosen["us"].to_numpy(), chosen["value"].to_numpy()
    if len(t) < 2:
        return None
    return _longest_flat(t, value) / US


def _longest_flat(t: Micros, value: Floats) -> int:
    begins = np.flatnonzero(np.concatenate([[True], np.diff(value) != 0]))
    ends = np.concatenate([begins[1:] - 1, [len(t) - 1]])
    return int(np.max(t[ends] - t[begins]))


def _between(table: pa.Table, first: int, last: int) -> pa.Table:
    return table.filter(pc.and_(pc.greater_equal(table["us"], first), pc.less_equal(table["us"], last)))


def _microseconds(label: str | None) -> float:
    """A bucket's highest value. Raises ValueError for a label that is no number."""
    try:
        return float(label or "")
    except ValueError:
        raise ValueError(f"a latency's label is {label!r}, not the highest value of its bucket in µs") from None
