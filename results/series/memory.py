"""How much a run remembers of the run before: estimated for each series, and drawn towards what the store shows. Pure.

Sixty runs tell a correlation to ± 0.13 at best, and what is taken for 0 but is 0.3 doubles an error bar's square. A
thousand series know much better what memory there is in this store: each series' own figure is weighed against theirs.
"""

from dataclasses import dataclass, field

import numpy as np

from results.series.block import Floats, Ints

GRID = tuple(step / 10 for step in range(10))
"""The memories a series may have. No series is taken to remember more than 0.9, nor to swing from side to side."""
STRANGERS = 5
"""The store begins with so many series of `USUAL` memory: with few series little is known."""
USUAL = (0.3, 0.15, 0.12, 0.1, 0.09, 0.08, 0.07, 0.05, 0.03, 0.01)
ROUNDS = 60
"""Of the search for the memories that explain best what the series show."""


SCATTER = 1.2
"""The variance of the raw estimate ÷ (1 − φ²) ÷ n: simulated, 0.8 to 1.4 for φ from 0 to 0.6."""
BIAS_ALWAYS, BIAS_EACH = 3.1, 7.1
"""The raw estimate falls short by (3.1 + 7.1 φ) ÷ n: simulated, for n from 13 to 60, φ from 0 to 0.8. The reason is
that a mean was taken off each part, split where that fits best."""
SPLIT_WITH = 0.3
"""The memory that is assumed for the split."""


def memories(x: Floats, places: Ints) -> Floats:
    """Each series' correlation of neighbours, the means before and after `places` newest runs taken off, corrected."""
    n, column = len(x), np.arange(x.shape[1])
    m = n - places
    upto = np.cumsum(x, axis=0)
    old = upto[m - 1, column]
    new = upto[-1] - old
    before, after = old / m, new / places
    power = np.einsum("ij,ij->j", x, x) - m * before**2 - places * after**2
    beside = np.einsum("ij,ij->j", x[1:], x[:-1])
    left, right = x[m - 1, column], x[m, column]
    beside = beside - before * (2 * old - x[0] - left) + (m - 1) * before**2
    beside = beside - after * (2 * new - right - x[-1]) + (places - 1) * after**2
    beside = beside - before * right - after * left + before * after
    raw = np.where(power > 0, beside / np.where(power > 0, power, 1.0), 0.0)
    return np.asarray((raw + BIAS_ALWAYS / n) / (1 - BIAS_EACH / n))


CERTAIN = 0.05


@dataclass(frozen=True, slots=True)
class Memory:
    """The store's memory: how likely each of `GRID` is for a series of which nothing is known."""

    shares: tuple[float, ...] = field(default=USUAL)

    @property
    def mean(self) -> float:
        """Over the store's series."""
        return float(np.dot(GRID, self.shares))

    def chances(self, found: Floats, n: int) -> Floats:
        """How likely each of `GRID` (a row) is for each series (a column), given what its own `n` runs say."""
        weight = np.array(self.shares)[:, None] * _fits(found, np.full(len(found), n))
        return np.asarray(weight / np.sum(weight, axis=0))

    def likely(self, found: Floats, n: int) -> Floats:
        """The mean of that for each series."""
        at, table = self._table(n)
        return np.asarray(np.interp(found, at, table))

    def certain(self, n: int) -> bool:
        """Whether what a series shows itself hardly changes what is thought of it."""
        return bool(np.ptp(self._table(n)[1]) < CERTAIN)

    def _table(self, n: int) -> tuple[Floats, Floats]:
        at = np.linspace(-1.0, 2.0, 301)
        return at, np.asarray(np.array(GRID) @ self.chances(at, n))


def _fits(found: Floats, counts: Ints) -> Floats:
    """How well each of `GRID` (a row) fits what each series (a column) shows; columns are scaled to be at most 1."""
    grid = np.array(GRID)[:, None]
    error = (1 - grid**2) * SCATTER / counts / (1 - BIAS_EACH / counts) ** 2
    log = -((found - grid) ** 2) / error / 2 - np.log(error) / 2
    return np.asarray(np.exp(log - np.max(log, axis=0)))


def pooled(found: Floats, counts: Ints) -> Memory:
    """What all series of a store say together: the shares that explain their figures best (a mixture's likeliest)."""
    fits = _fits(found, counts)
    shares = np.array(USUAL)
    for _ in range(ROUNDS):
        each = shares[:, None] * fits
        seen = np.sum(each / np.sum(each, axis=0), axis=1) if len(found) else 0.0
        shares = (STRANGERS * np.array(USUAL) + seen) / (STRANGERS + len(found))
    return Memory(tuple(float(share) for share in shares))
