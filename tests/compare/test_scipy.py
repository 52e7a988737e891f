"""The statistics agree with SciPy's tests, and with the formulas that were used before."""

import math

import numpy as np
import pytest

from results.compare.effect import at_least, log_ratios, p_above, p_below, tail, walsh_averages
from results.compare.judgement import CriterionTally, adjusted
from results.series.decision import student


@pytest.fixture(scope="module")
def stats():
    from scipy import stats  # it takes a second, which not every worker must wait for

    return stats


@pytest.mark.parametrize("n", [5, 6, 8, 12, 20])
def test_the_signed_rank_distribution_is_wilcoxons(n, stats):
    rng = np.random.default_rng(n)
    pairs = [(100.0, 100.0 * math.exp(each)) for each in rng.normal(0.02, 0.05, n)]
    differences = log_ratios(pairs)
    averages = walsh_averages(differences)
    for alternative, p in (("greater", p_above(averages, n, 0.0)), ("less", p_below(averages, n, 0.0))):
        assert p == pytest.approx(stats.wilcoxon(differences, alternative=alternative, method="exact").pvalue)
    assert tail(n, n * (n + 1) // 2) == pytest.approx(1.0)


def test_a_tally_is_a_binomial_test(stats):
    for worse in range(12):
        for better in range(12):
            tally = CriterionTally("a", "b", "c", 30, worse, better)
            counted = math.ldexp(
                sum(math.comb(worse + better, k) for k in range(worse, worse + better + 1)), -worse - better
            )
            assert tally.p_worse == pytest.approx(counted, rel=1e-12)
            if worse + better:
                wanted = stats.binomtest(worse, worse + better, 0.5, alternative="greater").pvalue
                assert tally.p_worse == pytest.approx(wanted, rel=1e-12)


def test_the_count_of_ways_is_fishers_exact_test(stats):
    for of, n, bad, b in ((3, 3, 3, 0), (3, 2, 3, 0), (10, 10, 4, 0), (10, 7, 6, 1), (10, 10, 0, 0)):
        wanted = stats.fisher_exact([[bad, of - bad], [b, n - b]], alternative="greater").pvalue
        assert at_least(bad, of, bad + b, of + n) == pytest.approx(wanted, rel=1e-9)


def cornish_fisher(dof):
    z = 1.96
    g1, g2 = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    g4 = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + g1 / dof + g2 / dof**2 + g3 / dof**3 + g4 / dof**4


def test_students_quantile_is_scipys_and_near_the_series_that_was_used_before(stats):
    for dof in np.concatenate([np.arange(2, 60), np.linspace(2, 5, 20), [200.0, 1e6]]):
        assert student(dof) == pytest.approx(stats.t.ppf(0.975, dof))
        assert student(dof) == pytest.approx(cornish_fisher(dof), rel=0.01)


def test_holm_controls_the_family():
    assert adjusted([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
