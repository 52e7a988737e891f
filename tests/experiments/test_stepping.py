"""Steps are taken in order, waited for, and told; what could not be is told as well, and everything is put back."""

import itertools

import pytest

from results.contract.steps import RequiredState
from testbed.experiments.kip455_actions import (
    RELEASE_THROTTLE,
    START_BROKERS,
    cancel,
    end,
    kill_broker,
    moving,
    never,
    reassign,
    reassign_all,
    step,
    still,
)
from testbed.experiments.kip455_executor import Kip455Scenario
from testbed.kafka.errors import ReassignmentError
from testbed.kafka.types import TopicPartition
from tests.experiments.kip455_cluster import TOPIC, take
from tests.fakes.kraft import Controller, KraftAdmin, Partition

UNDER_WAY = moving(adding=(4,), removing=(1,), staying=(2, 3))


@pytest.fixture(autouse=True)
def faults_of_the_fake(monkeypatch):
    monkeypatch.setattr("testbed.experiments.kip455_actions.Faults", lambda testbed: testbed.faults)


class Admin(KraftAdmin):
    """Topics can be made; a broker that is not alive stays out of sync."""

    def create_topic(self, name, assignment):
        for partition, replicas in assignment.items():
            self.controller.partitions[TopicPartition(name, partition)] = Partition(
                replicas, set(replicas), replicas[0]
            )
            self.assignment[TopicPartition(name, partition)] = replicas


@pytest.fixture
def taken(tmp_path, monkeypatch):
    """Takes the steps of a scenario without bytes; returns the records, the controller and the Admin client."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def taken_by(*steps, **scenario):
        controller = Controller.of({}, range(1, 7))
        admin = Admin(controller)
        scenario = {"bytes": 0, "hold_bytes_per_s": None, **scenario}
        found = Kip455Scenario(steps=steps, **scenario)
        records, _recorder = take(found, admin, controller.live.discard, controller.live)
        return records, controller, admin

    return taken_by


def test_a_move_held_open_by_a_dead_broker_ends_when_it_is_back(taken):
    done = still((4, 2, 3), ordered=True)
    records, controller, _admin = taken(
        step("down", kill_broker(4)),
        step("asked", reassign(4, 2, 3), still((1, 2, 3)), end("moving", UNDER_WAY)),
        step("looked", reassign(4, 2, 3), None, never("done", done), end("moving", UNDER_WAY), settle_s=0.3),
        step("back", START_BROKERS, None, end("done", done)),
        step("again", cancel(), answer="NO_REASSIGNMENT_IN_PROGRESS for 0"),
    )
    assert [record.why for record in records] == [""] * 5
    assert [record.answer for record in records] == ["accepted"] * 5  # the fake controller minds nothing
    assert records[2].to_us - records[2].from_us >= 300_000
    assert [record.within_s for record in records] == [None, 1.5, 1.8, None, 1.5]
    assert [e.topic for e in records[1].expectations] == [TOPIC] * 2
    assert all(a.to_us <= b.from_us for a, b in itertools.pairwise(records))
    assert controller.live == {1, 2, 3, 4, 5, 6}


def test_after_a_step_that_does_not_end_none_is_taken_and_all_is_put_back(taken):
    records, controller, admin = taken(
        step("down", kill_broker(4)),
        step("asked", reassign(4, 2, 3), None, end("done", still((4, 2, 3))), timeout_s=0.4),
        step("next", reassign(5, 2, 3), None, end("done", still((5, 2, 3)))),
        step("last", START_BROKERS),
    )
    assert records[1].why.startswith("after 0.4 s: partition 0 is replicas [4, 2, 3, 1], adding [4], removing [1]")
    assert [(r.from_us, r.why) for r in records[2:]] == [(None, "asked did not come to its end")] * 2
    [partition] = controller.partitions.values()
    assert (partition.adding, partition.removing) == ((), ())
    assert controller.live == {1, 2, 3, 4, 5, 6}
    assert admin.configs == {}


def test_the_throttle_is_on_every_replica_and_all_brokers_and_is_put_back(taken):
    records, _controller, admin = taken(
        step("asked", RELEASE_THROTTLE, None, end("there", RequiredState(replicas=(1, 2, 3)))),
        hold_bytes_per_s=50_000,
        doomed=(4,),
    )
    seen = [args for name, args in admin.calls if name == "alter_configs"]
    told = {(str(resource), key, value) for resource, changed, _gone in seen for key, value in changed.items()}
    assert ("topic kip455-abc123", "follower.replication.throttled.replicas", "*") in told
    assert ("default of all brokers", "leader.replication.throttled.rate", "50000") in told
    assert ("default of all brokers", "leader.replication.throttled.rate", "200000000") in told
    assert not any(name == "broker_configs" and args == (4,) for name, args in admin.calls)
    assert records[0].why == ""
    assert admin.configs == {}


def test_a_move_that_ends_before_it_is_cancelled_is_no_error(taken, monkeypatch):
    monkeypatch.setattr(Controller, "tick", lambda _self: None)
    real, cancelled = Admin.alter_reassignments, []

    def ended(self, targets):
        if None in targets.values():
            cancelled.extend(targets)
            raise ReassignmentError("cancel", dict.fromkeys(targets, "NO_REASSIGNMENT_IN_PROGRESS"), len(targets))
        return real(self, targets)

    monkeypatch.setattr(Admin, "alter_reassignments", ended)
    records, _controller, _admin = taken(step("asked", reassign(4, 2, 3)))
    assert [record.answer for record in records] == ["accepted"]
    assert cancelled == [TopicPartition(TOPIC, 0)]


def test_a_refusal_is_the_answer(taken):
    records, _controller, _admin = taken(step("asked", reassign_all({7: (4,)})))
    assert records[0].answer == "UNKNOWN_TOPIC_OR_PARTITION for 7"
