"""Surrogates: series in which nothing happens, drawn from the runs of series that were observed. Pure.

Two ways of drawing, each right for noise of which the other knows nothing:

- `reordered`: the runs in any order. Right for noise of any distribution that stays the same from night to night.
- `sign_flipped`: each run where it was, above or below the level by chance. Right for noise whose scatter comes and
  goes, if it is as wide above the level as below it. Three runs of a wild week lie together, so they are on one side
  of a calm history more often than an order by chance would have it.

All series of a drawing have the same order, or the same signs: what they have in common stays in common.
"""

import numpy as np

from results.series.block import Floats
from results.series.calculator import FEWEST_RUNS_TO_JUDGE

ENDS = 20
"""A sign-flipped surrogate ends with any of so many newest runs.

A real step that is a few runs old has its runs on one side with each fourth drawing, which looks like chance. It is at
the end of one surrogate in `ENDS`, so that it hardly raises the curve of 100 series.
"""


def reordered(x: Floats, rng: np.random.Generator, times: int) -> Floats:
    """Return `times` drawings of all series side by side, runs × (times · series), oldest run first.

    Every order of the runs is as likely; `x` are distances from the level without autocorrelation, runs × series.
    """
    n, count = x.shape
    order = np.argsort(rng.random((n, times)), axis=0)
    return np.ascontiguousarray(x[order].reshape(n, times * count))


def sign_flipped(x: Floats, rng: np.random.Generator, times: int) -> Floats:
    """Return the same where every sign of each run is as likely; all drawings end up to `ENDS` runs earlier."""
    n, count = x.shape
    n -= int(rng.integers(max(1, min(ENDS, n - FEWEST_RUNS_TO_JUDGE + 1))))
    signs = np.where(rng.random((n, times, 1)) < 0.5, -1, 1).astype(x.dtype)
    return np.ascontiguousarray((x[:n, None, :] * signs).reshape(n, times * count))
