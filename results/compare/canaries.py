"""Changes of the machine during a comparison, found by canaries: readings that do not depend on Kafka. Pure.

A canary is read before, between and after the runs of a series. A pair of runs says something about Kafka only when
the readings around both runs agree.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from results.series.block import TO_SIGMA

Reading = Mapping[str, float]
"""Canary → value; a canary that could not be read is absent."""

LIMITS: Mapping[str, float] = {"cpu": 0.10, "memory": 3.00, "fsync": 3.00, "nic": 0.03, "transfer": 0.05}
"""Canary → the change (as a fraction) that is always let pass; one that is not listed has `OTHER_LIMIT`.

These are limits of single readings; nights compare medians, and have narrower ones (`results/nights/bucket.py`)."""
OTHER_LIMIT = 0.10
NOISES = 5.0
"""So many times its own usual change from reading to reading a canary may move, too, …"""
MOST_LIMITS = 2.0
"""… but not more than so many times its limit: no comparison can rest on a machine that always changes."""
ENOUGH_CHANGES = 6
"""With fewer changes seen in a series the usual one is not known, and the limit alone counts."""


@dataclass(frozen=True, slots=True)
class CanaryChange:
    """A canary that moved: its lowest and highest reading around the pair, and the change that was allowed."""

    canary: str
    low: float
    high: float
    allowed: float

    def __str__(self) -> str:
        if self.low <= 0:
            return f"{self.canary} could not be read every time"
        change = self.high / self.low - 1
        return f"{self.canary} {change:+.0%} between readings (allowed {self.allowed:.0%})"


def usual_change(values: Sequence[float]) -> float | None:
    """Return the usual change from one reading to the next, as a standard deviation of logarithms; None with too few.

    From the median of the changes' sizes: a series with one step, or some spikes, has the same usual change.
    """
    changes = np.abs(np.diff(np.log([value for value in values if value > 0])))
    return float(TO_SIGMA * np.median(changes)) if len(changes) >= ENOUGH_CHANGES else None


def moved(around: Sequence[Reading], series: Sequence[Reading]) -> tuple[CanaryChange, ...]:
    """Return which canaries moved among the readings `around` a pair; `series` is all readings, in order of time.

    A canary moved when its highest reading exceeds its lowest by more than its limit; one that jitters by itself is
    allowed `NOISES` times its usual change from reading to reading, up to `MOST_LIMITS` times the limit. A canary
    that was read once and not another time is reported as moved from 0.
    """
    found = []
    for canary in sorted({name for reading in around for name in reading}):
        values = [reading.get(canary, 0.0) for reading in around]
        low, high = min(values), max(values)
        usual = usual_change([reading[canary] for reading in series if canary in reading]) or 0.0
        limit = LIMITS.get(canary, OTHER_LIMIT)
        allowed = min(max(limit, math.expm1(NOISES * usual)), MOST_LIMITS * limit)
        if low <= 0 or high / low - 1 > allowed:
            found.append(CanaryChange(canary, low, high, allowed))
    return tuple(found)
