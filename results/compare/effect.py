"""The effect of one variant against another, from pairs of values measured next to each other. Pure.

`docs/comparing.md`, *The statistics*, has the maths. A measure that may be 0 has no ratio: its effect is a `Shift` in
the measure's unit. An interval and its p come from one distribution, so that they never contradict each other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

MOST_PAIRS = 1000
"""Beyond that the chances leave the range of a double."""


@lru_cache(maxsize=128)
def cumulative(n: int) -> npt.NDArray[np.float64]:
    """Return P(T ≤ t) for t = 0 … n(n+1)/2, where T is the sum of a random subset of the ranks 1 … n.

    This is Wilcoxon's signed-rank distribution. SciPy offers its test, not the distribution that intervals need.
    """
    if not 0 <= n <= MOST_PAIRS:
        raise ValueError(f"{n} pairs: expected 0 to {MOST_PAIRS}")
    chance = np.ones(1)
    for rank in range(1, n + 1):
        grown = np.zeros(len(chance) + rank)
        grown[: len(chance)] += chance / 2
        grown[rank:] += chance / 2
        chance = grown
    found = np.minimum(np.cumsum(chance), 1.0)
    found.setflags(write=False)
    return found


def tail(n: int, t: int) -> float:
    """Return P(T ≤ t)."""
    table = cumulative(n)
    return 0.0 if t < 0 else float(table[min(t, len(table) - 1)])


def cut(n: int, alpha: float) -> int:
    """Return the largest k with 2 P(T ≤ k) ≤ `alpha`; 0 when there is none, as with few pairs."""
    return max(int(np.searchsorted(cumulative(n), alpha / 2, side="right")) - 1, 0)


def confidence(n: int, k: int) -> float:
    """Return the exact confidence of an interval that leaves out `k` Walsh averages at each end."""
    return 1.0 - 2.0 * tail(n, k)


def at_least(now: int, of: int, cases: int, runs: int) -> float:
    """Return the chance that `now` or more of `cases` among `runs` lie in `of` of them (Fisher's exact test)."""
    ways = sum(math.comb(cases, k) * math.comb(runs - cases, of - k) for k in range(now, min(of, cases) + 1))
    return ways / math.comb(runs, of)


CONFIDENCE = 0.95
POWER_FACTOR = 1 + 0.8416 / 1.96
"""From an interval's half width to the effect that is found in 80 % of all series: 1.96 and 0.84 standard errors."""


@dataclass(frozen=True, slots=True)
class _Estimate:
    """An interval from `pairs` pairs, and the exact confidence which that interval has.

    `p` is two-sided, for the hypothesis that there is no effect. `half_width` is that of the interval of the
    differences.
    """

    pairs: int
    low: float
    high: float
    confidence: float
    p: float
    half_width: float

    def pairs_for(self, half_width: float) -> int:
        """Return how many pairs with this spread would give an interval of that half width."""
        if half_width <= 0:
            raise ValueError(f"half width {half_width}: must be above 0")
        return max(math.ceil(self.pairs * (self.half_width / half_width) ** 2), 1)


@dataclass(frozen=True, slots=True)
class Effect(_Estimate):
    """Candidate ÷ baseline: the ratio, and its interval.

    The half width is that of the logarithm: about the fraction by which the ratio is uncertain.
    """

    ratio: float

    def detectable(self, threshold: float) -> float:
        """Return the smallest slowdown, as a fraction, that as many such pairs would find in 80 % of cases."""
        return math.expm1(math.log1p(threshold) + POWER_FACTOR * self.half_width)


@dataclass(frozen=True, slots=True)
class Shift(_Estimate):
    """Candidate − baseline in the measure's unit, and its interval; `limit` is the smallest difference that counts."""

    difference: float
    limit: float


def log_ratios(pairs: Sequence[tuple[float, float]]) -> npt.NDArray[np.float64]:
    """Return log(candidate ÷ baseline) of each (baseline, candidate). Raise ValueError for what has no logarithm."""
    for baseline, candidate in pairs:
        if not (0 < baseline < math.inf and 0 < candidate < math.inf):
            raise ValueError(f"a pair of {baseline} and {candidate}: both must be above 0 to have a ratio")
    values = np.asarray(pairs, np.float64).reshape(-1, 2)
    return np.log(values[:, 1]) - np.log(values[:, 0])


@lru_cache(maxsize=16)
def _index_pairs(n: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the i and j of all i ≤ j below `n`."""
    return np.triu_indices(n)


def walsh_averages(differences: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return (dᵢ + dⱼ) / 2 for all i ≤ j, in order of size."""
    i, j = _index_pairs(len(differences))
    return np.sort((differences[i] + differences[j]) / 2)


def effect_of(averages: npt.NDArray[np.float64], n: int, wanted: float = CONFIDENCE) -> Effect:
    """Return the effect over `n` pairs from the Walsh averages of their `log_ratios`.

    The interval has at least the confidence `wanted` from 6 pairs on (for 0.95); with fewer it is as wide as the data
    and says which confidence that gives.
    """
    k = cut(n, 1 - wanted)
    low, high = float(averages[k]), float(averages[-1 - k])
    return Effect(
        pairs=n,
        low=math.exp(low),
        high=math.exp(high),
        confidence=confidence(n, k),
        p=_p_of_none(averages, n),
        half_width=(high - low) / 2,
        ratio=math.exp(_median(averages)),
    )


def shift_of(averages: npt.NDArray[np.float64], n: int, limit: float, wanted: float = CONFIDENCE) -> Shift:
    """Return the shift over `n` pairs from the Walsh averages of their differences in the measure's unit."""
    k = cut(n, 1 - wanted)
    low, high = float(averages[k]), float(averages[-1 - k])
    none, half_width = _p_of_none(averages, n), (high - low) / 2
    return Shift(n, low, high, confidence(n, k), none, half_width, _median(averages), limit)


def _median(averages: npt.NDArray[np.float64]) -> float:
    # They are in order: the median is in their middle.
    middle = len(averages) // 2
    return (float(averages[middle]) + float(averages[-1 - middle])) / 2


def _p_of_none(averages: npt.NDArray[np.float64], n: int) -> float:
    return min(1.0, 2 * min(p_above(averages, n, 0.0), p_below(averages, n, 0.0)))


def p_above(averages: npt.NDArray[np.float64], n: int, bound: float) -> float:
    """Return how likely so high differences are when the true one is at most `bound`, ties counted."""
    return tail(n, int(np.searchsorted(averages, bound, side="right")))


def p_below(averages: npt.NDArray[np.float64], n: int, bound: float) -> float:
    """Return how likely so low differences are when the true one is at least `bound`, ties counted."""
    return tail(n, len(averages) - int(np.searchsorted(averages, bound, side="left")))


FEWEST_SEPARATED = 3
"""The fewest pairs of which anything can be said, and then of a large effect alone."""
LARGE = math.log(1.25)
"""The gap between the runs of two variants, as a logarithm, from which `p_separated` says anything."""
LEAST_SPREAD = 0.01
"""Runs scatter at least that much, as a logarithm, whatever a few of them look like."""


def p_separated(lower: npt.NDArray[np.float64], higher: npt.NDArray[np.float64], shift: float = 0.0) -> float:
    """Return how likely all of `higher` lie so far beyond all of `lower` when the true difference is not above `shift`.

    The values are logarithms of as many runs each, one of each pair. It is 1 where the gap between them is not `LARGE`.
    The derivation is in `docs/comparing.md`, *A large effect*.
    """
    n = len(lower)
    gap = float(np.min(higher) - np.max(lower)) if n >= FEWEST_SEPARATED else 0.0
    if gap < LARGE:
        return 1.0
    spread = max(float(np.max(np.abs(side - np.median(side)))) for side in (lower, higher))
    times = max((gap - shift) / max(spread, LEAST_SPREAD), 1.0)
    return float(2.0**-n * times ** -(2 * n - 2))


def binomial_interval(found: int, of: int) -> tuple[float, float]:
    """Return Clopper and Pearson's 95 % interval of a probability of which `found` in `of` was observed."""
    # SciPy's statistics take a second to import, and few of the commands that import this module need an interval.
    from scipy.stats import binomtest

    interval = binomtest(found, of).proportion_ci(CONFIDENCE, method="exact")
    return float(interval.low), float(interval.high)
