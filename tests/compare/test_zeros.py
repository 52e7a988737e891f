"""A measure that may be 0 has no ratio: its pairs are compared by their differences, in the measure's unit."""

import itertools
from dataclasses import replace

import pytest

from results.compare.compared_measures import find_measure, measures
from results.compare.effect import Shift
from results.compare.judgement import Pair, PairedComparison, judge_all
from results.compare.qualification_text import as_json
from results.compare.render import comparison_row, effect_document
from results.report.qualification import render_qualification
from testbed.runner.campaign import fewest_pairs_to_tell
from testbed.runner.comparison import narrow_enough
from tests.compare.paired import judge
from tests.compare.test_qualification import SLOWER, made

TIME, UNDER, COPIED = (find_measure(name) for name in ("move-seconds", "under-min-isr", "inter-broker-bytes"))


def compared(baseline, candidate, measure=UNDER, moved=""):
    pairs = (Pair(old, new, moved) for old, new in zip(baseline, candidate, strict=True))
    return PairedComparison("a", "b", measure, tuple(pairs))


def judged(*args, **named):
    [finding] = judge([compared(*args, **named)])
    return finding


ZEROS = (0.0,) * 8
SOME = (5.0, 4.5, 5.5, 5.0, 6.0, 4.0, 5.0, 5.5)


def test_a_candidate_alone_above_0_in_every_pair_is_a_regression_and_the_reverse_an_improvement():
    worse, better = judged(ZEROS, SOME), judged(SOME, ZEROS)
    assert (worse.verdict, worse.why) == ("REGRESSED", "worse by more than 1 s")
    assert worse.adjusted == 2**-8
    assert worse.effect.low <= worse.effect.difference == 5.0 <= worse.effect.high
    assert (better.verdict, better.effect.difference, better.adjusted) == ("IMPROVED", -5.0, 2**-8)
    row = comparison_row(worse, "x")
    assert (row.before, row.after, row.change, row.interval) == ("0 s", "5 s", "+5 s", "+4.5 to +5.5 s")
    assert effect_document(worse.effect) == {
        "ratio": None,
        "interval": None,
        "difference": 5.0,
        "difference_interval": [4.5, 5.5],
        "confidence": worse.effect.confidence,
        "p": 2 * 2**-8,
    }


def test_0_everywhere_is_no_difference_and_known_well_enough():
    none = judged(ZEROS, ZEROS)
    assert (none.verdict, none.why, none.adjusted) == ("OK", "not worse by 1 s or more", 1.0)
    assert (none.effect.difference, none.effect.p, none.detectable) == (0.0, 1.0, None)
    assert narrow_enough([none], 0.03) == "known well enough: the widest interval is ± 0 %"
    assert narrow_enough([judged(ZEROS[:7], ZEROS[:7])], 0.03) is None


@pytest.mark.parametrize(
    ("baseline", "candidate", "verdict"),
    [
        (ZEROS, (*ZEROS[:7], 5.0), "NOISY"),  # one of eight pairs is chance, and no proof of the opposite
        ((*ZEROS[:7], 5.0), ZEROS, "OK"),
        (ZEROS, (*ZEROS[:4], *SOME[:4]), "NOISY"),
        (ZEROS, (0.0, *SOME[1:]), "REGRESSED"),
        ((0, 5, 0, 4, 0, 0, 0, 0), (0, 0, 5, 0, 0, 4, 0, 0), "NOISY"),
        ((0, 5, 0, 4, 0, 0, 6, 0), (4, 0, 5, 0, 6, 4, 0, 5), "NOISY"),
        (SOME, (0.0, *SOME[1:]), "OK"),
        (ZEROS, (0.5,) * 8, "OK"),  # a look of the runner more
    ],
)
def test_zeros_on_both_sides(baseline, candidate, verdict):
    assert judged(baseline, candidate).verdict == verdict


def test_what_counts_is_the_resolution_or_the_threshold_of_the_level_whichever_is_more():
    """One run at 0 among seven of 1,000 MB: 3 % of these are 30 MB."""
    level = (*(1000.0 + n for n in range(7)), 0.0)
    small, large = (judged(level, tuple(each + more for each in level), COPIED) for more in (29.0, 31.0))
    assert (small.verdict, large.verdict) == ("OK", "REGRESSED")
    assert small.effect.limit == pytest.approx(30.1, abs=0.1)
    assert judged(ZEROS, ZEROS, COPIED).effect.limit == COPIED.resolution


def test_the_measure_decides_whether_the_change_is_a_ratio_and_the_values_do_not():
    """Twice as much is no regression where the difference is smaller than can be measured."""
    more = tuple(2 * each for each in SOME)
    assert isinstance(judged(SOME, more).effect, Shift) and not isinstance(judged(SOME, more, TIME).effect, Shift)
    assert judged((0.3,) * 8, (0.6,) * 8).verdict == "OK"


def test_a_measure_that_is_never_0_has_no_pair_with_0():
    assert judged(ZEROS, SOME, TIME).verdict == "NO-DATA"
    zero = {measure.name for measure in measures() if measure.resolution is not None}
    assert zero == {
        "rest-seconds",
        "produce-gap",
        "consume-gap",
        "under-min-isr",
        "inter-broker-bytes",
        "connections-opened",
    }
    assert all(find_measure(name).compared for name in zero)


def test_few_pairs_tell_nothing_of_zeros_however_large_the_others_are():
    """Three runs of either side at 0, by a chance of one half, are 1 in 64: that is no proof among some measures."""
    assert (judged(ZEROS[:4], SOME[:4]).verdict, judged(ZEROS[:5], SOME[:5]).verdict) == ("NO-DATA", "REGRESSED")
    assert judged(ZEROS, SOME, moved="cpu").verdict == "ENV-CHANGED"


@pytest.mark.parametrize("comparisons", [1, 2, 4, 7, 9, 12, 27])
def test_the_pairs_that_tell_a_small_regression_among_so_many_comparisons_tell_this_one(comparisons):
    pairs = fewest_pairs_to_tell(comparisons)
    others = [compared([50.0] * pairs, [50.0] * pairs, TIME)] * (comparisons - 1)
    [found, *rest] = judge([compared([0.0] * pairs, [5.0] * pairs), *others])
    assert (found.verdict, {each.verdict for each in rest} - {"OK"}) == ("REGRESSED", set())
    assert found.adjusted == comparisons * 2**-pairs <= 0.05
    if pairs > 5:
        fewer = compared([0.0] * (pairs - 1), [5.0] * (pairs - 1))
        assert judge([fewer, *others])[0].verdict == "NOISY"


def test_zeros_are_one_test_of_the_family():
    """All at 0 is a test as any other: Holm's procedure counts it, and other tests' p are as with another measure."""
    one = compared([50.0] * 8, [60.0] * 8, TIME)
    with_zeros, with_others = (
        judge_all([one, other], [0.01])[0][0] for other in (compared(ZEROS, ZEROS), compared(SOME, SOME))
    )
    assert with_zeros.adjusted == with_others.adjusted == 3 * 2**-8


SIZES = ((0, 0, 0, 0, 0, 0, 0, 5), (0, 0, 0, 5, 5, 5, 5, 5), (5,) * 8, (0, 0, 2, 3, 4, 5, 6, 90), range(1, 9))


@pytest.mark.parametrize("sizes", SIZES)
def test_the_order_within_pairs_alone_makes_no_regression_more_often_than_1_in_20(sizes):
    """All assignments of the same values to baseline and candidate, exactly: one of the two is 0 in each pair."""
    found = []
    for flips in itertools.product((False, True), repeat=8):
        pairs = [(0.0, size) if up else (size, 0.0) for size, up in zip(sizes, flips, strict=True)]
        found.append(judge([compared(*zip(*pairs, strict=True))]))
    for word in ("REGRESSED", "IMPROVED"):
        assert sum(each.verdict == word for [each] in found) <= 0.05 * 2**8


def test_a_page_and_a_document_have_the_difference_in_the_unit():
    found = made(replace(SLOWER, findings=(judged(ZEROS, SOME),)))
    [measure] = as_json(found)["scenarios"][0]["measures"]
    assert (measure["ratio"], measure["difference"], measure["difference_interval"]) == (None, 5.0, [4.5, 5.5])
    page = " ".join(render_qualification(found, None, lambda _run_id: None).split())
    assert "+4.5 to +5.5 s" in page and "worse by more than 1 s" in page and '<svg class="interval"' not in page
