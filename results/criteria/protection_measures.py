"""Delays of acknowledgements while a throttled move copied, for each producer and each second.

Each second of due records is one of *before* (the load is alone), *copying*, or *arriving* (replicas come in sync, and
partitions change their leaders). Seconds of the unthrottled control are not counted. The move back, without a throttle,
is divided alike.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from results.criteria.measures import KINDS, P99_BACK, P99_WINDOW_S, PARTS, ClientKind, ClientView, Part
from results.criteria.quantities import DRIVER, US
from results.criteria.sample_series import Floats, Logs, Micros, RunSeries, by_partition
from results.criteria.unfit import ALWAYS_FIT, UnfitTime

COUNTED: dict[ClientKind, str] = {"produce": "client.produce.acked", "consume": "client.consume.records"}
QUANTILES = (0.5, 0.99, 0.999)


def calm_us(run: RunSeries) -> int:
    """Return from when on the load ran alone before the move: when it was said to, else after the calibration."""
    return run.event_us("load.before") or run.event_us("calibration.done") or 0


def measure_clients(run: RunSeries, started: int, done: int | None) -> tuple[ClientView, ...]:
    """Return what the clients saw before, during and after the move; empty without clients. Without an end: no after.

    *After* ends where the partitions begin to move back.
    """
    views = []
    returned = run.event_us("return.started") or 2**62
    for kind in KINDS:
        latency, count = run.of_metric(f"client.{kind}.latency"), run.of_metric(COUNTED[kind])
        if latency.num_rows == 0 and count.num_rows == 0:
            continue
        # A second is reported at its end: the move's first second is the last one before, its last one is still during.
        edges: dict[Part, tuple[int, int]] = {
            "before": (calm_us(run) + US, started),
            "during": (started + 1, 2**62 if done is None else done + US),
            "after": (2**62 if done is None else done + US + 1, returned),
        }
        views += [_view(kind, part, latency, count, *edges[part]) for part in PARTS]
    return tuple(views)


def _view(kind: ClientKind, part: Part, latency: pa.Table, count: pa.Table, first: int, last: int) -> ClientView:
    rows = _between(latency, first, last)
    bucket = bucket_us(rows)
    p50, p99, p999 = (bucket_quantile(bucket, rows["value"].to_numpy(), q) for q in QUANTILES)
    rows_counted = _between(count, first, last)
    silences = [_silence_s(rows_counted, host) for host in sorted(set(rows_counted["host"].to_pylist()))]
    known = [s for s in silences if s is not None]
    records = int(np.sum(rows["value"].to_numpy()))
    return ClientView(kind, part, records, p50, p99, p999, max(known) if known else None)


def bucket_quantile(bucket: Floats, count: Floats, quantile: float) -> float | None:
    """Return the highest value of the bucket that holds the quantile; None without records."""
    total = float(np.sum(count))
    if total <= 0:
        return None
    values, where = np.unique(bucket, return_inverse=True)
    reached = np.cumsum(np.bincount(where, weights=count, minlength=len(values)))
    return float(values[int(np.searchsorted(reached, math.ceil(quantile * total)))])


def _silence_s(rows: pa.Table, host: str) -> float | None:
    """Return longest time for which a count did not grow, between readings; None with fewer than two of them."""
    chosen = rows.filter(pc.equal(rows["host"], host)).sort_by("us")
    t, value = chosen["us"].to_numpy(), chosen["value"].to_numpy()
    if len(t) < 2:
        return None
    begins = np.flatnonzero(np.concatenate([[True], np.diff(value) != 0]))
    ends = np.concatenate([begins[1:] - 1, [len(t) - 1]])
    return int(np.max(t[ends] - t[begins])) / US


def _between(table: pa.Table, first: int, last: int) -> pa.Table:
    return table.filter(pc.and_(pc.greater_equal(table["us"], first), pc.less_equal(table["us"], last)))


def bucket_us(rows: pa.Table) -> Floats:
    """Return the highest value of each row's bucket. Raise ValueError for a label that is no number."""
    try:
        return np.array([float(label or "") for label in rows["label"].to_pylist()], np.float64)
    except ValueError as error:
        raise ValueError(f"a latency's label is not the highest value of its bucket in µs: {error}") from None


LATE_BEFORE = 0.01
"""The share of late acknowledgements that the limit allows before the move: it lies above a 99th percentile."""
Flags = npt.NDArray[np.bool_]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Lateness:
    """Seconds of one kind together: records due in them, how many were late, and their latencies in microseconds."""

    seconds: int
    records: float
    late: float
    p99_us: float | None
    longest_us: float | None

    @property
    def share(self) -> float:
        """Return the share of late acknowledgements; 0 without any."""
        return self.late / self.records if self.records else 0.0


@dataclass(frozen=True, slots=True)
class LateWindow:
    """Consecutive seconds of copying, at most a quota window; `start_s` counts from the start of the move."""

    start_s: float
    seconds: int
    records: float
    late: float

    @property
    def share(self) -> float:
        """Return the share of late acknowledgements; 0 without any."""
        return self.late / self.records if self.records else 0.0


@dataclass(frozen=True, slots=True)
class ClientProtection:
    """One producer's acknowledgements. Those later than `limit_us` are late; None: too little was seen before.

    `back_*` are of the move back without a throttle; None without one.
    """

    client: str
    limit_us: float | None
    before: Lateness
    copying: Lateness
    arriving: Lateness
    windows: tuple[LateWindow, ...]
    back_copying: Lateness | None = None
    back_arriving: Lateness | None = None


LATE, LATE_REPORT_S = "client.late", 2
"""The metric of how late a producer itself handed a record over, the most in a second; and when that is reported at
the latest. A record is handed over up to 1 s late where the rate is held, and a report follows within a second."""


def measure_protection(
    run: RunSeries, window_s: float, unfit: UnfitTime = ALWAYS_FIT, *, handed_over: bool = False
) -> tuple[ClientProtection, ...]:
    """Return each producer's lateness; empty when no move was seen to start, or nothing was acknowledged.

    From the start of the move on `unfit` time is no part of a wait; with `handed_over` the time is none, either, by
    which the producer itself was late.
    """
    started = run.event_us("move.started")
    if started is None:
        return ()
    clients = sorted(set(run.of_metric("client.produce.latency")["host"].to_pylist()))
    in_sync = by_partition(run.of_metric("isr.size")) if clients else {}
    return tuple(
        _Acknowledgements(run, client, started, unfit, in_sync, handed_over=handed_over).measure(window_s)
        for client in clients
    )


def own_late_us(run: RunSeries, client: str, due: Micros) -> Floats:
    """Return by how much a producer may itself have been late with the records of each second that ends at `due`."""
    late = run.gauge(LATE, client)
    first = np.searchsorted(late.t, due - US, side="right")
    end = np.searchsorted(late.t, due + LATE_REPORT_S * US, side="right")
    most = [np.max(late.value[a:b], initial=0.0) for a, b in zip(first, end, strict=True)]
    return np.array(most, np.float64) * US


class _Acknowledgements:
    """One producer's latencies: bucket and count of each sample, by the end of the second in which records were due."""

    def __init__(
        self, run: RunSeries, client: str, started: int, unfit: UnfitTime, in_sync: Logs, *, handed_over: bool = False
    ) -> None:
        self.run, self.client, self.started, self.in_sync = run, client, started, in_sync
        table = run.of_metric("client.produce.latency")
        rows = table.filter(pc.equal(table["host"], client))
        self.due: Micros = rows["us"].to_numpy()
        waits = bucket_us(rows)
        if handed_over:
            waits = np.maximum(0.0, waits - own_late_us(run, client, self.due))
        self.bucket = np.where(self.due > started, unfit.spare(self.due - US, waits), waits)
        self.count: Floats = rows["value"].to_numpy()
        self.seconds: Micros = np.unique(self.due)

    def measure(self, window_s: float) -> ClientProtection:
        run, done = self.run, self.run.event_us("move.done")
        until = done or run.last_us() or self.started
        before = self._within((calm_us(run), self.started))
        limit = self._limit(before)
        late = self._late(limit)
        control = run.event_us("control.started"), run.event_us("control.done")
        beside = [(control[0], (control[1] or until) + US)] if control[0] is not None else []
        arriving = self._arriving("move.in_flight", (self.started, until), late, window_s)
        copying = self._within((self.started, until)) & ~arriving & ~self._touched(beside)
        back = run.event_us("return.started"), run.event_us("return.done")
        found = ClientProtection(
            self.client,
            limit,
            self._sum(before, late),
            self._sum(copying, late),
            self._sum(arriving, late),
            self._windows(copying, late, window_s),
        )
        if back[0] is None or back[1] is None:
            return found
        span = back[0], back[1]
        arrived = self._arriving("return.in_flight", span, late, window_s)
        back_copying = self._sum(self._within(span) & ~arrived, late)
        return replace(found, back_copying=back_copying, back_arriving=self._sum(arrived, late))

    def _within(self, span: Span) -> Flags:
        """Return the whole seconds of a span."""
        return (self.seconds - US >= span[0]) & (self.seconds <= span[1])

    def _touched(self, spans: Sequence[Span]) -> Flags:
        """Return the seconds of which any part lies in one of the spans."""
        found = np.zeros(len(self.seconds), np.bool_)
        for begin, end in spans:
            found |= (self.seconds > begin) & (self.seconds - US < end)
        return found

    def _limit(self, before: Flags) -> float | None:
        """Return `P99_BACK` times the highest 99th percentile of any `P99_WINDOW_S` before; None with fewer."""
        seconds = self.seconds[before]
        found = []
        for end in seconds:
            inside = (self.due > end - P99_WINDOW_S * US) & (self.due <= end)
            if end - P99_WINDOW_S * US >= seconds[0] - US and inside.any():
                found.append(bucket_quantile(self.bucket[inside], self.count[inside], 1 - LATE_BEFORE))
        known = [p99 for p99 in found if p99 is not None]
        return P99_BACK * max(known) if known else None

    def _late(self, limit: float | None) -> Floats:
        """Return how many records of each second were late."""
        return self._by_second(self.count * (self.bucket > (np.inf if limit is None else limit)))

    def _by_second(self, counts: Floats) -> Floats:
        places = np.searchsorted(self.seconds, self.due)
        return np.bincount(places, weights=counts, minlength=len(self.seconds)).astype(np.float64)

    def _arriving(self, metric: str, span: Span, late: Floats, window_s: float) -> Flags:
        """Return the seconds in which partitions arrive, and those around it from and until one is as before.

        These are a quota window at most, each way. Before: a leader acknowledges nothing that a replica lacks which has
        caught up once, also while it is not yet in the ISR; that replica may wait for the throttle. Clients notice an
        arrival while the controller's change is on its way, so the second before counts in any case.
        """
        spans = [*self._fewer(metric, span), *self._more_in_sync(span)]
        found = self._touched(spans)
        ordinary = late <= LATE_BEFORE * self._by_second(self.count)
        for begin, end in spans:
            after = np.flatnonzero((self.seconds - US >= end) & (self.seconds <= end + window_s * US))
            ahead = np.flatnonzero((self.seconds <= begin) & (self.seconds - US >= begin - window_s * US))
            for way in (after, ahead[::-1]):
                for second in way:
                    if ordinary[second]:
                        break
                    found[second] = True
        return found & (self.seconds > span[0])

    def _fewer(self, metric: str, span: Span) -> list[Span]:
        """Return a second before one poll until the next one, where that lists fewer partitions."""
        flying = self.run.gauge(metric, DRIVER).between(span[0], span[1] + US)
        return [(int(flying.t[i]) - US, int(flying.t[i + 1])) for i in np.flatnonzero(np.diff(flying.value) < 0)]

    def _more_in_sync(self, span: Span) -> list[Span]:
        """Return a second before one poll until the next one, where that shows a larger ISR.

        A move in steps has many such arrivals before the first partition is done.
        """
        found = set[Span]()
        for t, size in self.in_sync.values():
            grew = np.flatnonzero(np.diff(size) > 0)
            found |= {(int(t[i]) - US, int(t[i + 1])) for i in grew if span[0] <= t[i] and t[i + 1] <= span[1] + US}
        return sorted(found)

    def _sum(self, chosen: Flags, late: Floats) -> Lateness:
        rows = np.isin(self.due, self.seconds[chosen])
        bucket, count = self.bucket[rows], self.count[rows]
        return Lateness(
            int(np.sum(chosen)),
            float(np.sum(count)),
            float(np.sum(late[chosen])),
            bucket_quantile(bucket, count, 1 - LATE_BEFORE),
            float(np.max(bucket)) if len(bucket) else None,
        )

    def _windows(self, copying: Flags, late: Floats, window_s: float) -> tuple[LateWindow, ...]:
        """Return every window of consecutive seconds of copying: a quota window, or as many as there are together."""
        total, found, longest = self._by_second(self.count), list[LateWindow](), int(window_s)
        for first, last in _runs(self.seconds, copying):
            length = min(longest, last - first + 1)
            for begin in range(first, last - length + 2):
                part = slice(begin, begin + length)
                at = (int(self.seconds[begin]) - US - self.started) / US
                found.append(LateWindow(at, length, float(np.sum(total[part])), float(np.sum(late[part]))))
        return tuple(found)


def _runs(seconds: Micros, chosen: Flags) -> list[tuple[int, int]]:
    """Return first and last place of each run of chosen seconds, one right after the other."""
    found: list[tuple[int, int]] = []
    for place in np.flatnonzero(chosen).tolist():
        if found and found[-1][1] == place - 1 and seconds[place] - seconds[place - 1] <= 1.5 * US:
            found[-1] = found[-1][0], place
        else:
            found.append((place, place))
    return found
