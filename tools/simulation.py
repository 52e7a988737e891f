"""Series whose truth is known: noise of several families, with or without a step. Pure: the seed is given."""

from collections.abc import Callable, Mapping

import numpy as np

from results.series.block import Floats

Family = Callable[[np.random.Generator, int, int], Floats]
"""(generator, nights, series) → noise; its bulk has the standard deviation 1."""
BEFORE = 100
"""What remembers is begun so many nights earlier."""
FAR_AT = 0.03
"""The σ, as a fraction of the level, for which `far_outliers` are as far off as they say."""


def gaussian(rng: np.random.Generator, nights: int, series: int) -> Floats:
    """Normal."""
    return np.asarray(rng.standard_normal((nights, series)))


def heavy(rng: np.random.Generator, nights: int, series: int) -> Floats:
    """Student's t with 3 degrees of freedom, its standard deviation made 1."""
    return np.asarray(rng.standard_t(3, (nights, series)) / np.sqrt(3.0))


def remembering(memory: float) -> Family:
    """Normal, each run remembering that part of the run before: AR(1); the standard deviation of the runs is 1."""

    def draw(rng: np.random.Generator, nights: int, series: int) -> Floats:
        noise = rng.standard_normal((BEFORE + nights, series))
        noise[1:] *= np.sqrt(1 - memory**2)
        for night in range(1, len(noise)):
            noise[night] += memory * noise[night - 1]
        return np.asarray(noise[BEFORE:])

    return draw


def outliers(rng: np.random.Generator, nights: int, series: int) -> Floats:
    """Normal, but 3 % of the runs lie 5 to 10 σ off, to either side."""
    noise = rng.standard_normal((nights, series))
    wild = rng.random(noise.shape) < 0.03
    return np.asarray(noise + wild * rng.uniform(5, 10, noise.shape) * rng.choice([-1.0, 1.0], noise.shape))


def far_outliers(rng: np.random.Generator, nights: int, series: int) -> Floats:
    """Normal, but 1 % of the runs are 3 to 100 times their level, where σ is `FAR_AT` of it: a machine stood still."""
    noise = rng.standard_normal((nights, series))
    wild = rng.random(noise.shape) < 0.01
    times = np.exp(rng.uniform(np.log(3.0), np.log(100.0), noise.shape))
    return np.asarray(np.where(wild, (times - 1) / FAR_AT, noise))


def lopsided(rng: np.random.Generator, nights: int, series: int) -> Floats:
    """Log-normal (σ of the logarithm 0.8): many a little low, some far too high."""
    wide = np.exp(0.8 * rng.standard_normal((nights, series)))
    return np.asarray((wide - np.exp(0.32)) / np.sqrt(np.expm1(0.64) * np.exp(0.64)))


def two_modes(rng: np.random.Generator, nights: int, series: int) -> Floats:
    """Either of two narrow levels, as a process placed well or badly: one run in four is badly placed."""
    bad = rng.random((nights, series)) < 0.25
    return np.asarray((bad - 0.25) / np.sqrt(0.1875) * 0.97 + 0.25 * rng.standard_normal(bad.shape))


def unequal(rng: np.random.Generator, nights: int, series: int) -> Floats:
    """Normal; each series becomes three times as wild, or calm again, every 20 to 60 nights; its mean stays."""
    noise = rng.standard_normal((nights, series))
    turns = np.cumsum(rng.random((nights, series)) < 1 / 40, axis=0) + rng.integers(0, 2, series)
    return np.asarray(noise * np.where(turns % 2, 1.5, 0.5))


def mixed(rng: np.random.Generator, nights: int, series: int) -> Floats:
    """One store with all of the first five, a fifth each."""
    kinds = [gaussian, heavy, remembering(0.3), remembering(0.6), outliers]
    noise = np.stack([kind(rng, nights, series) for kind in kinds])
    return np.asarray(noise[np.arange(series) % len(kinds), :, np.arange(series)].T)


FAMILIES: Mapping[str, Family] = {
    "gaussian": gaussian,
    "heavy": heavy,
    "ar-0.3": remembering(0.3),
    "ar-0.6": remembering(0.6),
    "outliers": outliers,
    "mixed": mixed,
    "lopsided": lopsided,
    "two-modes": two_modes,
    "unequal": unequal,
    "far-outliers": far_outliers,
}
"""The first five are the families of the promise; the others are measured for comparison."""
PROMISED = ("gaussian", "heavy", "ar-0.3", "ar-0.6", "outliers")


def store(rng: np.random.Generator, family: str, nights: int, series: int, sigma: float) -> Floats:
    """Values around a level of its own for each series (a column); `sigma` is a fraction of the level."""
    return step(rng, family, nights, series, sigma, nights, 0.0)


def step(
    rng: np.random.Generator, family: str, nights: int, series: int, sigma: float, at: int, sigmas: float
) -> Floats:
    """Return the same, but from night `at` on each series is `sigmas` × `sigma` of its level higher."""
    noise = FAMILIES[family](rng, nights, series)
    noise[at:] += sigmas
    return np.asarray(np.exp(rng.uniform(0, 10, series)) * (1 + sigma * noise))
