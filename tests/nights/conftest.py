import numpy as np
import pytest

from results.nights.judged_runs import DAY_US, SeriesRuns
from results.series.block import Block
from results.series.noise_estimation import LearnedNoise, learn
from tests.nights.made import BEGIN, about_of
from tools.simulation import store


@pytest.fixture(scope="session")
def learned():
    """What a store of 100 calm series of ± 3 % teaches."""
    values = store(np.random.default_rng(1), "gaussian", 60, 100, 0.03)
    return LearnedNoise(0, 60.0, learn(Block.of(values.T.tolist()), 1, 0.04))


@pytest.fixture
def runs_of():
    """Runs of a matrix (a row a night, a column a series); NaN is a night without a run."""

    def make(values):
        nights, series = values.shape
        at = np.tile(BEGIN + np.arange(nights) * DAY_US, series)
        return SeriesRuns(np.arange(series + 1) * nights, at, np.asarray(values, float).T.ravel())

    return make


@pytest.fixture
def about():
    return about_of
