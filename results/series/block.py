"""Matrices of series, a column each, and their values on one scale with outliers limited. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
"""Or of 32 bits, where many shuffled series are scored and speed counts."""
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
MOST_RUNS = 60
"""So many of the newest runs since the last change are judged."""


def present(values: Sequence[float | None]) -> list[int]:
    """Where there is a value: a run without one (None, NaN, infinite) is a missing night, and is left out."""
    return [at for at, value in enumerate(values) if value is not None and math.isfinite(value)]


@dataclass(frozen=True, slots=True)
class Block:
    """`values[row, series]`, the newest run in the last row; `counts` says how many rows, from the last, a series has.

    Rows above that are NaN. Missing nights are gone: a series' neighbours in the block are its neighbouring runs.
    """

    values: Floats
    counts: Ints

    @classmethod
    def of(cls, series: Sequence[Sequence[float | None]], most: int = MOST_RUNS) -> "Block":
        """The newest `most` runs of each series, given oldest first."""
        values = np.full((most, len(series)), np.nan)
        counts = np.zeros(len(series), np.int64)
        for at, runs in enumerate(series):
            newest = np.array([runs[i] for i in present(runs)[-most:]], np.float64)
            counts[at] = len(newest)
            if len(newest):
                values[-len(newest) :, at] = newest
        return cls(values, counts)

    def groups(self, fewest: int) -> "Iterator[tuple[Ints, Floats]]":
        """For each length from `fewest` on: which series have it, and their runs, a column each."""
        for n in np.unique(self.counts):
            if n >= fewest:
                members = np.flatnonzero(self.counts == n)
                yield members, np.ascontiguousarray(self.values[-int(n) :, members])


CLIP = 4.0
"""A run counts at most so many scales from the middle of its series."""
TO_SIGMA = 1.4826
"""From the median absolute deviation of normal noise to its standard deviation."""
FROM_MEAN = 1.2533
"""From the mean absolute deviation, the same."""
SMALLEST = 1e-12
"""A spread below this fraction of the level is that of rounding."""


@dataclass(frozen=True, slots=True)
class Standard:
    """`x` = (value − centre) ÷ scale, at most `CLIP` either way; a column is a series. A constant series is all 0."""

    x: Floats
    centre: Floats
    scale: Floats


def standardise(values: Floats) -> Standard:
    """Columns on one scale: the median is 0, the median absolute deviation that of normal noise with σ = 1.

    Where more than half of the runs are alike, so that the median deviation is 0, the mean deviation is the scale.
    """
    centre = np.median(values, axis=0)
    away = np.abs(values - centre)
    scale = TO_SIGMA * np.median(away, axis=0)
    rounding = SMALLEST * np.abs(centre)
    scale = np.where(scale > rounding, scale, FROM_MEAN * np.mean(away, axis=0))
    scale = np.where(scale > rounding, scale, 0.0)
    x = (values - centre) / np.where(scale > 0, scale, np.inf)
    return Standard(np.clip(x, -CLIP, CLIP), centre, scale)
