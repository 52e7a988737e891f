"""Measures around a move, computed with numpy: in-sync replicas, a move that is stuck, what clients saw."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.contract.move import Move
from results.criteria.live_measures import (
    KINDS,
    LAG_SETTLED_S,
    PARTS,
    ClientKind,
    ClientView,
    Isr,
    Part,
    Shrinks,
    Stuck,
)
from results.criteria.series import Floats, Micros, RunSeries
from results.criteria.windows import US, counted_between, longest_gap_s

DRIVER = "driver"
COUNTED: dict[ClientKind, str] = {"produce": "client.produce.acked", "consume": "client.consume.records"}
QUANTILES = (0.5, 0.99, 0.999)


def measure_isr(run: RunSeries, move: Move, started: int, until: int) -> Isr:
    """The ISR from the move's start until it was done."""
    hosts = tuple(_shrinks(run, host, started, until) for host in move.brokers)
    table = run.of_metric("isr.size").sort_by([("topic", "ascending"), ("partition", "ascending"), ("us", "ascending")])
    t, size = table["us"].to_numpy(), table["value"].to_numpy()
    names = list(zip(table["topic"].to_pylist(), table["partition"].to_pylist(), strict=True))
    starts = [i for i in range(len(names)) if i == 0 or names[i] != names[i - 1]]
    polls, gaps, smaller = [], [], []
    for a, b in zip(starts, [*starts[1:], len(names)] if names else [], strict=True):
        before = int(np.searchsorted(t[a:b], started, side="right")) - 1
        if before < 0:
            continue
        inside = (t[a:b] > started) & (t[a:b] <= until)
        polls.append(int(np.count_nonzero(inside)))
        gaps.append(longest_gap_s(t[a:b], started, until) or 0.0)
        less = np.flatnonzero(inside & (size[a:b] < size[a + before]))
        if len(less):
            at = a + int(less[0])
            smaller.append((int(t[at]), f"{names[a][0]}-{names[a][1]}", float(size[at]), float(size[a + before])))
    first = min(smaller, default=None)
    return Isr(
        hosts=hosts,
        partitions=len(polls),
        polls=min(polls, default=0),
        longest_gap_s=max(gaps, default=None),
        smaller=len(smaller),
        first_partition=None if first is None else first[1],
        first_s=None if first is None else (first[0] - started) / US,
        first_size=None if first is None else first[2],
        first_before=None if first is None else first[3],
    )


def _shrinks(run: RunSeries, host: str, started: int, until: int) -> Shrinks:
    series = run.gauge("broker.isr_shrinks", host)
    return Shrinks(host, counted_between(series, started, until), longest_gap_s(series.t, started, until, inside=True))


def measure_stuck(run: RunSeries, started: int) -> Stuck | None:
    """The first time that the move was noticed to be stuck; None when it was not."""
    noticed = next((event for event in run.told(("move.stuck",)) if event.us >= started), None)
    if noticed is None:
        return None
    told = noticed.detail.get("seconds")
    seconds = float(told) if isinstance(told, int | float) and not isinstance(told, bool) else None
    lag = run.gauge("move.lag", DRIVER)
    begun = noticed.us - round((seconds or 0.0) * US)
    inside = (lag.t >= started) & (lag.t <= noticed.us)
    t, value = lag.t[inside], lag.value[inside]
    settled = t >= started + round(LAG_SETTLED_S * US)
    lowest = int(t[settled][np.argmin(value[settled])]) if settled.any() else None
    # Of a move that was stuck from its very beginning there may be no reading before that time: the first one is.
    edge = max(1, int(np.searchsorted(t, begun, side="right")))
    before, since = value[:edge], value[edge:]
    raised = next((event for event in run.told(("move.raised",)) if event.us >= noticed.us), None)
    at = None if raised is None else raised.us
    in_force = [e for e in run.told(("throttle.in_force",)) if at is not None and e.us >= noticed.us]
    to = in_force[0].detail.get("rate_bytes_per_s") if in_force else None
    return Stuck(
        noticed_s=(noticed.us - started) / US,
        seconds=seconds,
        lag_before=float(np.min(before)) if seconds is not None and len(before) else None,
        lag_since=float(np.min(since)) if seconds is not None and len(since) else None,
        lowest_s=None if lowest is None else (lowest - started) / US,
        raised_s=None if at is None else (at - started) / US,
        raised_to=float(to) if isinstance(to, int | float) and not isinstance(to, bool) else None,
    )


def measure_clients(run: RunSeries, started: int, done: int | None) -> tuple[ClientView, ...]:
    """What the clients saw before, during and after the move; empty without clients. Without an end: no after.

    *Before* begins when the load was said to be alone, else when the calibration was over: that is load as well.
    """
    views = []
    begin = run.event_us("load.before") or run.event_us("calibration.done") or 0
    for kind in KINDS:
        latency, count = run.of_metric(f"client.{kind}.latency"), run.of_metric(COUNTED[kind])
        if latency.num_rows == 0 and count.num_rows == 0:
            continue
        # A second is told at its end: that of the move's start is the last one before, that of its end still during.
        edges: dict[Part, tuple[int, int]] = {
            "before": (begin + US, started),
            "during": (started + 1, 2**62 if done is None else done + US),
            "after": (2**62 if done is None else done + US + 1, 2**62),
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
