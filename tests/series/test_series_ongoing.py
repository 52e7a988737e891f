"""What becomes of a change that was reported: its kind once that can be told, and a drift that goes on."""

import numpy as np
import pytest

from results.series.changes import replay
from results.series.decision import LONGEST, LevelChange, continued_drift, with_kind

RUNS, BEGIN = 60, 30


def noisy(shape, sigma=0.01, seed=1):
    return 100 * np.asarray(shape) * (1 + sigma * np.random.default_rng(seed).standard_normal(len(shape)))


def drifting(each=0.005, runs=RUNS):
    return 1 + each * np.clip(np.arange(runs) - BEGIN, 0, None)


def steps(*at, size=0.07):
    return 1 + size * sum((np.arange(RUNS) >= one).astype(float) for one in at)


def change_of(kind="unclear", runs=6, before=100.0, after=107.0):
    return LevelChange(kind, runs, before, after, after - before - 2, after - before + 2, 0.02)


def test_a_drift_that_goes_on_is_more_of_the_change_that_was_reported():
    earlier, new = change_of(runs=8), change_of(before=107.0, after=114.0)
    longer = continued_drift(earlier, noisy(drifting()), 22, new, 0.0)
    assert longer is not None
    assert (longer.kind, longer.runs, longer.before, longer.chance) == ("drift", 22, 100.0, 0.02)
    assert longer.after == pytest.approx(114.5, abs=1.5)
    assert longer.low < longer.after - longer.before < longer.high
    falling = continued_drift(
        change_of(after=93.0), noisy(drifting(-0.005)), 22, change_of(before=93.0, after=86.0), 0.0
    )
    assert falling is not None and falling.after == pytest.approx(85.5, abs=1.5)


def test_an_outlier_hides_no_drift_that_goes_on():
    values = noisy(drifting())
    values[[12, 50]] *= 50
    longer = continued_drift(change_of(), values, 22, change_of(before=107.0, after=114.0), 0.0)
    assert longer is not None and longer.after == pytest.approx(114.5, abs=1.5)


@pytest.mark.parametrize("kind", ["step", "unclear", "drift"])
def test_two_steps_are_two_changes(kind):
    assert continued_drift(change_of(kind), noisy(steps(38, 54)), 22, change_of(before=107.0, after=114.0), 0.0) is None
    assert continued_drift(change_of(kind), steps(38, 54), 22, change_of(before=107.0, after=114.0), 0.0) is None


def test_a_way_back_is_a_change_of_its_own():
    values = noisy(drifting() - 0.14 * (np.arange(RUNS) >= 54))
    assert continued_drift(change_of(), values, 22, change_of(before=112.0, after=101.0), 0.0) is None


@pytest.mark.parametrize(("kind", "goes_on"), [("drift", True), ("unclear", False), ("step", False)])
def test_what_began_before_all_runs_at_hand_goes_on_only_as_a_drift(kind, goes_on):
    values = noisy(1 + 0.005 * np.arange(RUNS))
    for since in (RUNS, RUNS + 40):
        longer = continued_drift(change_of(kind), values, since, change_of(before=115.0, after=129.0), 0.0)
        assert (longer is not None) is goes_on
    step = noisy(steps(54))
    assert continued_drift(change_of("drift"), step, RUNS, change_of(before=107.0, after=114.0), 0.0) is None


def test_the_kind_is_asked_until_it_is_known():
    step, drift = noisy(steps(38)), noisy(drifting())
    assert with_kind(change_of(), step, 22, 0.0).kind == "step"
    assert with_kind(change_of(), drift, 22, 0.0).kind == "drift"
    assert with_kind(change_of("step"), drift, 22, 0.0).kind == "step"
    assert with_kind(change_of(), step[30:], 22, 0.0).kind == "unclear"  # too few runs before it
    assert with_kind(change_of(), noisy(steps(25)), LONGEST + 5, 0.0).kind == "unclear"  # too long ago


def reports(noise, shape, seed):
    """How often each of ten series of that shape, ± 3 %, is reported, judged night by night."""
    rng = np.random.default_rng(seed)
    values = 100 * shape[:, None] * (1 + 0.03 * rng.standard_normal((len(shape), 10)))
    found = [one.series for night in replay(values, lambda _night, _block: noise, first=40) for one in night]
    return np.bincount(found, minlength=10)


def test_a_slow_drift_is_reported_once_or_twice_and_steps_each(noise):
    """Before drifts were followed, such a one was reported 3.4 times."""
    nights = np.arange(100)
    drifts = reports(noise, 1 + 0.005 * np.clip(nights - 40, 0, None), 3)
    assert drifts.min() >= 1 and drifts.mean() <= 2.2
    two = reports(noise, 1 + 0.08 * (nights >= 45) + 0.08 * (nights >= 65), 3)
    assert np.sum(two == 2) >= 8 and two.min() >= 1
