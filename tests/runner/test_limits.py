import pytest

from results.compare.compared_measures import find_measure
from results.compare.judgement import Pair, PairedComparison
from testbed.errors import UsageError
from testbed.runner.campaign import fewest_pairs_to_tell
from testbed.runner.comparison import PAIRS_BEFORE_EARLY_END, narrow_enough
from testbed.runner.execution import durations, out_of_time, parse_budget
from testbed.runner.journal import RunDone, campaign_state
from tests.compare.paired import judge
from tests.runner.fakes import campaign


@pytest.mark.parametrize(("text", "seconds"), [("30m", 1800), ("30min", 1800), ("1.5h", 5400), ("90s", 90)])
def test_a_budget_is_a_time(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["30", "0s", "-5m", "soon"])
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(UsageError, match="--budget"):
        parse_budget(text)


def findings(count, spread):
    pairs = tuple(Pair(10.0, 10.0 * (1 + spread * (-1) ** n)) for n in range(count))
    return judge([PairedComparison("a", "b", find_measure("move-seconds"), pairs)])


def test_narrow_intervals_end_a_series_after_some_pairs_and_wide_ones_never():
    assert "± 0.1 %" in narrow_enough(findings(PAIRS_BEFORE_EARLY_END, 0.001), 0.03)
    assert narrow_enough(findings(PAIRS_BEFORE_EARLY_END - 1, 0.001), 0.03) is None
    assert narrow_enough(findings(20, 0.05), 0.03) is None
    assert narrow_enough(findings(2, 0.001), 0.03) is None
    assert narrow_enough((), 0.03) is None


def test_many_comparisons_need_more_pairs_before_the_end():
    """All of eight pairs agree with p = 1 in 256: among 13 comparisons that is chance."""
    assert narrow_enough(findings(9, 0.001), 0.03, fewest_pairs_to_tell(44)) is None
    assert narrow_enough(findings(10, 0.001), 0.03, fewest_pairs_to_tell(44)) is not None


def test_one_wide_interval_keeps_the_series_going():
    assert narrow_enough((*findings(10, 0.001), *findings(10, 0.05)), 0.03) is None


@pytest.mark.parametrize(("comparisons", "pairs"), [(1, 5), (2, 6), (4, 7), (12, 8)])
def test_the_more_is_compared_the_more_pairs_are_needed(comparisons, pairs):
    assert fewest_pairs_to_tell(comparisons) == pairs
    assert comparisons * 0.5**pairs <= 0.05


def test_a_run_that_was_adopted_after_a_kill_says_nothing_of_how_long_one_takes():
    asked = campaign("AB", repeats=2)
    by_label = {slot.variant: slot.index for slot in asked.slots[:2]}
    adopted = RunDone(by_label["A"], "a", "pass", {}, (), "jars", 0.0)
    state = campaign_state([adopted, RunDone(by_label["B"], "b", "pass", {}, (), "jars", 40.0)])
    assert durations(asked, state) == {"B": 40.0}
    assert "about 80 s" in out_of_time(asked.slots[2], asked, state, 70.0)
    assert out_of_time(asked.slots[2], asked, state, 70.0, [asked.slots[3].index]) is None
