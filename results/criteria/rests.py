"""The rests of a move in steps: times in which nothing was listed, between two in which something was."""

from dataclasses import dataclass

import numpy as np

from results.criteria.series import RunSeries
from results.criteria.windows import US

LISTED = "move.listed"
"""How many partitions of the plan the controller listed, look by look."""


@dataclass(frozen=True, slots=True)
class Rests:
    """`count` rests of `total_s` together, the longest of `longest_s`; the looks were at most `gap_s` apart.

    A rest lasts from the last look at which something was listed to the first at which something is again: that is more
    than it really took, by up to two looks.
    """

    looks: int
    count: int
    total_s: float
    longest_s: float
    gap_s: float | None

    @property
    def mean_s(self) -> float:
        """Seconds of a rest on average; 0 without one."""
        return self.total_s / self.count if self.count else 0.0


def measure_rests(run: RunSeries, started: int, until: int) -> Rests | None:
    """The rests between two instants (µs); None when nobody looked at the list, or nothing was ever seen in it."""
    series = run.gauge(LISTED, "driver")
    inside = (series.t >= started) & (series.t <= until)
    t, value = series.t[inside], series.value[inside]
    busy = np.flatnonzero(value > 0)
    if len(busy) == 0:
        return None
    t = t[busy[0] : busy[-1] + 1]
    rested = np.flatnonzero(np.diff(busy) > 1)
    lasted = (t[busy[rested + 1] - busy[0]] - t[busy[rested] - busy[0]]) / US
    gap_s = float(np.max(np.diff(t))) / US if len(t) > 1 else None
    return Rests(len(t), len(lasted), float(np.sum(lasted)), float(np.max(lasted, initial=0.0)), gap_s)
