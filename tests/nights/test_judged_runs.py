"""Nights as they come: the same as the matrix they are when there is one run a night."""

import numpy as np
import pytest

from results.nights.judged_runs import (
    DAY_US,
    LEARN_FROM,
    LOOKS,
    SeriesRuns,
    judge_runs,
    lessons,
    night_of,
    noise_by_night,
    usual,
)
from results.nights.state import NEVER
from results.series.block import Block
from results.series.changes import replay
from results.series.judge import Judge
from results.series.noise_estimation import LearnedNoise, due, learned_for
from tests.nights.made import BEGIN
from tools.simulation import store

NIGHTS, SERIES = 60, 40


@pytest.fixture
def values():
    made = store(np.random.default_rng(5), "gaussian", NIGHTS, SERIES, 0.03)
    made[30:, 3] *= 1.2
    made[45:, 3] *= 0.8
    made[40:, 9] *= 0.85
    made[20, 11] *= 5
    made[7:15, 12] = np.nan
    return made


def edges(series, since=NEVER):
    return np.full(series, NEVER), np.full(series, since)


def test_one_run_a_night_is_what_replay_finds(values, runs_of, learned):
    nights = replay(values, lambda _night, _block: learned.noise)
    wanted = [(each.series, each.night, each.change) for night in nights for each in night]
    came = judge_runs(runs_of(values), *edges(SERIES), lambda _night, _block: learned.noise)
    first = int(night_of(np.array([BEGIN]))[0])
    assert sorted((f.series, f.night - first, f.change) for f in came.found) == sorted(wanted)
    assert {series for series, _, _ in wanted} == {3, 9}
    for found in came.found:
        assert found.first_bad == found.newest + 1 - found.change.runs
        assert found.last_good == found.first_bad - 1


@pytest.mark.parametrize("stop", [5, 29, 33, 50, 59])
def test_going_on_from_where_it_was_judged_is_the_same_as_all_at_once(values, runs_of, learned, stop):
    noise = lambda _night, _block: learned.noise  # noqa: E731
    runs = runs_of(values)
    whole = judge_runs(runs, *edges(SERIES), noise, family=SERIES)
    early = judge_runs(runs_of(values[:stop]), *edges(SERIES), noise, family=SERIES)
    baseline = np.full(SERIES, NEVER)
    for found in early.found:
        baseline[found.series] = BEGIN + (found.baseline - found.series * stop) * DAY_US
    late = judge_runs(runs, baseline, np.full(SERIES, BEGIN + (stop - 1) * DAY_US), noise, family=SERIES)
    key = lambda found: (found.series, found.night, found.change)  # noqa: E731
    assert sorted(map(key, early.found + late.found)) == sorted(map(key, whole.found))
    assert late.judgements == whole.judgements
    assert (late.oldest == whole.oldest).all()


def test_runs_of_one_night_are_looked_at_once(learned):
    """Four runs a night: the look comes after the last of them."""
    made = store(np.random.default_rng(2), "gaussian", 48, 1, 0.03)[:, 0]
    made[44:] *= 1.3
    at = BEGIN + np.repeat(np.arange(12), 4) * DAY_US + np.tile(np.arange(4), 12) * 60_000_000
    asked = []
    came = judge_runs(
        SeriesRuns(np.array([0, 48]), at, made), *edges(1), lambda night, _block: asked.append(night) or learned.noise
    )
    assert len(asked) == 10  # the first two nights have fewer than ten runs
    assert [(found.newest, found.first_bad) for found in came.found] == [(47, 44)]


def test_a_history_begun_in_one_go_is_looked_at_as_nights_of_three_runs(learned):
    """A change in the first half of 40 runs is older than what one look at all of them looks for."""
    made = store(np.random.default_rng(2), "gaussian", 40, 2, 0.03)
    made[15:, 0] *= 1.3
    at = BEGIN + np.tile(np.arange(40), 2) * 60_000_000
    asked = []
    runs = SeriesRuns(np.array([0, 40, 80]), at, made.T.ravel().copy())
    came = judge_runs(runs, *edges(2), lambda night, _block: asked.append(night) or learned.noise)
    (night,) = {int(night) for night in asked}
    assert asked == [night + look / LOOKS for look in range(3, 14)]  # the first three looks have fewer than ten runs
    assert [(found.series, found.first_bad, int(found.night)) for found in came.found] == [(0, 15, night)]
    assert came.judgements[0].runs == 25


def test_nine_runs_are_a_night_and_ten_a_history(learned):
    for runs, looks in ((9, 1), (10, 4)):
        at = BEGIN + np.concatenate([np.arange(20) * DAY_US, 30 * DAY_US + np.arange(runs)])
        asked = []
        noise = lambda night, _block: asked.append(int(night)) or learned.noise  # noqa: B023, E731
        judge_runs(SeriesRuns(np.array([0, 20 + runs]), at, np.ones(20 + runs)), *edges(1), noise)
        assert asked.count(asked[-1]) == looks


def test_what_a_history_teaches_is_known_look_by_look(values, runs_of):
    """Else its first runs would be judged by what only the later ones showed."""
    at = BEGIN + np.tile(np.arange(40), 10) * 60_000_000
    runs = SeriesRuns(np.arange(11) * 40, at, values[:40, :10].T.ravel().copy())
    found = lessons(runs, *edges(10), None, 1, Judge(), 10)
    assert [each.length for each in found] == [12, 15, 18, 21, 24, 27, 33, 39]
    assert [noise_by_night(found)(each.night, None) for each in found] == [each.noise for each in found]


def test_without_new_runs_nothing_is_judged(values, runs_of, learned):
    came = judge_runs(runs_of(values), *edges(SERIES, BEGIN + NIGHTS * DAY_US), lambda _night, _block: learned.noise)
    assert came.found == []
    assert set(came.judgements) == {None}


def test_nights_change_at_noon():
    day = 86_400_000_000
    assert night_of(np.array([day // 2 - 1, day // 2, day + day // 2 - 1])).tolist() == [-1, 0, 0]


def test_lessons_are_learned_as_a_store_grows_and_now_and_then_after(values, runs_of):
    found = lessons(runs_of(values[:20, :10]), *edges(10), None, 1, Judge(), 10)
    lengths = [each.length for each in found]
    assert lengths == [10, 12, 14, 16, 18]
    teacher = noise_by_night(found)
    assert teacher(found[0].night - 5, None) is found[0].noise
    assert teacher(found[3].night, None) is found[3].noise
    assert teacher(found[3].night + 10_000, None) is found[-1].noise


def test_how_many_runs_a_night_a_series_usually_has():
    hours = [
        [0, 24, 48, 72],  # one
        [0, 1, 2, 24, 25, 26, 48, 72, 73, 74],  # mostly three
        [0, 1, 24],  # one and a half
        [],
        [0, 1, 24, 25],  # and two of four have no value
    ]
    starts = np.cumsum([0, *(len(each) for each in hours)])
    at = BEGIN + np.array([hour for each in hours for hour in each]) * DAY_US // 24
    values = np.ones(len(at))
    values[-3:-1] = np.nan
    assert usual(SeriesRuns(starts, at, values)).tolist() == [1, 3, 2, 1, 1]
    assert usual(SeriesRuns(np.zeros(3, np.int64), at[:0], values[:0])).tolist() == [1, 1]


def test_what_was_learned_lately_stays(learned):
    block = Block.of([[1.0] * 60] * 3)
    assert learned_for(learned, 5, block, 1, 0.04) is learned
    assert due(learned, 20, 60.0)
    assert due(learned, 1, 68.0)
    assert not due(learned, 19, 67.0)
    assert LEARN_FROM >= 1000


def test_nothing_learned_is_an_error_where_noise_is_asked_for():
    with pytest.raises(ValueError, match="nothing was learned"):
        noise_by_night([])(1, None)


def test_what_was_learned_goes_into_a_line_and_back(learned):
    assert LearnedNoise.from_json(learned.to_json()) == learned
