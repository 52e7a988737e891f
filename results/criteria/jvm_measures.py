"""Measures of the brokers' JVMs over a move: how long they stood still, and what is left after full collections."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from results.criteria.quantities import QUOTA_WINDOW_S, US
from results.criteria.run_view import RunView
from results.criteria.series import RunSeries, Series
from results.criteria.windows import counted, longest_gap_s

PAUSES, COLLECTIONS, COLLECTING = "jvm.pause.seconds", "jvm.collections", "jvm.collection.seconds"
USED, MAX = "jvm.old.used", "jvm.old.max"
LOOK_S = 1.5
"""Readings are a second apart, with some jitter: those within a span are shorter than it by so much at most."""
METRICS = (PAUSES, COLLECTING, COLLECTIONS, USED, MAX)


@dataclass(frozen=True, slots=True)
class JvmMeasures:
    """One broker's JVM over a move, without the time in which it was restarted.

    `paused` and `collecting` are the highest shares of the time, over the given length, in which it stood still, and
    in which it collected. `full` counts full collections. `left_bytes` are what each full collection left in the old
    generation, as it was read next, of at most `most_bytes`.
    """

    host: str
    readings: int
    longest_gap_s: float | None
    paused: float | None
    collecting: float | None
    full: int
    left_bytes: tuple[float, ...]
    most_bytes: float | None

    @property
    def stopped(self) -> float | None:
        """The share in which it stood still; of a JVM that counts no pauses, the share in which it collected."""
        return self.collecting if self.paused is None else self.paused

    @property
    def left_share(self) -> float | None:
        """The smallest share of the old generation that a full collection left; None without one."""
        return min(self.left_bytes) / self.most_bytes if self.left_bytes and self.most_bytes else None


def measured(run: RunView) -> bool:
    """Return whether the run has readings of a JVM."""
    return any(len(run.series.of_metric(metric)) for metric in (PAUSES, COLLECTING))


def jvm_measures(run: RunView, over_s: float) -> list[JvmMeasures]:
    """Return the measures of each broker, shares over `over_s` seconds; none of a run without a move."""
    measures = run.measures
    if measures.started_us is None:
        return []
    start = measures.started_us
    seconds = max((each for each in (measures.done_s, measures.moved_s) if each is not None), default=None)
    last = run.series.last_us() or start
    end = last if seconds is None else start + round(seconds * US)
    spans = [(start + round(p.begin_s * US), start + round(p.end_s * US)) for p in measures.phases] or [(start, end)]
    return [_of_host(run.series, host, spans, over_s) for host in run.brokers]


def _of_host(run: RunSeries, host: str, spans: Sequence[tuple[int, int]], over_s: float) -> JvmMeasures:
    paused, collecting = run.gauge(PAUSES, host), run.gauge(COLLECTING, host)
    full, used, most = run.gauge(COLLECTIONS, host, ["full"]), run.gauge(USED, host), run.gauge(MAX, host)
    seen = paused if len(paused) else collecting
    parts = [part for span in spans for part in _between(full, *span)]
    gaps = [longest_gap_s(seen.t, *span) for span in spans]
    return JvmMeasures(
        host,
        readings=sum(int(np.count_nonzero((seen.t >= begin) & (seen.t <= end))) for begin, end in spans),
        longest_gap_s=max((gap for gap in gaps if gap is not None), default=None),
        paused=highest_share(paused, spans, over_s),
        collecting=highest_share(collecting, spans, over_s),
        full=sum(round(counted(part.value)) for part in parts),
        left_bytes=tuple(left for part in parts for left in _left(part, used)),
        most_bytes=float(most.value[-1]) if len(most) else None,
    )


def highest_share(series: Series, spans: Sequence[tuple[int, int]], over_s: float) -> float | None:
    """Return the highest share of the time that a counter of seconds counted, over windows of `over_s` or more. Pure.

    Windows lie within one span. A shorter span is one window, unless it is shorter than a quota window: then it says
    little. None without such a span. A counter that goes back has begun anew with its broker.
    """
    found = []
    for span in spans:
        for part in _between(series, *span):
            t, total = part.t / US, np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(part.value), 0.0))])
            last = np.searchsorted(t, t + over_s)
            pairs = [(i, int(j)) for i, j in enumerate(last) if j < len(t)]
            if not pairs and t[-1] - t[0] >= QUOTA_WINDOW_S - LOOK_S:
                pairs = [(0, len(t) - 1)]
            found += [float((total[j] - total[i]) / (t[j] - t[i])) for i, j in pairs]
    return max(found, default=None)


def _between(series: Series, begin_us: int, end_us: int) -> Iterator[Series]:
    """Yield the readings from begin to end, if there are two or more."""
    inside = np.flatnonzero((series.t >= begin_us) & (series.t <= end_us))
    if len(inside) > 1:
        yield series.cut(int(inside[0]), int(inside[-1]))


def _left(full: Series, used: Series) -> Iterator[float]:
    """Yield what the old generation has at each reading whose count of full collections has grown."""
    for place in np.flatnonzero(np.diff(full.value) > 0) + 1:
        at = np.searchsorted(used.t, full.t[place])
        if at < len(used) and used.t[at] == full.t[place]:
            yield float(used.value[at])
