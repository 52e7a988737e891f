"""Series brought to one scale, their outliers held in: so that one wild run weighs no more than a few others. Pure."""

from dataclasses import dataclass

import numpy as np

from results.series.block import Floats

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
