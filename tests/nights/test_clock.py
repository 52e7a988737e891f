"""A machine whose clock was ahead: its runs are left out, and no series waits for the time they tell."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from results.nights import night
from results.nights.bucket import iso, micros
from results.nights.judged_runs import DAY_US, night_of
from results.nights.state import NEVER, SeriesState, SeriesVerdict
from results.series.decision import LevelChange
from results.series.history import History, ReportedChange

NOW = datetime(2024, 3, 1, 5, tzinfo=UTC)
HOUR = 3_600_000_000
AT = micros(NOW.isoformat())
REPORTED = ReportedChange(LevelChange("step", 3, 100.0, 120.0, 15.0, 25.0, 0.01), "bad", "good", "new")


def states_of(*states):
    return {state.series: state for state in states}


def test_a_series_that_was_judged_up_to_a_run_dated_ahead_goes_on_with_tonights():
    frozen = SeriesState("a", judged=AT + 400 * DAY_US, since=AT - 60 * DAY_US)
    (state,) = night.set_back(states_of(frozen), NOW).values()
    assert state == replace(frozen, judged=AT - 36 * HOUR)


def test_what_was_told_then_is_not_told_for_ever_and_a_baseline_begins():
    ahead = AT + 400 * DAY_US
    said = SeriesVerdict("REGRESSED", reported=REPORTED, reported_at=ahead)
    frozen = SeriesState("a", judged=ahead, history=History(iso(ahead), (REPORTED,)), said=said)
    (state,) = night.set_back(states_of(frozen), NOW).values()
    assert state.said == replace(said, reported_at=AT - 36 * HOUR)
    assert state.history == History(iso(AT - 36 * HOUR), (REPORTED,))


def test_clocks_that_differ_by_little_change_nothing():
    said = SeriesVerdict("REGRESSED", reported=REPORTED, reported_at=AT + 11 * HOUR)
    near = SeriesState("a", judged=AT + 11 * HOUR, history=History(iso(AT + 11 * HOUR), (REPORTED,)), said=said)
    states = states_of(near, SeriesState("b", judged=NEVER), SeriesState("c", judged=AT - DAY_US))
    assert night.set_back(states, NOW) == states
    assert night.set_back(states_of(SeriesState("a", judged=AT + 400 * DAY_US)), None)["a"].judged == AT + 400 * DAY_US


def test_what_was_learned_on_a_night_to_come_is_of_this_night(learned):
    tonight = int(night_of(np.array([AT]))[0])
    assert night.learned_by(replace(learned, night=tonight + 300), NOW) == replace(learned, night=tonight)
    assert night.learned_by(replace(learned, night=tonight - 3), NOW) == replace(learned, night=tonight - 3)
    assert night.learned_by(replace(learned, night=tonight + 300), None) == replace(learned, night=tonight + 300)
    assert night.learned_by(None, NOW) is None


def test_runs_that_are_left_out_are_named():
    assert night.dated_ahead(0, None, None, NOW) == ()
    later = micros((NOW + timedelta(days=400)).isoformat())
    (one,) = night.dated_ahead(1, "run-x", later, NOW)
    assert one.startswith("run run-x is dated ahead of this machine's clock, 2025-04-05T05:00:00.000000Z where it is ")
    (three,) = night.dated_ahead(3, "run-x", later, NOW)
    assert three.startswith("3 runs, run-x the first of them, are dated ahead")
    assert night.latest_due(NOW) == AT + 12 * HOUR
