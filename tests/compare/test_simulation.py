"""What the statistics promise, tried on many seeded series. Each test prints its figures (`pytest -s` shows them).

The trials are few enough for every day; the figures in `docs/comparing.md` are of the same code with TRIALS = 10 000.
"""

import math
import os
from functools import partial

import numpy as np
import pytest

from results.compare.compared_measures import find_measure
from results.compare.judgement import ComparisonRule, Pair, PairedComparison, worst
from testbed.runner.comparison import narrow_enough
from testbed.runner.schedule import schedule
from tests.compare.paired import judge, paired_effect

TRIALS = int(os.environ.get("TESTBED_TRIALS", "1000"))
TIME = find_measure("move-seconds")
MEASURES = 4
PAIRS = (5, 6, 8, 12, 20)


def gauss(rng, n):
    return rng.normal(size=n)


def heavy(rng, n):
    """Student's t with 2 degrees of freedom: no variance at all."""
    return rng.standard_t(2, size=n)


def spiky(rng, n):
    """One value in ten has ten times the noise."""
    return rng.normal(size=n) * np.where(rng.random(n) < 0.1, 10.0, 1.0)


def lopsided(rng, n):
    """Each run's own noise is log-normal; of two such the difference is symmetric all the same."""
    return rng.lognormal(0, 1, n) - rng.lognormal(0, 1, n)


SHAPES = {shape.__name__: shape for shape in (gauss, heavy, spiky, lopsided)}


def pairs(differences, ratio=1.0):
    return [(50.0, 50.0 * ratio * math.exp(d)) for d in differences]


def comparison(differences, ratio=1.0):
    return PairedComparison("a", "b", TIME, tuple(Pair(*pair) for pair in pairs(differences, ratio)))


def called(rng, shape, n, sigma, ratio, measures):
    """The share of series that are called REGRESSED."""
    hits = 0
    for _ in range(TRIALS):
        family = [comparison(sigma * shape(rng, n), ratio) for _ in range(measures)]
        hits += worst(judge(family)) == "REGRESSED"
    return hits / TRIALS


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", PAIRS)
def test_the_95_percent_interval_holds_the_true_effect_in_92_to_98_percent(shape, n):
    rng = np.random.default_rng(73)
    hits, claimed = 0, 0.0
    for _ in range(TRIALS):
        found = paired_effect(pairs(0.02 * SHAPES[shape](rng, n), 1.05))
        hits += found.low <= 1.05 <= found.high
        claimed = found.confidence
    coverage = hits / TRIALS
    print(f"coverage {shape} n={n}: {coverage:.3f} (claimed {claimed:.3f})")
    assert 0.92 <= coverage <= 0.98
    assert abs(coverage - claimed) < 4 * math.sqrt(claimed * (1 - claimed) / TRIALS)


@pytest.mark.parametrize("shape", ["gauss", "heavy"])
def test_a_bootstrap_would_not_hold_it_which_is_why_there_is_none(shape):
    rng = np.random.default_rng(73)
    hits = 0
    for _ in range(TRIALS):
        d = SHAPES[shape](rng, 5)
        means = d[rng.integers(0, 5, (400, 5))].mean(axis=1)
        low, high = np.quantile(means, (0.025, 0.975))
        hits += low <= 0 <= high
    print(f"coverage of a percentile bootstrap, {shape} n=5: {hits / TRIALS:.3f}")
    assert hits / TRIALS < 0.90


@pytest.mark.parametrize("shape", ["gauss", "heavy", "spiky"])
@pytest.mark.parametrize(("n", "measures"), [(5, 1), (8, MEASURES), (20, MEASURES)])
@pytest.mark.parametrize("ratio", [1.0, 1.03])
def test_without_a_regression_at_most_5_percent_of_series_are_called_one(shape, n, measures, ratio):
    """With noise (5 %) that a threshold of 3 % alone would not hold back; the worst case is a true change of just the
    threshold."""
    rate = called(np.random.default_rng(73), SHAPES[shape], n, 0.05, ratio, measures)
    print(f"false REGRESSED {shape} n={n}, {measures} measures, true {ratio - 1:+.0%}: {rate:.4f}")
    assert rate <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / TRIALS)


def runs_of(rng, shape, n, sigma, ratio=1.0):
    """Pairs of runs, each with noise of its own."""
    baseline, candidate = (50.0 * np.exp(sigma * shape(rng, n)) for _ in range(2))
    return PairedComparison("a", "b", TIME, tuple(map(Pair, baseline, ratio * candidate)))


def badly_placed(rng, n):
    """One run in four is at another level, nine times the noise away."""
    return np.where(rng.random(n) < 0.25, 9.0, 0.0) + rng.normal(size=n)


SINGLE = (gauss, heavy, lambda rng, n: rng.lognormal(0, 1, n), badly_placed)


@pytest.mark.parametrize("shape", SINGLE, ids=["gauss", "heavy", "lopsided", "badly placed"])
@pytest.mark.parametrize("n", [3, 4, 5, 7])
def test_few_pairs_without_a_difference_are_seldom_called_a_regression(shape, n):
    """Noise so large that a gap of 25 % is not what holds it back."""
    rng = np.random.default_rng(73)
    families = ([runs_of(rng, shape, n, 0.5, 1.03) for _ in range(MEASURES)] for _ in range(2 * TRIALS))
    rate = sum(worst(judge(family)) == "REGRESSED" for family in families) / (2 * TRIALS)
    print(f"false REGRESSED of few pairs {n=}: {rate:.4f}")
    assert rate <= 0.05


@pytest.mark.parametrize(("sigma", "least"), [(0.02, 0.99), (0.05, 0.99), (0.10, 0.5)])
def test_three_pairs_find_a_run_that_takes_92_percent_longer(sigma, least):
    rng = np.random.default_rng(73)
    same = [runs_of(rng, gauss, 3, sigma) for _ in range(MEASURES)]
    trials = [judge([runs_of(rng, gauss, 3, sigma, 1.92), *same])[0].verdict for _ in range(TRIALS)]
    rate = trials.count("REGRESSED") / TRIALS
    print(f"three pairs, noise {sigma:.0%}, + 92 %: {rate:.3f}")
    assert rate >= least


@pytest.mark.parametrize("n", [8, 20])
def test_a_null_of_runs_that_drift_and_are_alike_in_time_is_not_called_a_regression_either(n):
    """Runs, not differences: a drift of 1 % a slot and noise that remembers the run before (0.6), in the real order."""
    rng = np.random.default_rng(73)
    hits = covered = 0
    for trial in range(TRIALS):
        slots, runs, memory = schedule("AB", n, trial), {}, 0.0
        for slot in slots:
            memory = 0.6 * memory + 0.02 * rng.normal()
            runs[slot.block, slot.variant] = 50.0 * math.exp(0.01 * slot.index + memory)
        found = [Pair(runs[block, "A"], runs[block, "B"]) for block in range(n)]
        [finding] = judge([PairedComparison("A", "B", TIME, tuple(found))])
        hits += finding.verdict == "REGRESSED"
        covered += finding.effect.low <= 1 <= finding.effect.high
    print(f"drifting null n={n}: REGRESSED {hits / TRIALS:.4f}, coverage {covered / TRIALS:.3f}")
    assert hits / TRIALS <= 0.05
    assert covered / TRIALS >= 0.93


@pytest.mark.parametrize(
    ("shape", "sigma", "n", "slowdown", "measures", "least"),
    [
        ("gauss", 0.01, 5, 0.05, 1, 0.80),
        ("gauss", 0.01, 8, 0.05, 1, 0.97),
        ("gauss", 0.02, 8, 0.05, 1, 0.50),
        ("gauss", 0.02, 12, 0.05, 1, 0.70),
        ("gauss", 0.02, 20, 0.05, 1, 0.95),
        ("gauss", 0.02, 8, 0.10, 1, 0.99),
        ("heavy", 0.01, 8, 0.10, 1, 0.90),
        ("heavy", 0.02, 12, 0.10, 1, 0.85),
        ("spiky", 0.01, 12, 0.05, 1, 0.85),
        ("gauss", 0.02, 8, 0.05, MEASURES, 0.80),
    ],
)
def test_a_regression_is_found(shape, sigma, n, slowdown, measures, least):
    """With several measures each of them shows the slowdown, and one is enough."""
    rate = called(np.random.default_rng(73), SHAPES[shape], n, sigma, 1 + slowdown, measures)
    print(f"power {shape} noise {sigma:.0%} n={n} slowdown {slowdown:.0%} measures={measures}: {rate:.3f}")
    assert rate >= least


@pytest.mark.parametrize("n", [6, 10, 20])
def test_the_detectable_effect_is_found_in_about_80_percent(n):
    rng = np.random.default_rng(73)
    told = [judge([comparison(0.015 * gauss(rng, n))])[0].detectable for _ in range(TRIALS)]
    rate = called(rng, gauss, n, 0.015, 1 + float(np.mean(told)), 1)
    print(f"detectable n={n}: {np.mean(told):.3f}, found in {rate:.3f}")
    assert 0.72 <= rate <= 0.88


@pytest.mark.parametrize("shape", ["gauss", "heavy"])
@pytest.mark.parametrize("sigma", [0.015, 0.025])
def test_ending_a_series_early_keeps_the_promise(shape, sigma):
    """The interval at the end of a series that ends as soon as it is narrow enough, at 20 pairs at the latest."""
    rng = np.random.default_rng(73)
    hits, ends, rule = 0, [], ComparisonRule()
    for _ in range(TRIALS):
        d = sigma * SHAPES[shape](rng, 20)
        judged = partial(judge, rule=rule)
        for n in range(8, 21):
            findings = judged([comparison(d[:n])])
            if narrow_enough(findings, rule.threshold):
                break
        effect = findings[0].effect
        hits += effect.low <= 1 <= effect.high
        ends.append(effect.pairs)
    print(f"early end {shape} noise {sigma:.1%}: coverage {hits / TRIALS:.3f}, {np.mean(ends):.1f} pairs")
    assert 0.92 <= hits / TRIALS <= 0.98
