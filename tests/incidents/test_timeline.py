"""The state machine, and two replays that act at the same times."""

import threading

import pytest

from testbed.errors import TestbedError
from testbed.incidents.timeline import TimelineState, play
from testbed.incidents.triggers import (
    AtTime,
    InFlightCondition,
    IsrCondition,
    MoveShare,
    Observations,
    UnderReplicatedCondition,
)
from tests.incidents.files import small

NOTHING = Observations()


def names(dues):
    return [due.entry.name for due in dues]


def test_entries_act_once_at_their_time_in_order():
    timeline = TimelineState(small().broken.entries)
    assert names(timeline.due(0.0, NOTHING)) == ["entry 5"]
    assert timeline.due(1.99, NOTHING) == ()
    assert timeline.next_s() == 2.0
    (due,) = timeline.due(2.001, NOTHING)
    assert (due.entry.name, due.planned_s) == ("move", 2.0)
    assert timeline.due(2.1, NOTHING) == ()
    assert names(TimelineState(small().broken.entries).due(10.0, NOTHING)) == ["entry 5", "move", "throttle"]


def test_a_condition_with_a_delay_acts_so_long_after_it_was_seen_even_if_it_passes():
    timeline = TimelineState([small().broken.entries[3]])
    assert timeline.due(1.0, Observations(isr={"clicks": 2})) == ()
    assert not timeline.open  # it is optional, and its trigger has not come
    assert timeline.due(5.0, Observations(isr={"clicks": 1})) == ()
    assert timeline.open
    (due,) = timeline.due(7.05, Observations(isr={"clicks": 2}))
    assert due.planned_s == 7.0
    assert not timeline.open


def test_a_trigger_that_does_not_come_in_time_never_acts():
    timeline = TimelineState(small().broken.entries[2:4])
    timeline.due(30.0, Observations(moved={"orders": 0.49}))
    assert timeline.open
    assert timeline.due(30.1, Observations(moved={"orders": 0.51})) == ()
    assert not timeline.open


@pytest.mark.parametrize(
    ("trigger", "seen", "met"),
    [
        (IsrCondition(below=2), Observations(isr={"a": 3, "b": 1}), True),
        (IsrCondition(below=2, topic="a"), Observations(isr={"a": 3, "b": 1}), False),
        (IsrCondition(below=2), NOTHING, False),
        (UnderReplicatedCondition(above=0), Observations(under_replicated={"a": 0, "b": 4}), True),
        (InFlightCondition(equals=0, topic="a"), NOTHING, False),
        (MoveShare(share="50%"), Observations(moved={"a": 0.5}), True),
        (MoveShare(share="50%"), Observations(moved={"a": 0.9, "b": 0.4}), False),
        (MoveShare(share="50%"), NOTHING, False),
        (MoveShare(share="50%", topic="b"), Observations(moved={"a": 0.9}), False),
        (MoveShare(share="done"), Observations(moved={"a": 1.0}), False),
        (MoveShare(share="done"), Observations(moved={"a": 1.0}, done=frozenset({"a"})), True),
        (AtTime(3.0), NOTHING, False),
    ],
)
def test_conditions(trigger, seen, met):
    assert (trigger.met_s(2.0, seen) is not None) == met


class FakeClock:
    """Time passes only when it is slept through, a little longer than asked for."""

    def __init__(self, lag_s=0.004):
        self.time_s, self.lag_s = 0.0, lag_s

    def now_s(self):
        return self.time_s

    def sleep(self, seconds):
        self.time_s += seconds + self.lag_s


def replayed(*, lag_s=0.004, observe=None, perform=None):
    """Return what was performed (name, planned and actual time), the errors, and when the replay ended."""
    clock, performed = FakeClock(lag_s), []
    seen = observe or (lambda now_s: Observations(moved={"orders": max(0.0, (now_s - 2) / 20)}))

    def act(due, actual_s):
        performed.append((due.entry.name, due.planned_s, actual_s))
        return perform and perform(due)

    failed = play(small().broken, clock, lambda: seen(clock.now_s()), act, lambda: clock.now_s() < 25)
    return sorted(performed), failed, clock.now_s()


def test_two_replays_act_at_the_same_times():
    first, second = (replayed(lag_s=lag)[0] for lag in (0.001, 0.02))
    assert [name for name, *_ in first] == ["entry 5", "lost", "move", "throttle"]
    for one, other in zip(first, second, strict=True):
        assert one[0] == other[0]
        assert abs(one[2] - other[2]) <= 0.1
        assert all(abs(actual - planned) <= 0.1 for _, planned, actual in (one, other))


def test_a_replay_ends_when_all_is_quiet():
    _performed, _failed, ended_s = replayed()
    assert 28.0 <= ended_s <= 28.3  # nothing moves from 25 s on, and 3 s are watched
    stuck, _failed, ended_s = replayed(observe=lambda _now: Observations(moved={"orders": 0.3}))
    assert "lost" not in [name for name, *_ in stuck]
    assert 33.0 <= ended_s <= 33.3  # it may come until 30 s


def test_a_replay_that_does_not_become_quiet_ends_at_lasts():
    clock = FakeClock()
    play(small().broken, clock, lambda: NOTHING, lambda _due, _at: None, lambda: True)
    assert 60.0 <= clock.now_s() <= 60.1


def test_a_slow_action_holds_up_no_other_entry_and_a_failed_one_is_told():
    release = threading.Event()

    def perform(due):
        if due.entry.name == "throttle":
            release.set()
            raise TestbedError("refused")
        if due.entry.name == "move":
            assert release.wait(20)

    performed, failed, _ended_s = replayed(perform=perform)
    assert [name for name, *_ in performed] == ["entry 5", "lost", "move", "throttle"]
    assert failed == {"throttle": "refused"}
