"""Surrogates: series in which nothing happens, drawn from the runs of series that were observed. Pure.

Two ways of drawing, each right for noise of which the other knows nothing:

- `Reordered`: the runs in any order. Right for noise of any distribution that stays the same from night to night.
- `SignFlipped`: each run where it was, above or below the level by chance. Right for noise whose scatter comes and
  goes, if it is as wide above the level as below it. Three runs of a wild week lie together, so they are on one side
  of a calm history more often than an order by chance would have it.

All series of a drawing have the same order, or the same signs: what they have in common stays in common.
"""

from typing import Protocol

import numpy as np

from results.series.block import Floats
from results.series.calculator import FEWEST_RUNS_TO_JUDGE

ENDS = 20
"""A sign-flipped surrogate ends with any of so many newest runs.

A real step that is a few runs old has its runs on one side with each fourth drawing, which looks like chance. It is at
the end of one surrogate in `ENDS`, so that it hardly raises the curve of 100 series.
"""


class Surrogates(Protocol):
    """Draws surrogates of the same series again and again."""

    def draw(self, rng: np.random.Generator, times: int) -> Floats:
        """Return `times` drawings of all series side by side: runs × (times · series), oldest run first."""
        ...


class Reordered:
    """Every order of the runs is as likely; `x` are distances from the level without autocorrelation, runs × series."""

    def __init__(self, x: Floats) -> None:
        self.x = x

    def draw(self, rng: np.random.Generator, times: int) -> Floats:
        """Return drawings of as many runs as there are."""
        n, count = self.x.shape
        order = np.argsort(rng.random((n, times)), axis=0)
        return np.ascontiguousarray(self.x[order].reshape(n, times * count))


class SignFlipped:
    """Every sign of each run is as likely; `x` as in `Reordered`."""

    def __init__(self, x: Floats) -> None:
        self.x = x

    def draw(self, rng: np.random.Generator, times: int) -> Floats:
        """Return drawings that end up to `ENDS` runs earlier, all alike."""
        n, count = self.x.shape
        n -= int(rng.integers(max(1, min(ENDS, n - FEWEST_RUNS_TO_JUDGE + 1))))
        signs = np.where(rng.random((n, times, 1)) < 0.5, -1, 1).astype(self.x.dtype)
        return np.ascontiguousarray((self.x[:n, None, :] * signs).reshape(n, times * count))
