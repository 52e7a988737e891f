"""Standstills in a move, and the longest allowed ones: of a JVM, or of every task that waits for a resource.

Pressure is the time in which every task that was not idle waited for memory, or for a disk (the kernel's PSI). Of a
broker's JVM, what is left after full collections is measured as well.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from results.contract.verdict import Finding, Verdict
from results.criteria.findings import finding, gap_text
from results.criteria.quantities import QUOTA_WINDOW_S, US, percent
from results.criteria.run_view import RunView
from results.criteria.sample_series import RunSeries, Series
from results.criteria.windows import counted, longest_gap_s

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


def highest_share(series: Series, spans: Sequence[Span]) -> float | None:
    """Return the highest share of the time that a counter of seconds counted, over windows of `OVER_S` or more.

    Windows lie within one span. A shorter span is one window, unless it is shorter than a quota window: then it says
    little. None without such a span. A counter that goes back has begun again with its broker.
    """
    found = []
    for part in (part for span in spans for part in between(series, span)):
        t, total = part.t / US, np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(part.value), 0.0))])
        last = np.searchsorted(t, t + OVER_S)
        pairs = [(i, int(j)) for i, j in enumerate(last) if j < len(t)]
        if not pairs and t[-1] - t[0] >= QUOTA_WINDOW_S - LOOK_S:
            pairs = [(0, len(t) - 1)]
        found += [float((total[j] - total[i]) / (t[j] - t[i])) for i, j in pairs]
    return max(found, default=None)


def between(series: Series, span: Span) -> Iterator[Series]:
    """Yield the readings of a span, if there are two or more."""
    part = series.between(*span)
    if len(part) > 1:
        yield part


def around(series: Series, span: Span) -> Series:
    """Return the readings of a span, and those next to it: a move of less than a second may have none of its own."""
    return series.between(span[0] - round(LOOK_S * US), span[1] + round(LOOK_S * US))


MACHINE = "machine"


def was_read(run: RunView, metric: str) -> bool:
    """Return whether the run has readings of a pressure."""
    return len(run.series.of_metric(metric)) > 0


def judge_pressure(
    run: RunView, name: str, metric: str, waits_for: str, kafkas: Callable[[RunView], str]
) -> list[Finding]:
    """Return the finding of a pressure; none of a move that is too short to tell.

    `kafkas` returns what brokers themselves did beyond what the move explains; empty where they did nothing.
    """
    series, spans = run.series.gauge(metric, MACHINE), move_spans(run)
    share = highest_share(series, spans)
    if share is None and any(len(around(series, span)) > 1 for span in spans):
        return []
    gaps = [gap for span in spans if (gap := longest_gap_s(series.t, *span)) is not None]
    verdict: Verdict = "inconclusive"
    if unread := gap_text(max(gaps, default=None)):
        why = f"the pressure was not read: {unread}"
    elif share is None:
        why = "the pressure was not read during the move"
    elif share > MOST:
        why = f"for {percent(share)} of {OVER_S:g} s every task waited for {waits_for}, brokers too"
        why += f"; brokers may have caused it, so it explains no failure: {did}" if (did := kafkas(run)) else ""
    else:
        verdict = "pass"
        why = f"tasks waited for {waits_for} for at most {percent(share)} of any {OVER_S:g} s"
    return [
        finding(
            name,
            f"every task waits for {waits_for} for at most {percent(MOST)} of any {OVER_S:g} s",
            verdict,
            why,
            observed=share,
            unit="fraction",
            host=MACHINE,
            series=(metric,),
        )
    ]


PAUSES, COLLECTIONS, COLLECTING = "jvm.pause.seconds", "jvm.collections", "jvm.collection.seconds"
USED, MAX = "jvm.old.used", "jvm.old.max"
METRICS = (PAUSES, COLLECTING, COLLECTIONS, USED, MAX)


@dataclass(frozen=True, slots=True)
class JvmMeasures:
    """One broker's JVM over a move, without the time in which it was restarted.

    `readings` are those of the move and next to it. `paused` and `collecting` are the highest shares of the time, over
    three quota windows, in which it stood still, and in which it collected. `full` counts full collections.
    `left_bytes` are what each full collection left in the old generation, as it was read next, of at most
    `most_bytes`.
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
        """Return the share in which it stood still; of a JVM that counts no pauses, the share in which it collected."""
        return self.collecting if self.paused is None else self.paused

    @property
    def left_share(self) -> float | None:
        """Return the smallest share of the old generation that a full collection left; None without one."""
        return min(self.left_bytes) / self.most_bytes if self.left_bytes and self.most_bytes else None


def jvms_were_read(run: RunSeries) -> bool:
    """Return whether the run has readings of a JVM."""
    return any(len(run.of_metric(metric)) for metric in (PAUSES, COLLECTING))


def jvm_measures(run: RunSeries, hosts: Sequence[str], spans: Sequence[Span]) -> list[JvmMeasures]:
    """Return the measures of each broker within these spans; none without a span."""
    return [_of_host(run, host, spans) for host in hosts] if spans else []


def _of_host(run: RunSeries, host: str, spans: Sequence[Span]) -> JvmMeasures:
    paused, collecting = run.gauge(PAUSES, host), run.gauge(COLLECTING, host)
    full, used, most = run.gauge(COLLECTIONS, host, ["full"]), run.gauge(USED, host), run.gauge(MAX, host)
    seen = paused if len(paused) else collecting
    parts = [part for span in spans for part in between(full, span)]
    gaps = [longest_gap_s(seen.t, *span) for span in spans]
    return JvmMeasures(
        host,
        readings=sum(len(around(seen, span)) for span in spans),
        longest_gap_s=max((gap for gap in gaps if gap is not None), default=None),
        paused=highest_share(paused, spans),
        collecting=highest_share(collecting, spans),
        full=sum(round(counted(part.value)) for part in parts),
        left_bytes=tuple(left for part in parts for left in _left(part, used)),
        most_bytes=float(most.value[-1]) if len(most) else None,
    )


def _left(full: Series, used: Series) -> Iterator[float]:
    """Yield what the old generation has at each reading whose count of full collections has grown."""
    for place in np.flatnonzero(np.diff(full.value) > 0) + 1:
        at = np.searchsorted(used.t, full.t[place])
        if at < len(used) and used.t[at] == full.t[place]:
            yield float(used.value[at])
