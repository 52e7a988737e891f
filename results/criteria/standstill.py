"""How long something stood still in a move, and how long it may: a JVM, or every task that waits for a resource."""

from collections.abc import Iterator, Sequence

import numpy as np

from results.criteria.quantities import QUOTA_WINDOW_S, US
from results.criteria.run_view import RunView
from results.criteria.series import Series

OVER_S = 3 * QUOTA_WINDOW_S
"""The steady rate is a mean of three quota windows or more."""
MOST = 0.05
"""The steady rate may be 5 % below the quota: what stands still for longer than that can alone be the cause."""
LOOK_S = 1.5
"""Readings are a second apart, with some jitter: those within a span are shorter than it by so much at most."""
Span = tuple[int, int]
"""Begin and end, µs since the epoch."""


def move_spans(run: RunView) -> list[Span]:
    """Return the phases of a move, without the time in which a broker restarted; empty without a move."""
    measures = run.measures
    if measures.started_us is None:
        return []
    start = measures.started_us
    if measures.phases:
        return [(start + round(p.begin_s * US), start + round(p.end_s * US)) for p in measures.phases]
    ends = [each for each in (measures.done_s, measures.moved_s) if each is not None]
    return [(start, start + round(max(ends) * US) if ends else run.series.last_us() or start)]


def highest_share(series: Series, spans: Sequence[Span], over_s: float = OVER_S) -> float | None:
    """Return the highest share of the time that a counter of seconds counted, over windows of `over_s` or more. Pure.

    Windows lie within one span. A shorter span is one window, unless it is shorter than a quota window: then it says
    little. None without such a span. A counter that goes back has begun again with its broker.
    """
    found = []
    for part in (part for span in spans for part in between(series, span)):
        t, total = part.t / US, np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(part.value), 0.0))])
        last = np.searchsorted(t, t + over_s)
        pairs = [(i, int(j)) for i, j in enumerate(last) if j < len(t)]
        if not pairs and t[-1] - t[0] >= QUOTA_WINDOW_S - LOOK_S:
            pairs = [(0, len(t) - 1)]
        found += [float((total[j] - total[i]) / (t[j] - t[i])) for i, j in pairs]
    return max(found, default=None)


def between(series: Series, span: Span) -> Iterator[Series]:
    """Yield the readings of a span, if there are two or more."""
    inside = np.flatnonzero((series.t >= span[0]) & (series.t <= span[1]))
    if len(inside) > 1:
        yield series.cut(int(inside[0]), int(inside[-1]))
