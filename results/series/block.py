"""Matrices of series, a column each, and their values on one scale with outliers limited. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
"""The 32-bit type, for scoring many surrogates fast."""
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
MOST_RUNS = 60
"""The largest number of newest runs since the last change that are judged."""


def present(values: Sequence[float | None]) -> list[int]:
    """Return where there is a value. A run without one (None, NaN, infinite) is a missing night and is left out."""
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
        """Return the block of the newest `most` runs of each series, given oldest first."""
        values = np.full((most, len(series)), np.nan)
        counts = np.zeros(len(series), np.int64)
        for at, runs in enumerate(series):
            newest = np.array([runs[i] for i in present(runs)[-most:]], np.float64)
            counts[at] = len(newest)
            if len(newest):
                values[-len(newest) :, at] = newest
        return cls(values, counts)

    def groups(self, fewest: int) -> "Iterator[tuple[Ints, Floats]]":
        """Return, for each length from `fewest` on, the series that have it and their runs, one column each."""
        for n in np.unique(self.counts):
            if n >= fewest:
                members = np.flatnonzero(self.counts == n)
                yield members, np.ascontiguousarray(self.values[-int(n) :, members])


CLIP = 4.0
"""The largest distance of a run from the middle of its series, in scales."""
TO_SIGMA = 1.4826
"""From the median absolute deviation of normal noise to its standard deviation."""
FROM_MEAN = 1.2533
"""From the mean absolute deviation, the same."""
SMALLEST = 1e-12
"""A spread below this fraction of the level is that of rounding."""


@dataclass(frozen=True, slots=True)
class Standard:
    """Return (value − centre) ÷ scale, at most `CLIP` either way; a column is a series. A constant series is all 0."""

    x: Floats
    centre: Floats
    scale: Floats


def standardise(values: Floats) -> Standard:
    """Return columns on one scale: the median is 0, the median absolute deviation that of normal noise with σ = 1.

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
