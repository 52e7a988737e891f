"""The test for a large change: the probability that the newest runs lie so far from all earlier ones by chance. Pure.

The scan of `calculator` shares what it knows among all lengths and limits outliers. So three runs of a young series
cannot be very unlikely for it, however far they are. This test asks one question alone, and its chance has no floor.
The derivation is in `docs/series.md`, *A large change*.
"""

import numpy as np

from results.series.block import Floats
from results.series.calculator import FEWEST_AFTER, FEWEST_RUNS_TO_JUDGE, of_mean

TAIL = 2.0
"""A run is d times as far as the farthest before with a chance of d^-`TAIL` at most, as of noise without a variance."""
OUTLIERS = 10
"""Of so many earlier runs one may be an outlier that says nothing of their spread."""


def separation(values: Floats, memory: Floats) -> Floats:
    """Return for each series (a column, oldest run first) the chance of newest runs that far from the others.

    It is 1 where the newest `FEWEST_AFTER` do not all lie beyond the others on one side, and of short series.
    """
    k, n = FEWEST_AFTER, len(values) - FEWEST_AFTER
    if n < FEWEST_RUNS_TO_JUDGE:
        return np.ones(values.shape[1])
    scaled = _logarithms(values)
    before, after = scaled[:n], scaled[n:]
    centre = np.median(before, axis=0)
    spread = np.sort(np.abs(before - centre), axis=0)[::-1]
    away = after - centre
    one_sided = (away > 0).all(axis=0) | (away < 0).all(axis=0)
    nearest = np.where(one_sided, np.min(np.abs(away), axis=0), 0.0)
    own = np.max(np.abs(after - np.median(after, axis=0)), axis=0)
    worth_n, worth_k = 1 / of_mean(n, memory), 1 / of_mean(k, memory)
    most = n // OUTLIERS
    found = np.ones(values.shape[1])
    for outliers in range(most + 1):
        widest = np.maximum(spread[outliers], own)
        times = np.divide(nearest, widest, out=np.full(len(widest), np.inf), where=widest > 0)
        times = np.where(nearest > 0, times, 0.0)
        first = np.exp(_log_choices(worth_k + outliers, worth_k) - _log_choices(worth_n + worth_k, worth_k))
        power = min(TAIL * k, n - outliers + k - 2)
        chance = (most + 1) * first * np.maximum(times, 1.0) ** -power
        found = np.minimum(found, np.where(times >= 1, chance, 1.0))
    return found


def _logarithms(values: Floats) -> Floats:
    """Return the logarithms of series whose runs are all above 0, and other series as they are.

    Noise of a larger level is larger: three runs at twice the level scatter twice as much.
    """
    positive = (values > 0).all(axis=0)
    return np.where(positive, np.log(np.where(positive, values, 1.0)), values)


def _log_choices(of: Floats, taken: Floats) -> Floats:
    """Return the logarithm of the binomial coefficient, for numbers that need not be whole."""
    # SciPy takes half a second to import, and only series that can be judged need it.
    from scipy.special import gammaln

    return np.asarray(gammaln(of + 1) - gammaln(taken + 1) - gammaln(of - taken + 1))
