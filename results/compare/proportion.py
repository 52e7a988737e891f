"""The interval of a probability that was observed in some of several plays."""

from results.compare.effect import CONFIDENCE


def binomial_interval(found: int, of: int) -> tuple[float, float]:
    """Return Clopper and Pearson's 95 % interval of a probability of which `found` in `of` was observed."""
    # SciPy's statistics take a second to import, and few of the commands that import this module need an interval.
    from scipy.stats import binomtest

    interval = binomtest(found, of).proportion_ci(CONFIDENCE, method="exact")
    return float(interval.low), float(interval.high)
