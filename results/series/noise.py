"""The noise of a store's series while nothing changes: learned from all of them, used for each. Immutable values.

It is small, of a fixed size whatever the history, and goes into a file as JSON: learned now and then, by a process that
holds all series; then every series is judged on its own, anywhere.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from results.contract.document import decode
from results.series.block import Bools, Floats, Ints, Standard
from results.series.calculator import Prior

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


def autocorrelations(x: Floats, places: Ints) -> Floats:
    """Return each series' correlation of neighbours, corrected; means before and after `places` newest runs are off."""
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
class Autocorrelation:
    """The store's memory: how likely each of `GRID` is for a series of which nothing is known."""

    shares: tuple[float, ...] = field(default=USUAL)

    @property
    def mean(self) -> float:
        """Return the mean over the store's series."""
        return float(np.dot(GRID, self.shares))

    def chances(self, found: Floats, n: int) -> Floats:
        """Return how likely each of `GRID` (a row) is for each series (a column), given what its own `n` runs say."""
        weight = np.array(self.shares)[:, None] * _fits(found, np.full(len(found), n))
        return np.asarray(weight / np.sum(weight, axis=0))

    def likely(self, found: Floats, n: int) -> Floats:
        """Return the mean of that for each series."""
        at, table = self._table(n)
        return np.asarray(np.interp(found, at, table))

    def certain(self, n: int) -> bool:
        """Return whether what a series shows itself hardly changes what is thought of it."""
        return bool(np.ptp(self._table(n)[1]) < CERTAIN)

    def _table(self, n: int) -> tuple[Floats, Floats]:
        at = np.linspace(-1.0, 2.0, 301)
        return at, np.asarray(np.array(GRID) @ self.chances(at, n))


def _fits(found: Floats, counts: Ints) -> Floats:
    """Return how well each of `GRID` (a row) fits each series (a column); columns are scaled to be at most 1."""
    grid = np.array(GRID)[:, None]
    error = (1 - grid**2) * SCATTER / counts / (1 - BIAS_EACH / counts) ** 2
    log = -((found - grid) ** 2) / error / 2 - np.log(error) / 2
    return np.asarray(np.exp(log - np.max(log, axis=0)))


def pooled(found: Floats, counts: Ints) -> Autocorrelation:
    """Return what all series of a store say together: the shares that explain their figures best."""
    fits = _fits(found, counts)
    shares = np.array(USUAL)
    for _ in range(ROUNDS):
        each = shares[:, None] * fits
        seen = np.sum(each / np.sum(each, axis=0), axis=1) if len(found) else 0.0
        shares = (STRANGERS * np.array(USUAL) + seen) / (STRANGERS + len(found))
    return Autocorrelation(tuple(float(share) for share in shares))


@dataclass(frozen=True, slots=True)
class Spread:
    """How wide the series spread, as the variance ÷ level²: what is likely, and how many runs that knowledge is worth.

    `weight` is 0 when the series differ too much for one to say anything of another.
    """

    variance: float = 0.0
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Tail:
    """How often a score crosses b for the first time, for a series and a night: exp(`at` + `by` × b²) far out.

    `chances[i]` is that for b = `START` + i × `STEP`, counted; the curve takes over where counts are small.
    """

    chances: tuple[float, ...]
    at: float
    by: float

    def chance(self, scores: Floats) -> Floats:
        """Return the chance of so high a score, for each."""
        grid = START + STEP * np.arange(len(self.chances))
        counted = np.interp(scores, grid, np.log(self.chances))
        far = scores > grid[-1]
        return np.asarray(np.exp(np.where(far, self.at + self.by * scores * scores, counted)))

    def between(self, other: "Tail") -> "Tail":
        """Return the curve halfway between both; far out, halfway between their logarithms.

        A mean of logarithms would be too low on average, most of all where the curves of two nights differ widely.
        """
        grid: Floats = START + STEP * np.arange(max(len(self.chances), len(other.chances)), dtype=np.float64)
        both = (self.chance(grid) + other.chance(grid)) / 2
        at, by = (self.at + other.at) / 2, (self.by + other.by) / 2
        return Tail(tuple(float(chance) for chance in both), at, by)

    def score(self, chance: float) -> float:
        """Return the score that has this chance. Raise ValueError when the chance is not small."""
        found = np.flatnonzero(np.array(self.chances) > chance)
        if len(found) == len(self.chances):
            return math.sqrt((math.log(chance) - self.at) / self.by)
        if len(found) == 0 or found[-1] != len(found) - 1:
            raise ValueError(f"a chance of {chance:g}: expected a small one, below {min(self.chances):g}")
        last = int(found[-1])
        high, low = math.log(self.chances[last]), math.log(self.chances[last + 1])
        return START + STEP * (last + (high - math.log(chance)) / (high - low))


START, STEP, TOP = 2.0, 0.05, 6.0
NORMAL = -0.34
"""Where the curve lies for normal noise, simulated: exp(`NORMAL` − b² ÷ 2)."""


def score_grid() -> Floats:
    """Return the scores for which chances are counted, at most."""
    return np.asarray(START + STEP * np.arange(round((TOP - START) / STEP) + 1), np.float64)


def at_least_normal(tail: Tail) -> Tail:
    """Return the curve, but nowhere below that of normal noise.

    Series that are constant, or nearly, are counted and never score. The curve of a store that is mostly made of them
    falls very low: the first of them that begins to scatter would alarm within days.
    """
    scores = score_grid()
    found, normal = tail.chance(scores), np.exp(NORMAL - scores * scores / 2)
    if (found >= normal * ROUNDED).all():
        return tail
    at, by = (tail.at, tail.by) if found[-1] >= normal[-1] else (NORMAL, -0.5)
    return Tail(tuple(float(chance) for chance in np.maximum(found, normal)), at, by)


def highest(tails: Sequence[Tail]) -> Tail:
    """Return the curve that is at each score the highest of these; far out, that of the highest at the end."""
    grid = score_grid()
    chances = np.max([tail.chance(grid) for tail in tails], axis=0)
    last = max(tails, key=lambda tail: float(tail.chance(grid[-1:])[0]))
    return Tail(tuple(float(chance) for chance in chances), last.at, last.by)


ROUNDED = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Noise:
    """The memory, the spread, and how high scores get by luck; from so many series."""

    memory: Autocorrelation
    spread: Spread
    tail: Tail
    series: int

    def after(self, before: "Noise") -> "Noise":
        """Return this noise, just learned, with a curve halfway to that of before: shuffles have luck.

        A curve that jumps up and down lets scores through that neither would let through alone.
        """
        return replace(self, tail=self.tail.between(before.tail))

    def stricter(self, before: "Noise", night: float) -> "Noise":
        """Return this noise, learned of series that have grown, with the curve of before when that asks for more.

        Of ten runs there are few orders, so that the curve of a young store's first nights is the least certain.
        """
        chance = night / max(self.series, 100)
        return self if self.tail.score(chance) >= before.tail.score(chance) else replace(self, tail=before.tail)

    def to_json(self) -> str:
        """Return the noise as one line."""
        return json.dumps({"version": 1, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> "Noise":
        """Read it back. Raise ValueError for a version that is not known.

        Earlier versions may have learned a curve that is too low; it is lifted here.
        """
        found: dict[str, Any] = json.loads(text)
        if (version := found.pop("version", None)) != 1:
            raise ValueError(f"noise of version {version}: expected 1; learn it again")
        noise = decode(cls, found, "noise")
        return replace(noise, tail=at_least_normal(noise.tail))


LIKE = 3.0
"""A series whose variance is more than so many times another than the store's, either way, is judged by its own."""
WIDEST = 0.5
"""So is one whose scale is more than that fraction of its level: its runs lie around 0."""


def relative(standard: Standard) -> tuple[Floats, Bools]:
    """Return the factors from a variance of `x` to one ÷ level², and whether a series has a level to speak of."""
    level = np.abs(standard.centre)
    fits = (standard.scale > 0) & (standard.scale < WIDEST * level)
    return np.where(fits, standard.scale / np.where(fits, level, 1.0), 1.0) ** 2, fits


def prior_of(standard: Standard, memory: Floats, variance: Floats, spread: Spread) -> Prior:
    """Return what is known of those series; `variance` is their own, of `x`."""
    factor, fits = relative(standard)
    likely = spread.variance / factor
    alike = fits & (variance < LIKE * likely) & (variance * LIKE > likely)
    return Prior(memory, np.where(alike, likely, 1.0), np.where(alike, spread.weight, 0.0))
