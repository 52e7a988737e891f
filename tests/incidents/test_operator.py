"""The operator's hands, on a cluster in memory."""

import threading
from dataclasses import dataclass, field

import pytest

from results.criteria.expectations import QuotaBeforeMove
from testbed.errors import TestbedError
from testbed.faults.parse import parse_fault
from testbed.incidents.cluster_poll import ClusterPoll
from testbed.incidents.operator import ClusterOperator, affected_nodes
from testbed.kafka.errors import UnreachableError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.probes.recorder import Recorder
from testbed.throttle.configs import FOLLOWER_REPLICAS, LEADER_RATE
from testbed.throttle.journal import JournalFolder
from testbed.topology.find import find
from tests.fakes.admin import FakeAdmin
from tests.incidents.runs import replayed

TP = TopicPartition("orders", 0)


@dataclass
class FakeTestbed:
    name: str = "fake"
    topology: object = field(default_factory=lambda: find("three-brokers"))
    started: int = 0
    refuses: bool = False

    def start_kafka(self):
        self.started += 1
        if self.refuses:
            raise TestbedError("b3 does not start")


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    admin = FakeAdmin({TP: (1, 2)})
    testbed, recorder = FakeTestbed(), Recorder()
    poll = ClusterPoll(admin, ["orders"], {1: "b1", 2: "b2", 3: "b3"}, recorder)
    operator = ClusterOperator(testbed, admin, ("orders",), poll, recorder.event)
    return admin, testbed, operator, recorder


def kinds(recorder):
    return [event.kind for event in recorder.events()]


def test_a_throttled_move_begins_when_the_quota_is_in_force(scene):
    admin, _testbed, operator, recorder = scene
    operator.move(("orders",), (("b1", "b3"),), 5_000_000)
    assert kinds(recorder) == ["throttle.setting", "throttle.set", "throttle.in_force", "move.started"]
    assert admin.running == {TP: (1, 3)}
    assert admin.configs[ConfigResource.topic("orders")][FOLLOWER_REPLICAS] == "0:3"
    assert {admin.configs[ConfigResource.broker(b)][LEADER_RATE] for b in (1, 2, 3)} == {"5000000"}


def test_a_throttle_is_set_when_every_broker_shows_it_and_what_it_covers_can_be_read_from_the_events(scene):
    _admin, _testbed, operator, recorder = scene
    operator.set_throttle(5_000_000, ("orders",))
    assert kinds(recorder) == ["throttle.setting", "throttle.set", "throttle.in_force"]
    operator.move(("orders",), (("b3",),), None)
    events = recorder.events()
    assert QuotaBeforeMove().judge(replayed(events=events, started=0), 0).verdict == "pass"
    other = [event._replace(name="clicks") if event.kind == "move.started" else event for event in events]
    assert QuotaBeforeMove().judge(replayed(events=other, started=0), 0).verdict == "fail"


def test_a_move_without_a_throttle_sets_none(scene):
    admin, _testbed, operator, recorder = scene
    operator.move(("orders",), (("b3",),), None)
    assert (admin.configs, kinds(recorder)) == ({}, ["move.started"])


def test_a_move_to_where_everything_is_already_is_refused(scene):
    _admin, _testbed, operator, _recorder = scene
    with pytest.raises(TestbedError, match="every partition is there already"):
        operator.move(("orders",), (("b1", "b2"),), None)


def test_a_throttle_set_late_lists_what_moves_and_can_be_raised_and_removed(scene):
    admin, _testbed, operator, _recorder = scene
    operator.move(("orders",), (("b3",),), None)
    operator.set_throttle(5_000_000, ())
    assert admin.configs[ConfigResource.topic("orders")][FOLLOWER_REPLICAS] == "0:3"
    operator.change_throttle(9_000_000)
    assert admin.configs[ConfigResource.broker(2)][LEADER_RATE] == "9000000"
    operator.remove_throttle()
    assert admin.configs == {}


def test_whatever_was_left_is_put_back(scene):
    admin, testbed, operator, recorder = scene
    operator.move(("orders",), (("b3",),), 5_000_000)
    assert operator.restore() == []
    assert (admin.running, admin.configs, testbed.started) == ({}, {}, 1)
    assert kinds(recorder)[-2:] == ["move.cancelled", "throttle.restored"]
    assert JournalFolder().ids() == []


def test_what_cannot_be_put_back_is_told_and_the_rest_is_put_back_all_the_same(scene):
    admin, testbed, operator, _recorder = scene
    operator.move(("orders",), (("b3",),), 5_000_000)
    testbed.refuses = True

    def refuse(call, _args):
        if call == "reassignments":
            raise UnreachableError("list reassignments", "NETWORK_EXCEPTION")

    admin.hook = refuse
    problems = operator.restore()
    assert problems[0] == "b3 does not start"
    assert "list reassignments" in problems[1]
    assert (len(problems), admin.configs) == (2, {})


@pytest.mark.parametrize(
    ("text", "brokers"),
    [
        ("broker-kill host=b2", [2]),
        ("quota-alter brokers=b1,b3 rate=1MB/s", [1, 3]),
        ("nic-cut hosts=b1", [1, 2, 3]),  # a cut affects both sides
        ("nic-cut hosts=b1 peers=b2", [1, 2, 3]),
    ],
)
def test_a_fault_affects_the_brokers_that_it_names(text, brokers):
    """b1 is the controller as well."""
    found = affected_nodes(parse_fault(text), find("three-brokers"))
    assert found == {"brokers": brokers, "controller": "b1" in text, "keeps_quota": text.startswith("nic-")}


def test_a_fault_of_a_rack_affects_its_brokers():
    topology = find("two-racks-narrow-uplink")
    rack = next(iter(topology.uplinks))
    inside = [host.node_id for host in topology.brokers if host.rack == rack]
    assert affected_nodes(parse_fault(f"uplink-cut rack={rack}"), topology)["brokers"] == inside


def test_converging_says_what_is_missing_and_elects_the_preferred_leaders(scene):
    admin, _testbed, operator, recorder = scene
    elected = []
    admin.elect_preferred = elected.extend
    operator.converge(0.1)
    (event,) = [each for each in recorder.events() if each.kind == "replicas.converged"]
    assert event.detail["missing"] == []
    assert event.detail["in_time"] is True
    assert elected == [TP]


def test_converging_waits_for_actions_of_other_entries(scene):
    """A restart that still runs, or a throttle that is set late, would otherwise follow the calm."""
    admin, _testbed, operator, recorder = scene
    admin.elect_preferred = lambda _tps: None
    started, end = threading.Event(), threading.Event()

    def restart():
        with operator.acting("restart b2"):
            started.set()
            end.wait(10)
            recorder.event("broker.serving", "b2")

    thread = threading.Thread(target=restart)
    thread.start()
    started.wait(10)
    with operator.acting("converge within 50ms"):
        operator.converge(0.05)
    end.set()
    operator.converge(10)
    thread.join()
    found = [each for each in recorder.events() if each.kind in ("broker.serving", "replicas.converged")]
    assert [each.kind for each in found] == ["replicas.converged", "broker.serving", "replicas.converged"]
    assert found[0].detail == {"missing": ["restart b2 is not done"], "in_time": False}
    assert found[2].detail == {"missing": [], "in_time": True}


def test_a_move_that_ends_before_its_cancellation_is_not_recorded_as_cancelled(scene):
    admin, _testbed, operator, recorder = scene
    operator.move(("orders",), (("b3", "b2"),), None)
    admin.refused = {TP: "NO_REASSIGNMENT_IN_PROGRESS"}
    operator.cancel()
    assert recorder.events()[-1].kind == "move.cancelled"
    assert recorder.events()[-1].detail == {"partitions": 0, "kept": {}}


def test_a_cancellation_of_one_topic_leaves_the_others_moving(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    admin, recorder = FakeAdmin({TP: (1, 2), TopicPartition("clicks", 0): (1, 2)}), Recorder()
    topics = ("clicks", "orders")
    every = admin.reassignments
    admin.reassignments = lambda wanted: {tp: each for tp, each in every(wanted).items() if tp.topic in wanted}
    poll = ClusterPoll(admin, topics, {1: "b1", 2: "b2", 3: "b3"}, recorder)
    operator = ClusterOperator(FakeTestbed(), admin, topics, poll, recorder.event)
    operator.move(topics, (("b3", "b2"),), None)
    operator.cancel(("clicks",))
    assert admin.running == {TP: (3, 2)}
    assert set(poll.requested()) == {"orders"}
    assert set(recorder.events()[-1].detail["kept"]) == {"clicks-0"}


def test_a_cancellation_without_an_answer_leaves_open_what_it_did(scene):
    admin, _testbed, operator, recorder = scene
    operator.move(("orders",), (("b3", "b2"),), None)

    def silent(call, _args):
        if call == "alter_reassignments":
            raise UnreachableError("alter reassignments", "REQUEST_TIMED_OUT")

    admin.hook = silent
    with pytest.raises(UnreachableError):
        operator.cancel()
    assert (recorder.events()[-1].kind, recorder.events()[-1].name) == ("move.refused", "orders")
