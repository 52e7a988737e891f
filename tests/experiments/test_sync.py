"""Who is back in sync, and who leads, while partitions arrive one after the other."""

from types import SimpleNamespace

import pytest

from testbed.experiments.layout import Layout, PartitionGroup
from testbed.experiments.move_environment import MoveEnvironment
from testbed.kafka.errors import UnreachableError
from testbed.kafka.types import PartitionState

GROUP = PartitionGroup("t", range(3), ("A", "B"), ("C", "B"))
T0, T1, T2 = GROUP.tps()


def state(tp, leader, replicas, isr):
    return PartitionState(tp, leader, 0, replicas, isr)


@pytest.fixture
def environment():
    found = MoveEnvironment.__new__(MoveEnvironment)
    found.ids = {"A": 1, "B": 2, "C": 3}
    found.layout = Layout((GROUP,), calibration=PartitionGroup("c", range(1), ("A",), ("C",)))
    found.admin = SimpleNamespace(partitions=lambda _topics: found.states)
    found.states = {
        T0: state(T0, 3, (3, 2), (3, 2)),  # has arrived: A has nothing to do with it any more
        T1: state(T1, 2, (3, 2, 1), (2,)),
        T2: state(T2, 1, (3, 2, 1), (1, 2)),
    }
    return found


def test_what_has_moved_away_is_not_waited_for(environment):
    assert environment.out_of_sync("A") == [T1]
    assert environment.out_of_sync("B") == []
    assert environment.out_of_sync("C") == []  # it is being sent: how far it is is what the move is about


def test_leaders_are_as_planned_when_those_that_have_not_moved_are(environment):
    assert not environment.led_as_planned()
    environment.states[T1] = state(T1, 1, (3, 2, 1), (1, 2))
    assert environment.led_as_planned()


def test_without_an_answer_everything_is_missing(environment):
    def silent(_topics):
        raise UnreachableError("describe topics", "REQUEST_TIMED_OUT")

    environment.admin = SimpleNamespace(partitions=silent)
    assert environment.out_of_sync("B") == [T0, T1, T2]
    assert not environment.led_as_planned()
