import numpy as np
import pytest

from results.series.block import Block
from results.series.judge import Judge
from results.series.noise_estimation import learn
from tests.series.judging import judge_night
from tools.simulation import store


@pytest.fixture(scope="session")
def noise():
    """What a store of 100 series of ± 3 % looks like after 60 nights."""
    values = store(np.random.default_rng(1), "gaussian", 60, 100, 0.03)
    return learn(Block.of(values.T.tolist()), 1, 0.04)


@pytest.fixture
def judged(noise):
    """Judges one series."""

    def judge(values, **other):
        return judge_night(Judge(**other), Block.of([values]), noise)[0]

    return judge


@pytest.fixture(scope="session")
def calm():
    """60 runs around 100, ± 3 %: the quietest of some, so that nothing in it is nearly a change."""
    return (100 * (1 + 0.03 * np.random.default_rng(3).standard_normal(60))).tolist()
