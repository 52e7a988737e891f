"""Measures of the brokers' JVMs over a move: how long they stood still, and what is left after full collections."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from results.criteria.series import RunSeries, Series
from results.criteria.standstill import Span, between, highest_share
from results.criteria.windows import counted, longest_gap_s

PAUSES, COLLECTIONS, COLLECTING = "jvm.pause.seconds", "jvm.collections", "jvm.collection.seconds"
USED, MAX = "jvm.old.used", "jvm.old.max"
METRICS = (PAUSES, COLLECTING, COLLECTIONS, USED, MAX)


@dataclass(frozen=True, slots=True)
class JvmMeasures:
    """One broker's JVM over a move, without the time in which it was restarted.

    `paused` and `collecting` are the highest shares of the time, over three quota windows, in which it stood still, and
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
        readings=sum(int(np.count_nonzero((seen.t >= begin) & (seen.t <= end))) for begin, end in spans),
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
