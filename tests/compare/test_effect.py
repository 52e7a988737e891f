import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.compare.effect import confidence, cumulative, cut, log_ratios, p_above, p_below, tail, walsh_averages
from tests.compare.paired import paired_effect

values = st.floats(0.1, 10.0)
pairs = st.lists(st.tuples(values, values), min_size=1, max_size=15)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_the_distribution_is_that_of_all_flips_of_signs(n):
    sums = [sum(rank for rank, up in enumerate(flips, 1) if up) for flips in itertools.product((0, 1), repeat=n)]
    for t in range(-1, n * (n + 1) // 2 + 2):
        assert tail(n, t) == pytest.approx(sum(s <= t for s in sums) / 2**n)


def test_known_confidences():
    """Tables of the signed rank statistic: at 5 % (two-sided) the critical sums are 0, 2, 3, 5, 8, 25, 52."""
    assert [cut(n, 0.05) for n in (6, 7, 8, 9, 10, 15, 20)] == [0, 2, 3, 5, 8, 25, 52]
    assert confidence(5, 0) == 1 - 2 / 32
    assert all(confidence(n, cut(n, 0.05)) >= 0.95 for n in range(6, 200))
    assert len(cumulative(1000)) == 500_501


def test_a_worked_example():
    """Differences 1 to 5 (as logarithms): by hand, the median of the 15 averages is 3 and all are above 0."""
    found = paired_effect([(1.0, math.exp(d)) for d in (1, 2, 3, 4, 5)])
    assert math.log(found.ratio) == pytest.approx(3)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((1, 5))
    assert found.confidence == 0.9375
    assert found.p == 2 / 32
    assert found.half_width == pytest.approx(2)


@given(pairs)
def test_p_and_interval_never_contradict_each_other(found):
    effect = paired_effect(found)
    if len(found) >= 6 and abs(math.log(effect.low)) > 1e-9 and abs(math.log(effect.high)) > 1e-9:
        assert (effect.p <= 0.05) == (effect.low > 1 or effect.high < 1)


@given(pairs)
def test_p_is_the_share_of_sign_flips_that_are_as_far_out(found):
    """Against the definition, by brute force, where all sizes differ."""
    d = log_ratios(found)[:10]
    if len(set(np.abs(d))) < len(d) or not d.all():
        return
    ranks = np.argsort(np.argsort(np.abs(d))) + 1
    seen = int(ranks[d < 0].sum())
    n = len(d)
    sums = [int(ranks[list(flips)].sum()) for flips in itertools.product((False, True), repeat=n)]
    assert p_above(walsh_averages(d), n, 0.0) == pytest.approx(sum(s <= seen for s in sums) / 2**n)


@given(pairs, st.floats(0.5, 2.0))
def test_the_effect_scales_with_the_candidate_and_turns_around_with_the_pair(found, factor):
    one = paired_effect(found)
    scaled = paired_effect([(b, c * factor) for b, c in found])
    turned = paired_effect([(c, b) for b, c in found])
    assert scaled.ratio == pytest.approx(one.ratio * factor)
    assert (turned.ratio, turned.low, turned.high) == pytest.approx((1 / one.ratio, 1 / one.high, 1 / one.low))
    assert turned.p == one.p
    assert one.low <= one.ratio * (1 + 1e-12) and one.ratio <= one.high * (1 + 1e-12)


def test_pairs_that_are_all_alike_have_no_effect_and_no_p_below_one():
    found = paired_effect([(50.0, 50.0)] * 8)
    assert (found.ratio, found.low, found.high, found.p, found.half_width) == (1, 1, 1, 1, 0)


def test_ties_count_against_whoever_claims_a_difference():
    d = walsh_averages(np.array([0.0, 0.0, 1.0, 1.0, 1.0]))
    assert p_above(d, 5, 0.0) > p_above(d, 5, -0.001)
    assert p_below(d, 5, 0.0) == 1.0


def test_a_single_wild_pair_moves_little():
    calm = [(50.0, 50.0 + 0.1 * (n % 3 - 1)) for n in range(12)]
    wild = paired_effect([*calm[:-1], (50.0, 500.0)])
    assert wild.ratio == pytest.approx(paired_effect(calm).ratio, rel=0.003)
    assert wild.high < 1.01


@pytest.mark.parametrize("pair", [(0.0, 1.0), (1.0, 0.0), (1.0, -1.0), (1.0, math.nan), (math.inf, 1.0)])
def test_what_has_no_ratio_is_refused(pair):
    with pytest.raises(ValueError, match="above 0"):
        paired_effect([pair])


def test_one_pair_has_an_effect_and_no_confidence():
    assert paired_effect([(1.0, 2.0)]).confidence == 0


def test_more_pairs_are_needed_for_a_narrower_interval():
    found = paired_effect([(1.0, math.exp(d / 100)) for d in range(-5, 5)])
    assert found.pairs_for(found.half_width) == 10
    assert found.pairs_for(found.half_width / 2) == 40
    with pytest.raises(ValueError, match="half width"):
        found.pairs_for(0)
