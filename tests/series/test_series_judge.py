"""What is a change, and what is not: one shape of a series after the other."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from results.series.block import MOST_RUNS, Block, present
from results.series.calculator import FEWEST_AFTER, FEWEST_RUNS_TO_JUDGE
from results.series.changes import replay
from results.series.decision import FEWEST_KNOWN, ChangeRule, settled, step_or_drift
from results.series.judge import Judge, verdict
from tests.series.judging import judge_night

NOTHING = (None, math.nan, math.inf)


def stepped(calm, at, factor):
    return [value * (factor if i >= at else 1) for i, value in enumerate(calm)]


def test_a_series_in_which_nothing_happens_has_no_change(judged, calm):
    found = judged(calm)
    assert (found.runs, found.change) == (60, None)
    assert verdict(found, "lower", ChangeRule()) == "OK"


@pytest.mark.parametrize(("factor", "runs"), [(1.10, 4), (0.90, 4), (1.5, FEWEST_AFTER), (1.06, 12)])
def test_a_step_near_the_end_is_found_with_its_first_bad_run(judged, calm, factor, runs):
    change = judged(stepped(calm, 60 - runs, factor)).change
    assert change is not None and change.kind != "drift"
    assert abs(change.runs - runs) <= 1
    assert change.effect == pytest.approx(factor - 1, abs=0.035)
    assert change.low < change.after - change.before < change.high
    assert change.chance <= ChangeRule().night


def test_two_runs_are_no_change_yet_however_far_off(judged, calm):
    for runs in range(1, FEWEST_AFTER):
        assert judged(stepped(calm, 60 - runs, 3.0)).change is None


def upto_each(values, first):
    """The series as it stood on each night from its run `first` on."""
    return [values[:upto] for upto in range(max(first, FEWEST_RUNS_TO_JUDGE), len(values) + 1)]


@pytest.mark.parametrize("factor", [0.0, 1.2, 2.0, 10.0, 100.0, 1e6])
def test_a_single_spike_never_alarms_wherever_it_is(noise, calm, factor):
    series = []
    for at in range(60):
        spiked = [value * (factor if i == at else 1) for i, value in enumerate(calm)]
        series += upto_each(spiked, at + 1)
    assert not any(found.change for found in judge_night(Judge(), Block.of(series), noise, family=100))


@pytest.mark.parametrize("spike", [9.0, 70.0, 700.0])
def test_a_single_spike_in_a_constant_series_never_alarms(noise, spike):
    series = []
    for at in range(40):
        series += upto_each([7.0] * at + [spike] + [7.0] * (39 - at), FEWEST_RUNS_TO_JUDGE)
    assert not any(found.change for found in judge_night(Judge(), Block.of(series), noise, family=100))


@pytest.mark.parametrize("spike", [3.0, 10.0, 100.0])
@pytest.mark.parametrize("factor", [1.05, 1.2, 2.0, 0.8])
@pytest.mark.parametrize("at", [5, 30, 50, 55])
def test_a_far_outlier_on_either_side_hides_no_step(judged, calm, spike, factor, at):
    values = stepped(calm, 45, factor)
    values[at] *= spike
    change = judged(values).change
    assert change is not None and abs(change.runs - 15) <= 1
    assert change.effect == pytest.approx(factor - 1, abs=0.05)


def first_changes(noise, shape, spread, seed):
    """Judged night by night: (the first change, its night) of 40 series of that shape."""
    rng = np.random.default_rng(seed)
    values = shape[:, None] * (1 + spread * rng.standard_normal((len(shape), 40)))
    found = {}
    for night in replay(values, lambda night, block: noise, first=20):
        for one in night:
            if one.series not in found:
                found[one.series] = (one.change, one.night, values[:, one.series])
    return list(found.values())


def test_a_drift_is_told_from_a_step_as_soon_as_that_can_be_told(noise):
    """On its first night a change is rarely called what it is not; twenty runs later it is called what it is."""
    nights = np.arange(60)
    drifts = first_changes(noise, 100 * (1 + 0.2 * np.clip((nights - 20) / 39, 0, None)), 0.03, 11)
    steps = first_changes(noise, np.where(nights >= 35, 110.0, 100.0), 0.03, 12)
    assert len(drifts) == len(steps) == 40
    assert sum(change.kind == "step" for change, _, _ in drifts) <= 10
    assert sum(change.kind == "drift" for change, _, _ in steps) <= 2
    later = [settled(runs[: n + 1 - change.runs], runs[n + 1 - change.runs :]) for change, n, runs in drifts]
    assert later.count("drift") >= 36
    later = [settled(runs[: n + 1 - change.runs], runs[n + 1 - change.runs :]) for change, n, runs in steps]
    assert later.count("step") >= 36


def test_a_step_and_back_are_two_changes(noise, calm):
    """The way back is judged against the new level, although that was short."""
    up = stepped(calm, 40, 1.15)[:44]
    first = judge_night(Judge(), Block.of([up]), noise)[0].change
    assert first is not None and first.runs == 4
    since = [*up[-first.runs :], *calm[44:]]
    found = [judge_night(Judge(), Block.of([since[:upto]]), noise)[0].change for upto in range(4, len(since) + 1)]
    back = next(change for change in found if change is not None)
    assert back.after < back.before
    assert found[: FEWEST_RUNS_TO_JUDGE - 4] == [None] * (FEWEST_RUNS_TO_JUDGE - 4)


def test_newest_runs_that_are_wilder_score_less(noise):
    """The same means before and after; what differs is how far apart the newest runs are."""
    rng = np.random.default_rng(4)
    old = rng.standard_normal(50)
    new = np.array([2.0, 2.1, 1.9, 2.0, 2.2, 1.8, 2.0, 2.1, 1.9, 2.0])
    wild = 2 + 4 * (new - 2) + np.tile([1.5, -1.5], 5)
    narrow, wide = judge_night(Judge(), Block.of([[*old, *new], [*old, *wild]]), noise)
    assert narrow.change is not None
    assert wide.score < 0.85 * narrow.score


def test_runs_that_only_scatter_more_are_no_change():
    """They lie mostly above, but how far above is less than how far apart they are."""
    old = (100 + 3 * np.random.default_rng(4).standard_normal(50)).tolist()
    wild = [80.0, 119.0, 84.0, 117.0, 109.0, 121.0, 82.0, 116.0]
    near = [108.0, 119.0, 110.0, 117.0, 109.0, 121.0, 111.0, 116.0]
    decide = lambda new: step_or_drift(np.array([*old, *new]), len(new), 0.0, 0.001, ChangeRule())  # noqa: E731
    assert decide(wild) is None
    change = decide(near)
    assert change is not None and change.low > 0
    few = decide(wild[2:6])
    assert few is not None and few.runs < FEWEST_KNOWN  # of so few nobody knows: the score alone says


def test_a_constant_series_and_one_that_changes_from_one_constant_to_another(judged):
    assert judged([5.0] * 60).change is None
    assert judged([0.0] * 60).change is None
    change = judged([5.0] * 50 + [6.0] * 10).change
    assert change is not None
    assert (change.runs, change.before, change.after, change.effect) == (10, 5.0, 6.0, pytest.approx(0.2))
    assert (change.low, change.high) == (1.0, 1.0)


def test_too_few_runs_are_no_data(judged):
    for values in ([], [1.0], [1.0, 2.0], [1.0, 50.0] * 4, [math.nan] * 60):
        found = judged(values)
        assert (found.change, found.detectable) == (None, None)
        assert verdict(found, "lower", ChangeRule()) == "NO-DATA"


def test_a_level_of_zero_has_no_relative_effect(judged):
    noise = np.random.default_rng(5).standard_normal(60)
    values = noise - np.median(noise[:50])
    values[50:] += 8
    change = judged(values.tolist()).change
    assert change is not None and change.runs == 10
    assert judged([0.0] * 50 + [3.0] * 10).change.effect is None
    assert judged([0.0] * 50 + [3.0] * 10).change.interval is None


def test_a_change_too_small_to_matter_is_not_told(judged):
    values = (100 * (1 + 0.0005 * np.random.default_rng(2).standard_normal(60))).tolist()
    values[50:] = [value * 1.005 for value in values[50:]]
    assert judged(values).change is None
    assert judged(values, rule=ChangeRule(least=0.002)).change is not None


def test_verdicts(judged, calm):
    worse = judged(stepped(calm, 50, 1.2))
    assert verdict(worse, "lower", ChangeRule()) == "REGRESSED"
    assert verdict(worse, "higher", ChangeRule()) == "IMPROVED"
    assert verdict(worse, "unknown", ChangeRule()) == "REGRESSED"
    assert verdict(judged(stepped(calm, 50, 0.8)), "unknown", ChangeRule()) == "REGRESSED"
    assert verdict(judged(calm), "unknown", ChangeRule()) == "OK"
    wild = judged((100 * (1 + 0.4 * np.random.default_rng(8).standard_normal(60))).tolist())
    assert verdict(wild, "lower", ChangeRule()) == "NOISY"
    assert wild.detectable > 0.25


runs = st.lists(st.floats(90, 110), min_size=FEWEST_RUNS_TO_JUDGE, max_size=70)


@settings(max_examples=60, deadline=None)
@given(runs, st.sampled_from([2.0, 0.25, 1024.0]))
def test_the_unit_does_not_matter(noise, values, factor):
    one, other = judge_night(Judge(), Block.of([values, [factor * value for value in values]]), noise)
    assert other.score == pytest.approx(one.score, rel=1e-9)
    assert (one.change is None) == (other.change is None)


@settings(max_examples=60, deadline=None)
@given(runs)
def test_upside_down_is_the_same_the_other_way(noise, values):
    """Around 0, too, where a level says nothing: only the difference counts."""
    away = [value - 100 for value in values]
    one, other = judge_night(Judge(), Block.of([away, [-value for value in away]]), noise)
    assert other.score == pytest.approx(one.score, rel=1e-9, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(runs, st.floats(-1e4, 1e4))
def test_without_help_from_other_series_the_zero_does_not_matter(noise, values, shift):
    alone = dataclasses.replace(noise, spread=dataclasses.replace(noise.spread, weight=0.0))
    one, other = judge_night(Judge(), Block.of([values, [value + shift for value in values]]), alone)
    assert other.score == pytest.approx(one.score, rel=1e-5, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(runs, st.lists(st.tuples(st.integers(0, 70), st.sampled_from(NOTHING)), max_size=20))
def test_missing_nights_change_nothing(noise, values, missing):
    holes: list[float | None] = list(values)
    for at, nothing in missing:
        holes.insert(min(at, len(holes)), nothing)
    assert [holes[i] for i in present(holes)] == values
    one, other = judge_night(Judge(), Block.of([values, holes]), noise)
    assert one == other


def test_only_the_newest_runs_count(judged, calm):
    assert judged([1000.0, 2.0, *calm]) == judged(calm)
    assert judged([*calm, *calm]).runs == MOST_RUNS


def test_series_beside_each_other_do_not_matter_to_each_other(noise, calm):
    """Given the noise, a series may be judged anywhere; only the size of the family counts."""
    block = [calm, stepped(calm, 50, 1.1), calm[:30], calm[:5], stepped(calm, 30, 0.9)[:40]]
    together = judge_night(Judge(), Block.of(block), noise, family=500)
    alone = [judge_night(Judge(), Block.of([values]), noise, family=500)[0] for values in block]
    for one, other in zip(together, alone, strict=True):
        assert (one.runs, one.change is None) == (other.runs, other.change is None)
        assert (one.score, one.chance) == pytest.approx((other.score, other.chance), rel=1e-9)


def test_more_series_need_more_evidence(noise, calm):
    step = Block.of([stepped(calm, 54, 1.07)])
    few, many = (judge_night(Judge(), step, noise, family=family)[0] for family in (100, 1000))
    assert many.chance == pytest.approx(min(10 * few.chance, 1.0))
    assert few.score == many.score


def test_the_parts_can_be_replaced(noise, calm):
    class Last:
        def scores(self, x, prior, back=0):
            return np.full(x.shape[1], 9.0)

        def places(self, x, prior, fine=True):
            return np.full(x.shape[1], 7)

    step = Block.of([stepped(calm, 53, 1.1)])
    assert judge_night(Judge(decision=lambda *_: None), step, noise)[0].change is None
    assert judge_night(Judge(calculator=Last()), step, noise)[0].change.runs == 7
    sure = Judge(significance=lambda scores, _noise: np.zeros(len(scores)))
    assert judge_night(sure, step, noise)[0].chance == 0
