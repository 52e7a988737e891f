"""Surrogates: what stays of the runs that they are drawn from, and what scores they let through."""

import numpy as np
import pytest

from results.series.block import Block
from results.series.calculator import FEWEST_RUNS_TO_JUDGE, StepScan
from results.series.noise import NORMAL, Tail, highest, prior_of
from results.series.noise_estimation import LEAST_ALIKE, learn, prepare
from results.series.surrogates import ENDS, reordered, sign_flipped
from tools.simulation import store

CHANCE = 1e-3
WINDOW = 60


@pytest.fixture
def runs():
    """Return 40 runs of three series; the last one is the first again."""
    x = np.random.default_rng(1).standard_normal((40, 3))
    x[:, 2] = x[:, 0]
    return x


def drawings(draw, runs, times, seed=2):
    drawn = draw(runs, np.random.default_rng(seed), times)
    return drawn.reshape(len(drawn), times, -1)


def test_reordered_runs_are_the_same_runs_and_all_series_have_the_same_order(runs):
    drawn = drawings(reordered, runs, 5)
    assert drawn.shape == (40, 5, 3)
    assert np.sort(drawn[:, 4, 1]) == pytest.approx(np.sort(runs[:, 1]))
    assert not np.array_equal(drawn[:, 0], drawn[:, 1])
    assert np.array_equal(drawn[:, :, 0], drawn[:, :, 2])


def test_sign_flipped_runs_stay_where_they_were_and_all_series_have_the_same_signs(runs):
    drawn = drawings(sign_flipped, runs, 5)
    assert np.abs(drawn[:, 3, 1]) == pytest.approx(np.abs(runs[: len(drawn), 1]))
    assert np.array_equal(drawn[:, :, 0], drawn[:, :, 2])
    assert 0.3 < np.mean(drawn[:, :, :2] * runs[: len(drawn), None, :2] < 0) < 0.7


@pytest.mark.parametrize(("n", "shortest"), [(40, 40 - ENDS + 1), (12, FEWEST_RUNS_TO_JUDGE), (10, 10)])
def test_a_sign_flipped_drawing_ends_with_any_of_the_newest_runs(runs, n, shortest):
    found = {len(drawings(sign_flipped, runs[:n], 1, seed)) for seed in range(300)}
    assert found == set(range(shortest, n + 1))


def test_the_highest_curve_counts_at_each_score():
    low, high = Tail((0.1, 0.001), NORMAL, -0.5), Tail((0.05, 0.004), NORMAL, -0.4)
    both = highest([low, high])
    for score in (2.0, 2.05, 3.0, 5.0, 8.0):
        one = np.array([score])
        assert both.chance(one) == pytest.approx(max(low.chance(one), high.chance(one)))


def crossings(family, seeds, learned_from=100):
    """Return how often series cross the score of `CHANCE` for the first time, ÷ `CHANCE`."""
    scan, crossed, looks = StepScan(), 0, 0
    for seed in seeds:
        values = store(np.random.default_rng(100 + seed), family, WINDOW + 60, 100, 0.03)
        noise = learn(Block.of(values[:WINDOW, :learned_from].T.tolist()), seed, 0.04)
        scores = []
        for night in range(WINDOW, len(values)):
            group = prepare(values[night - WINDOW : night], scan)
            memory = noise.memory.likely(group.memory, group.runs)
            scores.append(scan.scores(group.standard.x, prior_of(group.standard, memory, group.variance, noise.spread)))
        seen, limit = np.array(scores), noise.tail.score(CHANCE)
        crossed += int(np.sum((seen[2:] > limit) & (np.maximum(seen[1:-1], seen[:-2]) <= limit)))
        looks += seen[2:].size
    return crossed / looks / CHANCE


def test_a_scatter_that_comes_and_goes_is_known_to_the_store():
    # 23 crossings are expected of 23,200 looks. With orders alone there are 3.8 times as many.
    assert 0.3 < crossings("unequal", range(4)) < 2


def test_few_series_are_not_flipped_because_a_step_of_one_of_them_would_pass_for_chance():
    values = store(np.random.default_rng(7), "gaussian", WINDOW, LEAST_ALIKE - 1, 0.03)
    calm = learn(Block.of(values.T.tolist()), 1, 0.04).tail.score(CHANCE)
    values[-3:, 0] *= 1.09
    assert learn(Block.of(values.T.tolist()), 1, 0.04).tail.score(CHANCE) == pytest.approx(calm, abs=0.15)
