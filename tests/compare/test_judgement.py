import math

import pytest

from results.compare.canaries import moved, usual_change
from results.compare.compared_measures import find_measure
from results.compare.judgement import ComparisonRule, Pair, PairedComparison, adjusted, worst
from tests.compare.paired import judge

TIME, RATE = find_measure("move-seconds"), find_measure("steady-mean")


def comparison(ratio, spread=0.004, count=8, measure=TIME, moved=lambda n: ""):
    """Pairs whose ratios lie evenly around `ratio`."""
    steps = [(2 * n - count + 1) / (count - 1) for n in range(count)]
    return PairedComparison(
        "a", "b", measure, tuple(Pair(50.0, 50.0 * ratio * (1 + spread * s), moved(n)) for n, s in enumerate(steps))
    )


def verdict(*args, **named):
    [finding] = judge([comparison(*args, **named)])
    return finding.verdict


@pytest.mark.parametrize(
    ("ratio", "measure", "expected"),
    [
        (1.05, TIME, "REGRESSED"),
        (1.02, TIME, "OK"),
        (1.00, TIME, "OK"),
        (0.98, TIME, "OK"),
        (0.94, TIME, "IMPROVED"),
        (0.95, RATE, "REGRESSED"),
        (0.98, RATE, "OK"),
        (1.05, RATE, "IMPROVED"),
        (1.03, TIME, "NOISY"),
        (0.97, RATE, "NOISY"),
    ],
)
def test_the_rule(ratio, measure, expected):
    assert verdict(ratio, measure=measure) == expected


def test_an_interval_that_holds_the_threshold_is_noisy_and_says_what_would_tell():
    [finding] = judge([comparison(1.01, spread=0.1)])
    assert finding.verdict == "NOISY"
    assert "the interval contains 3 %; about " in finding.why
    assert finding.detectable > 0.05


@pytest.mark.parametrize(("spread", "verdict"), [(0.004, "OK"), (0.1, "NOISY")])
def test_where_nothing_is_found_the_reason_says_what_would_have_been(spread, verdict):
    [finding] = judge([comparison(1.0, spread=spread)])
    assert finding.verdict == verdict
    assert f"; {finding.detectable * 100:.1f} % worse would be found in 80 % of such comparisons" in finding.why
    assert finding.detectable > 0.03


def test_a_wide_interval_that_lies_on_the_good_side_is_ok():
    assert verdict(0.95, spread=0.08) == "OK"


def test_pairs_without_a_value_on_one_side_are_named_whatever_the_verdict():
    """A candidate whose runs are inconclusive now and then is not silently compared by the others."""
    for ratio, verdict in ((1.0, "OK"), (1.2, "REGRESSED")):
        whole = comparison(ratio)
        lost = (Pair(50.0, None), Pair(None, 50.0), Pair(50.0, math.nan))
        [finding] = judge([PairedComparison("a", "b", TIME, (*whole.pairs, *lost))])
        assert (finding.verdict, finding.effect.pairs) == (verdict, 8)
        assert finding.why.endswith("; 3 pairs left out: no value on one side")


def test_too_few_pairs_are_no_data_and_say_how_many():
    [finding] = judge([comparison(1.2, count=4)])
    assert (finding.verdict, finding.effect, finding.why) == ("NO-DATA", None, "4 pairs, at least 5 are needed")
    assert verdict(1.2, count=5) == "REGRESSED"


def pairs_of(baseline, candidate, measure=TIME):
    return PairedComparison("a", "b", measure, tuple(Pair(*pair) for pair in zip(baseline, candidate, strict=True)))


NORMAL, SLOW = (12.1, 12.2, 12.0), (22.5, 20.9, 25.7)


def test_three_pairs_tell_a_large_effect_among_five_comparisons():
    """A broker with a quarter of a CPU, measured: 72 to 112 % slower."""
    slower, *others = judge([pairs_of(NORMAL, SLOW), *[pairs_of(NORMAL, NORMAL)] * 4])
    assert (slower.verdict, slower.why) == ("REGRESSED", "worse by more than 3 %")
    assert slower.adjusted <= 0.005
    assert {each.verdict for each in others} == {"NO-DATA"}
    [quicker] = judge([pairs_of(SLOW, NORMAL)])
    assert quicker.verdict == "IMPROVED"
    [lower] = judge([pairs_of(SLOW, NORMAL, RATE)])
    assert lower.verdict == "REGRESSED"


@pytest.mark.parametrize("candidate", [(22.5, 12.1, 25.7), (13.5, 13.6, 13.4), (16.0, 90.0, 300.0)])
def test_three_pairs_tell_nothing_smaller_less_certain_or_not_in_every_run(candidate):
    [finding] = judge([pairs_of(NORMAL, candidate)] * 5)[:1]
    assert (finding.verdict, finding.why) == ("NO-DATA", "3 pairs, at least 5 are needed")


def test_two_pairs_tell_nothing_however_far():
    [finding] = judge([pairs_of(NORMAL[:2], SLOW[:2])])
    assert finding.verdict == "NO-DATA"


def test_a_large_effect_is_the_machines_where_it_changed_and_few_pairs_are_left():
    pairs = [*pairs_of(NORMAL, SLOW).pairs, *(Pair(12.0, 20.0, "cpu") for _ in range(2))]
    [finding] = judge([PairedComparison("a", "b", TIME, tuple(pairs))])
    assert finding.verdict == "ENV-CHANGED"


def test_values_that_are_missing_or_not_positive_make_no_pair():
    pairs = [Pair(50.0, None), Pair(None, 50.0), Pair(0.0, 50.0), Pair(50.0, math.nan), *comparison(1.0).pairs[:4]]
    [finding] = judge([PairedComparison("a", "b", TIME, tuple(pairs))])
    assert finding.why == "4 pairs, at least 5 are needed; 4 of 8 have no value on one side"


def test_a_machine_that_keeps_runs_from_having_values_changed():
    pairs = [*comparison(1.0).pairs[:3], *(Pair(50.0, None, moved="cpu") for _ in range(7))]
    [finding] = judge([PairedComparison("a", "b", TIME, tuple(pairs))])
    assert (finding.verdict, finding.why) == ("ENV-CHANGED", "the machine changed in 7 of 10 pairs: cpu")


def test_pairs_on_moved_ground_are_left_out_while_enough_others_are_there():
    assert verdict(1.0, count=8, moved=lambda n: "cpu" if n < 3 else "") == "OK"
    assert verdict(1.0, count=8, moved=lambda n: "cpu" if n < 4 else "") == "ENV-CHANGED"
    assert verdict(1.5, count=20, moved=lambda n: "cpu" if n < 11 else "") == "ENV-CHANGED"
    [finding] = judge([comparison(1.5, moved=lambda n: "cpu +30%")])
    assert (finding.effect, finding.why) == (None, "the machine changed in 8 of 8 pairs: cpu +30%")


def test_among_many_comparisons_a_regression_must_be_clearer():
    """With 5 pairs luck has a chance of 1 in 32 to agree: enough for one comparison, not for four."""
    one = comparison(1.2, count=5)
    assert [f.verdict for f in judge([one])] == ["REGRESSED"]
    [first, *_rest] = judge([one, *[comparison(1.0, count=5)] * 3])
    assert (first.verdict, first.why[:26]) == ("NOISY", "beyond 3 %, but among so m")
    assert [f.verdict for f in judge([comparison(1.2, count=7)] * 4)] == ["REGRESSED"] * 4


def test_holm_lets_the_next_one_pass_more_easily_after_each():
    def rejected(*chances):
        return [each <= 0.05 for each in adjusted(chances)]

    assert rejected(0.04, 0.01, 0.02) == [True, True, True]
    assert rejected(0.04, 0.03, 0.01) == [False, False, True]
    assert rejected(0.02, 0.02, 0.02) == [False, False, False]
    assert rejected() == []


def test_the_worst_finding_is_the_verdict():
    good, bad, noisy = comparison(1.0), comparison(1.1), comparison(1.0, spread=0.1)
    assert worst(judge([good, good])) == "OK"
    assert worst(judge([good, comparison(0.9)])) == "IMPROVED"
    assert worst(judge([good, noisy])) == "NOISY"
    assert worst(judge([good, noisy, bad])) == "REGRESSED"
    assert worst([]) == "NO-DATA"


def test_a_threshold_of_ones_own():
    [finding] = judge([comparison(1.05)], ComparisonRule(threshold=0.10))
    assert (finding.verdict, finding.why.split("; ")[0]) == ("OK", "not worse by 10 % or more")


@pytest.mark.parametrize("wrong", [{"threshold": 3.0}, {"threshold": 0.0}, {"fewest_pairs": 4}])
def test_a_rule_that_cannot_be_meant_is_refused(wrong):
    with pytest.raises(ValueError):
        ComparisonRule(**wrong)


class TestCanaries:
    CALM = tuple({"cpu": 0.05 * (1 + 0.002 * (n % 3)), "fsync": 0.001 * (1 + 0.2 * (n % 2))} for n in range(12))

    def test_calm_ones_have_not_moved(self):
        assert moved(self.CALM[3:6], self.CALM) == ()

    def test_one_that_moved_is_told_with_how_far(self):
        [found] = moved([*self.CALM[3:5], {"cpu": 0.06, "fsync": 0.001}], self.CALM)
        assert str(found) == "cpu +20% between readings (allowed 10%)"

    def test_a_blip_between_two_runs_counts_although_both_have_it_beside_them(self):
        assert moved([{"cpu": 0.05}, {"cpu": 0.09}, {"cpu": 0.05}], self.CALM)

    def test_a_canary_that_jitters_by_itself_is_allowed_more_but_not_everything(self):
        jittery = [{"cpu": 0.05 * (1 + 0.04 * (n % 2))} for n in range(20)]
        assert moved([{"cpu": 0.05}, {"cpu": 0.058}], jittery) == ()
        assert moved([{"cpu": 0.05}, {"cpu": 0.062}], jittery)
        wild = [{"cpu": 0.05 * (1 + 0.5 * (n % 2))} for n in range(20)]
        assert moved(wild[:2], wild)

    def test_with_few_readings_the_limit_alone_counts(self):
        assert usual_change([1.0, 1.5, 1.0]) is None
        assert moved([{"cpu": 1.0}, {"cpu": 1.5}], [{"cpu": 1.0}, {"cpu": 1.5}])

    def test_one_that_could_not_be_read_once_is_no_good_sign(self):
        [found] = moved([{"cpu": 0.05, "nic": 1.0}, {"cpu": 0.05}], self.CALM)
        assert str(found) == "nic could not be read every time"

    def test_a_canary_nobody_knows_has_a_limit_too(self):
        assert moved([{"moon": 1.0}, {"moon": 1.2}], [])
        assert moved([{"moon": 1.0}, {"moon": 1.05}], []) == ()
