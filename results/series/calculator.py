"""The calculator of change scores: the newest runs of a series against the earlier ones. Pure, and replaceable.

`docs/series.md`, *Calculator*, has the maths.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np

from results.series.block import Floats, Ints

FEWEST_AFTER = 3
"""The fewest runs that make a new level: one or two wild runs never do."""
FEWEST_RUNS_TO_JUDGE = 10
"""The fewest runs, or nights of history, of a series that can be judged."""
YOUNG = 30
"""In a series of at most so many runs, the level before a change may have as few runs as the level after it."""
FEWEST_BEFORE = 10
"""In longer series a level before the change has at least so many runs."""
PRIOR = 6
"""The variance of the newest runs alone is averaged with the pooled variance, which weighs as much as so many runs."""
LEAST_VARIANCE = 1e-9
BESIDE = 0.7
"""What being wrong by one run is worth, where the likeliest length of the newest level is sought."""


@dataclass(frozen=True, slots=True)
class Prior:
    """The known noise of each series besides its runs; all arrays have one entry a series.

    `memory` is the correlation of neighbouring runs (0 to 1). `variance` is the likely variance by the store's series,
    in units of `x`. It weighs as much as `weight` runs (0: only the series' own runs count).
    """

    memory: Floats
    variance: Floats
    weight: Floats
    _of_mean: dict[int, Floats] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def blank(cls, count: int, memory: float = 0.0) -> "Prior":
        """Return a prior that knows the memory alone."""
        return cls(np.full(count, memory), np.ones(count), np.zeros(count))

    def take(self, index: Ints) -> "Prior":
        """Return the prior of these series, in this order."""
        return Prior(self.memory[index], self.variance[index], self.weight[index])

    def of_mean(self, k: int) -> Floats:
        """Return `of_mean` of `k` runs, kept: a scan of many nights asks for it again and again."""
        if k not in self._of_mean:
            self._of_mean[k] = of_mean(k, self.memory)
        return self._of_mean[k]


class Calculator(Protocol):
    """Scores standardised runs `x` (a column a series, newest last)."""

    def scores(self, x: Floats, prior: Prior, back: int = 0) -> Floats:
        """Return how clearly each series changed, as of `back` nights ago, on any scale; 0 is not at all."""
        ...

    def places(self, x: Floats, prior: Prior, fine: bool = True) -> Ints:
        """Return how many runs each series has since its likeliest change; roughly when not `fine`."""
        ...


@lru_cache(maxsize=256)
def lengths(n: int, every: bool = False) -> tuple[int, ...]:
    """Return the numbers of newest runs, ascending, that are tried as the level after a change among `n` runs.

    With `every`, return all of them. Otherwise leave some out, where the shorter of the two levels is long.
    """
    before = FEWEST_AFTER if n <= YOUNG else FEWEST_BEFORE
    most = n - before if n <= YOUNG else n // 2
    tried = list(range(FEWEST_AFTER, most + 1))
    if every or n <= 2 * FEWEST_RUNS_TO_JUDGE:
        return tuple(tried)
    thin, last = [], 0
    for k in tried:
        near = min(k, n - k)
        if k - last >= max(1, round(near / 6)):
            thin.append(k)
            last = k
    return tuple(thin)


def of_mean(k: int, memory: Floats) -> Floats:
    """Return the variance of the mean of `k` runs ÷ that of one run, with this correlation between neighbours."""
    if not memory.any():
        return np.asarray(np.full_like(memory, 1 / k))
    rest = 1 - memory
    # Not memory**k: what underflows costs a hundred times as much.
    power = np.exp(np.maximum(k * np.log(np.maximum(memory, 1e-6)), -40.0))
    return np.asarray(((1 + memory) / rest - 2 * memory * (1 - power) / (k * rest**2)) / k)


def to_normal(t2: Floats, dof: Floats) -> Floats:
    """Return a squared Student deviate as the normal deviate of the same chance (Wallace 1959: within 1 % here)."""
    return np.asarray((8 * dof + 1) / (8 * dof + 3) * np.sqrt(dof * np.log1p(t2 / dof)))


class StepScan:
    """The calculator of the newest runs: a step after each number of them."""

    def scores(self, x: Floats, prior: Prior, back: int = 0) -> Floats:
        """Return the largest deviate over all tried lengths."""
        seen = x[: len(x) - back]
        best = np.zeros(x.shape[1], x.dtype)
        for _, t2, _ in deviates(seen, prior):
            np.maximum(best, t2, out=best)
        return to_normal(best, prior.weight + (len(seen) - 2))

    def places(self, x: Floats, prior: Prior, fine: bool = True) -> Ints:
        """Return, roughly, the length with the largest deviate; finely, the likeliest one, its neighbours counted in.

        Of a small step a single length is rarely likely by itself; `BESIDE` is what being wrong by one run is worth.
        """
        best = np.zeros(x.shape[1], x.dtype)
        rough, spread = np.full(x.shape[1], FEWEST_AFTER, np.int64), np.ones(x.shape[1], x.dtype)
        for k, t2, own in deviates(x, prior):
            rough, spread = np.where(t2 > best, k, rough), np.where(t2 > best, own, spread)
            np.maximum(best, t2, out=best)
        if not fine:
            return rough
        tried, n = lengths(len(x), every=True), len(x)
        sums = running(x[::-1])
        each = np.array(tried)[:, None]
        newest = sums[np.array(tried) - 1]
        step = newest / each - (sums[-1] - newest) / (n - each)
        weight = 1 / np.stack([prior.of_mean(n - one) + prior.of_mean(one) for one in tried])
        log = step * step * weight / spread / 2
        likely = np.exp(log - np.max(log, axis=0))
        around = likely.copy()
        around[1:] += BESIDE * likely[:-1]
        around[:-1] += BESIDE * likely[1:]
        return np.asarray(np.array(tried)[np.argmax(around, axis=0)])


def running(x: Floats) -> Floats:
    """Return the sums from the first row to each, of the shape of `x` (runs × series); faster than `numpy.cumsum`."""
    sums = np.empty_like(x)
    sums[0] = x[0]
    for row in range(1, len(x)):
        np.add(sums[row - 1], x[row], out=sums[row])
    return sums


def deviates(x: Floats, prior: Prior) -> Iterator[tuple[int, Floats, Floats]]:
    """Yield for each length that is tried: (length, squared deviate of each series, pooled variance of its runs).

    `x` has a row for each run, oldest first, and a column for each series. Variances are in units of `x` squared.
    """
    n = len(x)
    runs = x[::-1]
    sums, squares = running(runs), running(runs * runs)
    total = sums[-1]
    around = squares[-1] - total * total / n
    for k in lengths(n):
        m = n - k
        new = sums[k - 1]
        step = new / k - (total - new) / m
        own = np.maximum((around - step * step * (k * m / n)) / (n - 2), LEAST_VARIANCE)
        spread = (prior.weight * prior.variance + (n - 2) * own) / (prior.weight + (n - 2))
        wild = (PRIOR * spread + squares[k - 1] - new * new / k) / (PRIOR + k - 1)
        error = spread * prior.of_mean(m) + np.maximum(spread, wild) * prior.of_mean(k)
        yield k, step * step / error, spread
