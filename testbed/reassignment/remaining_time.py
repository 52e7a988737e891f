"""The remaining time of a move, from the pace at which its lag falls. Pure."""

import math
import statistics
from collections import deque
from dataclasses import dataclass

from testbed.reassignment.lag import LagReading

BLOCK_S = 11.0
"""The quota window. A throttled rate comes in bursts within it; means of whole windows hardly differ."""
_KEPT_S = 20 * BLOCK_S


@dataclass(frozen=True, slots=True)
class RemainingTime:
    """The remaining time of the move, with a 95 % interval; infinite where the lag may never fall to zero."""

    seconds: float
    low_s: float
    high_s: float
    rate_per_s: float
    """The rate at which the lag falls; negative if it grows."""


class Pace:
    """The rate at which the lag falls, and the remaining time that follows."""

    def __init__(self) -> None:
        self._readings: deque[LagReading] = deque()

    def add(self, at_s: float, lag: float) -> None:
        """Take one reading, and drop readings older than twenty quota windows."""
        self._readings.append(LagReading(at_s, lag))
        while self._readings[-1].at_s - self._readings[0].at_s > _KEPT_S:
            self._readings.popleft()

    def restart(self) -> None:
        """Discard all readings: the throttle was changed, or another move was started."""
        self._readings.clear()

    def remaining(self) -> RemainingTime | None:
        """Return the remaining time at the pace so far; None before two complete quota windows.

        The interval follows from the variation between windows (Student's t over their means).
        """
        rates = self._block_rates()
        if len(rates) < 2:
            return None
        # SciPy takes time to import, its statistics a second, and every command that moves data imports this module.
        from scipy.special import stdtrit

        mean = statistics.fmean(rates)
        quantile = float(stdtrit(len(rates) - 1, 0.975))
        error = quantile * statistics.stdev(rates) / math.sqrt(len(rates))
        lag = self._readings[-1].lag
        return RemainingTime(_time(lag, mean), _time(lag, mean + error), _time(lag, mean - error), mean)

    def _block_rates(self) -> list[float]:
        """Return the pace in each complete window, the youngest first."""
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
