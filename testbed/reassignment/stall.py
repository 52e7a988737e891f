"""Whether a move goes on, and how long it still takes, from its lag over time. Pure.

The *lag* is what the adding replicas still lack, summed: in bytes or in records, the same here. A replica that
cannot be seen yet lacks everything, so that the lag does not begin at zero.
"""

import math
import statistics
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

PATIENCE_S = 60.0
"""Longer than one sample of the quota's window by far, and than any pause that a fetcher makes by itself (30 s)."""
BLOCK_S = 11.0
"""The quota's window. Within it a throttled rate comes in lumps; between means of whole windows it hardly does."""
_KEPT_S = 20 * BLOCK_S
# Two-sided 95 % quantiles of Student's t for 1, 2, … degrees of freedom.
_T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10)


class LagReading(NamedTuple):
    """The lag at one time (seconds of any clock that only goes forward)."""

    at_s: float
    lag: float


@dataclass(frozen=True, slots=True)
class Stall:
    """A move that has stopped making progress: since when, how much it lacks, and how the lag changes (units/s)."""

    since_s: float
    seconds: float
    lag: float
    rate_per_s: float
    """How fast the lag has grown since then; zero when nothing moves at all."""


class StallDetector:
    """Notices that the lag has stopped falling.

    Stuck is a move whose lag has not gone below its lowest value for ``patience_s``, though it is not done. Slow
    progress is progress; so is a lag that rises and falls, as long as each fall goes below the one before within
    ``patience_s``. When what moves changes (``restart``) nothing that was seen before counts.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        if not patience_s > 0:
            raise ValueError(f"patience of {patience_s} s: must be above 0")
        self.patience_s = patience_s
        self._lowest: LagReading | None = None

    def look(self, at_s: float, lag: float, *, done: bool = False) -> Stall | None:
        """Take one reading; returns what is stuck, at every look for as long as it is."""
        if done:
            self._lowest = None
            return None
        if self._lowest is None or lag < self._lowest.lag:
            self._lowest = LagReading(at_s, lag)
            return None
        since_s = at_s - self._lowest.at_s
        if since_s < self.patience_s:
            return None
        return Stall(self._lowest.at_s, since_s, lag, (lag - self._lowest.lag) / since_s)

    def restart(self) -> None:
        """Begin anew: another move was started, or the throttle was changed."""
        self._lowest = None


@dataclass(frozen=True, slots=True)
class RemainingTime:
    """How long the move still takes, with a 95 % interval; infinite where the lag may never be worked off."""

    seconds: float
    low_s: float
    high_s: float
    rate_per_s: float
    """By how much the lag falls; negative when it grows."""


class Pace:
    """How fast the lag falls, and what that says of the time that is left."""

    def __init__(self) -> None:
        self._readings: deque[LagReading] = deque()

    def add(self, at_s: float, lag: float) -> None:
        """Take one reading; what is older than twenty windows of the quota is dropped."""
        self._readings.append(LagReading(at_s, lag))
        while self._readings[-1].at_s - self._readings[0].at_s > _KEPT_S:
            self._readings.popleft()

    def restart(self) -> None:
        """Forget all readings: the throttle was changed, or another move was started."""
        self._readings.clear()

    def rate_per_s(self, over_s: float = BLOCK_S) -> float | None:
        """By how much the lag has fallen over the last ``over_s``; None with fewer than two readings in them."""
        if len(self._readings) < 2:
            return None
        last = self._readings[-1]
        first = next(reading for reading in self._readings if last.at_s - reading.at_s <= over_s)
        return (first.lag - last.lag) / (last.at_s - first.at_s) if first is not last else None

    def remaining(self) -> RemainingTime | None:
        """What is left at the pace so far; None before two whole windows of the quota were seen.

        The interval comes from how much the pace varies between windows (Student's t over their means).
        """
        rates = self._block_rates()
        if len(rates) < 2:
            return None
        mean = statistics.fmean(rates)
        freedom = len(rates) - 1
        quantile = _T95[freedom - 1] if freedom <= len(_T95) else 2.09
        error = quantile * statistics.stdev(rates) / math.sqrt(len(rates))
        lag = self._readings[-1].lag
        return RemainingTime(_time(lag, mean), _time(lag, mean + error), _time(lag, mean - error), mean)

    def _block_rates(self) -> list[float]:
        """The pace in each whole window, the youngest first."""
        rates = []
        end: LagReading | None = None
        for reading in reversed(self._readings):
            if end is None:
                end = reading
            elif end.at_s - reading.at_s >= BLOCK_S:
                rates.append((reading.lag - end.lag) / (end.at_s - reading.at_s))
                end = reading
        return rates


def _time(lag: float, rate_per_s: float) -> float:
    if lag <= 0:
        return 0.0
    return lag / rate_per_s if rate_per_s > 0 else math.inf
