"""What is learned of a store: its memory, how alike its series are, how high scores get by luck."""

import math

import numpy as np
import pytest

from results.series import noise_estimation
from results.series.block import CLIP, Block, standardise
from results.series.calculator import Prior, StepScan, lengths, of_mean, to_normal
from results.series.judge import Judge
from results.series.noise import (
    BIAS_ALWAYS,
    BIAS_EACH,
    NORMAL,
    Autocorrelation,
    Noise,
    Spread,
    Tail,
    at_least_normal,
    autocorrelations,
    pooled,
)
from results.series.noise_estimation import learn, prepare
from tests.series.judging import judge_night
from tools.simulation import store


def block(family, series, seed=5, nights=60, sigma=0.03):
    return Block.of(store(np.random.default_rng(seed), family, nights, series, sigma).T.tolist())


def test_the_same_seed_learns_the_same_and_json_keeps_it(noise):
    one = learn(block("gaussian", 20), 3)
    assert one == learn(block("gaussian", 20), 3) != learn(block("gaussian", 20), 4)
    assert Noise.from_json(one.to_json()) == one
    with pytest.raises(ValueError, match="version None"):
        Noise.from_json("{}")


@pytest.mark.parametrize(("family", "memory"), [("gaussian", 0.0), ("heavy", 0.0), ("ar-0.3", 0.3), ("ar-0.6", 0.6)])
def test_the_stores_memory_is_found(family, memory):
    _, values = next(block(family, 300).groups(1))
    group = prepare(values, StepScan())
    found = pooled(group.memory, np.full(300, 60))
    assert found.mean == pytest.approx(memory, abs=0.05)


def test_a_store_of_several_memories_keeps_them_apart():
    rng = np.random.default_rng(2)
    parts = [store(rng, family, 60, 300, 0.03) for family in ("gaussian", "ar-0.6")]
    _, values = next(Block.of(np.hstack(parts).T.tolist()).groups(1))
    group = prepare(values, StepScan())
    shares = pooled(group.memory, np.full(600, 60)).shares
    assert sum(shares[:2]) == pytest.approx(0.5, abs=0.12)
    assert sum(shares[5:8]) == pytest.approx(0.5, abs=0.12)


def test_with_few_series_little_is_taken_for_known():
    assert pooled(np.zeros(0), np.zeros(0, np.int64)) == Autocorrelation()
    one = pooled(np.array([0.0]), np.array([60]))
    assert one.mean > 0.1


def test_memories_is_the_plain_formula():
    rng = np.random.default_rng(0)
    x, places = rng.standard_normal((30, 20)), rng.integers(3, 20, 20)
    newest = np.arange(30)[:, None] >= 30 - places
    after, before = (np.sum(x * part, axis=0) / np.sum(part, axis=0) for part in (newest, ~newest))
    rest = x - np.where(newest, after, before)
    raw = np.sum(rest[1:] * rest[:-1], axis=0) / np.sum(rest * rest, axis=0)
    assert autocorrelations(x, places) == pytest.approx((raw + BIAS_ALWAYS / 30) / (1 - BIAS_EACH / 30))


def test_the_variance_of_a_mean_that_remembers():
    """Against the definition: the sum of all correlations φ^|i−j|."""
    for k, memory in ((1, 0.5), (3, 0.3), (10, 0.6), (40, 0.9)):
        i = np.arange(k)
        exact = np.sum(memory ** np.abs(i[:, None] - i)) / k**2
        assert of_mean(k, np.array([memory]))[0] == pytest.approx(exact)
    assert of_mean(8, np.zeros(1))[0] == 1 / 8


def test_a_squared_student_deviate_as_a_normal_one():
    """Tables: t with 10 degrees of freedom exceeds 4.587 as often as a normal deviate 3.291; with 30, 3.646."""
    assert to_normal(np.array([4.587**2, 3.646**2]), np.array([10.0, 30.0])) == pytest.approx([3.291, 3.291], rel=0.01)


def test_alike_series_lend_each_other_their_spread_and_others_do_not():
    assert learn(block("gaussian", 100), 1).spread.weight > 50
    rng = np.random.default_rng(6)
    wide = [store(rng, "gaussian", 60, 1, sigma)[:, 0].tolist() for sigma in np.geomspace(0.001, 0.3, 60)]
    assert learn(Block.of(wide), 1).spread.weight < 3
    around_zero = np.random.default_rng(7).standard_normal((60, 100))
    assert learn(Block.of(around_zero.T.tolist()), 1).spread == Spread()


def test_heavy_tails_and_memory_raise_the_score_that_is_needed():
    plain, heavy = (learn(block(family, 300), 1).tail.score(1e-4) for family in ("gaussian", "heavy"))
    assert heavy > plain + 0.05


def test_surrogates_that_end_earlier_count_more_than_once(monkeypatch):
    block = Block.of(store(np.random.default_rng(4), "unequal", 60, 100, 0.03).T.tolist())
    scores = np.array([3.5, 4.0])
    counted = learn(block, 1).tail.chance(scores)
    monkeypatch.setattr(noise_estimation, "RARER", 1.0)
    assert counted == pytest.approx(1.3 * learn(block, 1).tail.chance(scores), rel=0.02)


def test_where_a_night_has_several_runs_more_is_new_in_it():
    """Two looks are then less alike: a score is more often beyond what it was the night before."""
    values = block("heavy", 100)
    one, three = (learn(values, 1, 0.04, each=np.full(100, each)) for each in (1, 3))
    assert one == learn(values, 1, 0.04)
    assert three.tail.score(4e-4) > one.tail.score(4e-4) + 0.03
    assert 1.2 < three.tail.chance(np.array([3.5]))[0] / one.tail.chance(np.array([3.5]))[0] < 2
    some = learn(values, 1, 0.04, each=np.where(np.arange(100) < 50, 3, 1))
    assert one != some != three


def test_the_tail_reads_both_ways(noise):
    for chance in (1e-3, 4e-4, 4e-5, 1e-7):
        assert noise.tail.chance(np.array([noise.tail.score(chance)]))[0] == pytest.approx(chance, rel=0.01)
    with pytest.raises(ValueError, match="expected a small one"):
        noise.tail.score(0.9)
    scores = np.linspace(0, 9, 200)
    assert (np.diff(noise.tail.chance(scores)) <= 0).all()


def test_evened_out_lies_between(noise):
    other = learn(block("heavy", 100), 2, 0.04)
    both = other.after(noise).tail.score(4e-4)
    low, high = sorted([noise.tail.score(4e-4), other.tail.score(4e-4)])
    assert low <= both <= high


def test_a_store_of_constants_or_of_one_series_has_a_noise_too():
    still = learn(Block.of([[5.0] * 30] * 3), 1)
    assert still.tail.score(4e-4) > 2
    one = learn(block("gaussian", 1), 1)
    assert 3.3 < one.tail.score(4e-4) < 5
    assert judge_night(Judge(), Block.of([[5.0] * 25 + [6.0] * 5]), still)[0].change is not None
    with pytest.raises(ValueError, match="no series has 10 runs"):
        learn(Block.of([[1.0, 2.0]]), 1)


def jumping(at, runs, low=0.0, high=1.0):
    """A constant series with single runs of another value."""
    return [high if run in at else low for run in range(runs)]


@pytest.mark.parametrize(
    "series",
    [
        [[0.0] * 20] * 60 + [jumping((5, 10), 20)],
        [[5.0] * 45] * 16 + [jumping((30,), 45, 5.0, 9.0)],
        [jumping((at, at + 7), 60) for at in range(0, 50, 2)],
        [*([3.0] * 60 for _ in range(90)), *(np.random.default_rng(i).normal(100, 3, 60).tolist() for i in range(10))],
    ],
    ids=["constants and one of two values", "constants and one spike", "two values each", "nine of ten constant"],
)
def test_series_that_show_no_noise_make_nothing_easier_to_find(series):
    block = Block.of(series)
    noise = learn(block, 1, 0.04)
    for series_judged in (100, 1000):
        chance = 0.04 / series_judged
        assert noise.tail.score(chance) >= math.sqrt(2 * (NORMAL - math.log(chance))) - 0.001
    assert not any(found.change for found in judge_night(Judge(), block, noise))
    assert Noise.from_json(noise.to_json()) == noise


def test_a_curve_is_lifted_where_it_lies_below_that_of_normal_noise():
    low = Tail((0.001, 0.0005), -7.0, -0.4)
    lifted, scores = at_least_normal(low), np.linspace(2, 9, 200)
    normal = np.exp(NORMAL - scores**2 / 2)
    inside = scores <= 6
    assert lifted.chance(scores)[inside] == pytest.approx(np.maximum(low.chance(scores), normal)[inside], rel=0.01)
    assert (np.diff(lifted.chance(scores)) < 0).all()
    assert at_least_normal(lifted) is lifted


def test_lengths_leave_a_level_on_both_sides():
    for n in range(10, 61):
        for every in (True, False):
            tried = lengths(n, every)
            assert min(tried) == 3 and max(tried) <= n - 3
        assert set(lengths(n)) <= set(lengths(n, every=True))
    assert max(lengths(60)) <= 30


def test_standardised_series_have_their_outliers_held_in():
    values = np.array([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0], [1e9, 7.0]])
    found = standardise(values)
    assert found.x.max() == CLIP and (found.x[:, 1] == 0).all() and found.scale[1] == 0


def test_a_calculator_sees_a_night_as_it_was(noise):
    x = np.random.default_rng(1).standard_normal((40, 7))
    prior = Prior.blank(7, 0.2)
    assert StepScan().scores(x, prior, 3) == pytest.approx(StepScan().scores(x[:-3], prior))
    assert Tail((0.1,), -1.0, -0.5).chance(np.array([3.0]))[0] == pytest.approx(np.exp(-5.5))
