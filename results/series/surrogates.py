"""Surrogates: series in which nothing happens, drawn from the runs of series that were observed. Pure.

`docs/series.md`, *Significance*, says for which noise each way of drawing is right. All series of a drawing have the
same order, or the same signs: what they have in common stays in common.
"""

import numpy as np

from results.series.block import Floats
from results.series.calculator import FEWEST_RUNS_TO_JUDGE

ENDS = 20
"""A sign-flipped surrogate ends with any of so many newest runs: a real, young step would else look like chance."""


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
