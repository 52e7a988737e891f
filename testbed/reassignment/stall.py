"""Stalls of a move, detected from its lag over time. Pure."""

from dataclasses import dataclass

from testbed.reassignment.lag import LagReading

PATIENCE_S = 60.0
"""Much longer than a sample of the quota window, and longer than any pause of a fetcher (30 s)."""


@dataclass(frozen=True, slots=True)
class Stall:
    """A move without progress: for how long, its lag, and how fast the lag has grown (units/s)."""

    seconds: float
    lag: float
    rate_per_s: float
    """Zero if nothing moves at all."""


class StallDetector:
    """A detector of moves whose lag has stopped falling.

    A move stalls if its lag has not gone below its lowest value for ``patience_s`` and the move is not done. Slow
    progress counts as progress, and so does a rising and falling lag that reaches a new lowest value within
    ``patience_s``. After `restart` earlier readings do not count.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        if not patience_s > 0:
            raise ValueError(f"patience of {patience_s} s: must be above 0")
        self.patience_s = patience_s
        self._lowest: LagReading | None = None

    def look(self, at_s: float, lag: float, *, done: bool = False) -> Stall | None:
        """Take one reading, and return the stall, at every reading for as long as it lasts."""
        if done:
            self._lowest = None
            return None
        if self._lowest is None or lag < self._lowest.lag:
            self._lowest = LagReading(at_s, lag)
            return None
        since_s = at_s - self._lowest.at_s
        if since_s < self.patience_s:
            return None
        return Stall(since_s, lag, (lag - self._lowest.lag) / since_s)

    def restart(self) -> None:
        """Discard all readings: another move was started, or the throttle was changed."""
        self._lowest = None
