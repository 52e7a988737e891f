"""The measuring itself, on small stores; the figures of `docs/series.md` come from the same functions."""

import dataclasses
import math
import sys

import numpy as np
import pytest

from tools.calibrate import (
    AFTER,
    FULL,
    QUICK,
    Power,
    Profile,
    Quiet,
    Tool,
    alarm_promise,
    as_json,
    calibrate,
    false_alarms,
    markdown,
    ours,
    position_promise,
    power,
    runs_promise,
    wilson,
)
from tools.otava import VERSION, OtavaMissing, environment, otava
from tools.simulation import FAMILIES, PROMISED, step

SMALL = Profile("small", ((30, 1, 30),), ("gaussian",), 8, (30,), ("gaussian",), (30,))


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "far-outliers"])
def test_noise_has_the_spread_and_the_level_it_says(family):
    noise = FAMILIES[family](np.random.default_rng(1), 400, 200)
    assert noise.shape == (400, 200)
    assert np.mean(noise) == pytest.approx(0, abs=0.02)
    wanted = {"outliers": 1.65, "mixed": 1.16, "unequal": 1.12}.get(family, 1.0)
    assert np.std(noise) == pytest.approx(wanted, rel=0.1)


def test_far_outliers_are_few_and_as_far_off_as_they_say():
    values = step(np.random.default_rng(1), "far-outliers", 400, 200, 0.03, 400, 0.0)
    times = values / np.median(values, axis=0)
    far = times[times > 2]
    assert len(far) / times.size == pytest.approx(0.01, abs=0.002)
    assert far.min() == pytest.approx(3, rel=0.1) and far.max() == pytest.approx(100, rel=0.1)
    assert np.std(times[times < 2]) == pytest.approx(0.03, rel=0.02)


def test_a_step_is_as_large_as_it_says():
    values = step(np.random.default_rng(1), "gaussian", 4000, 3, 0.03, 2000, 5 / 3)
    assert values[2000:].mean(axis=0) / values[:2000].mean(axis=0) == pytest.approx([1.05] * 3, abs=0.004)


def test_a_tool_that_alarms_every_second_night_is_seen_to():
    tool = Tool("noisy", 10, lambda values, first, seed, of: [(n, 0, n) for n in range(first, len(values), 2)])
    found = false_alarms(tool, "gaussian", 5, 2, 29, 1)
    assert (found.nights, found.alarmed, found.alarms, found.share) == (40, 20, 20, 0.5)
    assert alarm_promise(found) == "broken"


def test_with_three_runs_a_night_nights_are_counted_and_looked_at_after_the_last():
    asked = []

    def often(values, first, seed, of):
        asked.append((len(values), first))
        return [(row, 0, row) for row in range(first, len(values), 3)]

    found = false_alarms(Tool("noisy", 10, often, each=3), "gaussian", 5, 1, 9, 1)
    assert asked == [(27, 11)]  # ten runs are there after the fourth night
    assert (found.nights, found.alarmed) == (6, 6)
    values = step(np.random.default_rng(1), "gaussian", 60, 5, 0.001, 30, 200.0)
    assert {row for row, _, _ in ours(each=3).run(values, 11, 1, None)} == {32}


def test_a_tool_that_finds_everything_after_four_runs_two_runs_off_is_seen_to():
    def late(values, first, seed, of):
        return [(first + 3, at, first + 2) for at in range(values.shape[1])]

    found = power(Tool("late", 10, late), "gaussian", 100, 10 / 3, 20, 40, 1)
    assert (found.trials, found.detected, found.median, found.position[0]) == (40, 40, 4, 0)
    assert (found.step, runs_promise(found), position_promise(found)) == ("10 %", "broken", "broken")
    never = power(Tool("never", 10, lambda *_: []), "gaussian", 100, 10 / 3, 20, 40, 1)
    assert (never.median, never.detected, set(never.found)) == (math.inf, 0, {AFTER + 1})


def test_ours_goes_through_the_table():
    rows = list(calibrate(SMALL, 5))
    quiet = [row for row in rows if isinstance(row, Quiet)]
    steps = [row for row in rows if isinstance(row, Power)]
    assert [row.nights for row in quiet] == [21]
    assert [row.step for row in steps] == ["5 %", "9 %", "10 %"]
    assert steps[-1].detected == 8
    assert {row["measure"] for row in as_json(rows)} == {"false-alarms", "power"}
    assert markdown(rows).count("| testbed |") == 4


def test_what_is_promised_holds_in_a_few_stores():
    """Small on purpose: it would break at three times the promise. `FULL` is what measures."""
    found = false_alarms(ours(), "gaussian", 100, 1, 40, 31)
    assert found.interval[0] <= 0.05
    steps = power(ours(), "gaussian", 100, 10 / 3, 60, 40, 31)
    assert steps.median <= 3
    assert steps.position[2] >= 0.90


def test_several_runs_a_night_have_a_row_of_their_own():
    rows = list(calibrate(dataclasses.replace(SMALL, thrice=("gaussian",), power_series=()), 5))
    assert [(row.tool, row.nights) for row in rows] == [("testbed", 21), ("testbed, 3 runs a night", 27)]


def test_profiles_measure_everything_promised():
    for profile in (QUICK, FULL):
        assert profile.power_series == (100, 1000)
        assert set(PROMISED) <= set(profile.families)
        assert "gaussian" in profile.power_families
    assert {series for series, _, _ in FULL.stores} == {100, 1000}


def test_an_interval_of_a_share():
    """Wilson's, from its paper's formula: 5 of 100 is 2.15 % to 11.2 %."""
    assert wilson(5, 100) == pytest.approx((0.0215, 0.1118), abs=0.0002)
    assert wilson(0, 50)[0] == 0 and wilson(50, 50)[1] == 1


def test_otava_that_cannot_be_run_is_told(tmp_path):
    with pytest.raises(OtavaMissing, match="otava"):
        otava(type(tmp_path)(sys.executable)).run(np.ones((40, 1)), 30, 1, None)


@pytest.mark.nightly
def test_otava_finds_a_step_in_an_environment_of_its_own(tmp_path):
    tool = otava(environment(tmp_path))
    assert environment(tmp_path).exists() and tool.name == f"otava {VERSION}"
    values = step(np.random.default_rng(3), "gaussian", 60, 3, 0.01, 45, 10.0)
    found = tool.run(values, 40, 1, None)
    assert {at for _, at, _ in found} == {0, 1, 2}
    assert all(begun == 45 and 45 <= night <= 50 for night, _, begun in found)


def test_rows_made_in_processes_are_those_made_one_by_one():
    tiny = dataclasses.replace(SMALL, thrice=("gaussian",))
    assert list(calibrate(tiny, 5, jobs=2)) == list(calibrate(tiny, 5))


def test_other_tools_judge_fewer_stores():
    never = Tool("never", 10, lambda *_: [])
    tiny = dataclasses.replace(SMALL, stores=((100, 3, 12),), power_series=(), compared_stores=2)
    assert [(row.tool, row.nights) for row in calibrate(tiny, 5, [never])] == [("testbed", 9), ("never", 6)]
