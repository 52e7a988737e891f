"""An empty broker, without brokers: in which order things are done to it, and that nothing is left of them."""

from types import SimpleNamespace

import pytest

from results.contract.manifest import Done
from testbed.experiments import empty_broker, move_environment
from testbed.experiments.empty_broker import empty_broker_run
from testbed.experiments.kip73_layouts import throttled_layout
from testbed.experiments.layout import PartitionGroup
from testbed.experiments.mid_move_actions import MidMoveAction
from testbed.experiments.move_environment import MoveSetup
from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.types import TopicPartition
from testbed.probes.log_entries import entries
from testbed.throttle.configs import EVERY_BROKER, LEADER_RATE
from testbed.throttle.journal import JournalFolder
from testbed.topology.find import find
from tests.fakes.admin import FakeAdmin

GROUP = PartitionGroup("kip73", range(3), ("b1", "b2"), ("b1", "b2"), 3 * 4096, empty=("b2",))
STALE = """\
[2026-11-21 22:13:28,100] ERROR [AssignmentsManager id=2] handleResponse: 104 assignments failed; global error: \
Response-level error: STALE_BROKER_EPOCH. Retrying. (org.apache.kafka.server.AssignmentsManager)
"""


@pytest.fixture(autouse=True)
def faults_of_the_fake(monkeypatch):
    monkeypatch.setattr("testbed.experiments.empty_broker.Faults", lambda testbed: testbed.faults)


class FakeTestbed:
    """Notes what is done; the stopped broker is out of every ISR, and in it again once it was started."""

    name = "fake"
    bootstrap = driver_bootstrap = ("fake:9092",)

    def __init__(self, done):
        self.topology, self.faults, self.done = find("two-brokers"), self, done
        self.state = SimpleNamespace(cluster_id="fake-cluster", overlay={})
        self.hosts = {"b2": self}
        self.admin = FakeAdmin({TopicPartition("kip73-ab12cd", p): (1, 2) for p in range(3)}, broker_ids=(1, 2))

    def client_networks(self):
        return {}

    def add(self, fault):
        self.done.append(f"{fault.kind} {fault.host}")
        self.admin.isr_lacks = frozenset({2})
        self.admin.broker_ids = (1,)
        return 7

    def clear(self, number):
        self.done.append(f"start, with {self.admin.configs.get(EVERY_BROKER, {}).get(LEADER_RATE)}")
        assert number == 7
        self.admin.broker_ids = (1, 2)
        self.admin.isr_lacks = frozenset()

    def run(self, command):
        self.done.append(f"wipe {command[1]}")

    def put(self, content, path):
        self.done.append(f"format {path}")
        self.meta = content.decode()


@pytest.fixture
def joining(monkeypatch, tmp_path):
    done = []
    testbed = FakeTestbed(done)
    monkeypatch.setattr(empty_broker, "JournalFolder", lambda: JournalFolder(tmp_path))
    monkeypatch.setattr(empty_broker, "LOOK_S", 0.001)
    monkeypatch.setattr(
        move_environment,
        "preload",
        lambda _servers, fills, acks, timeout_s, batch_bytes: done.append(f"fill {len(fills)}"),
    )
    recorder = SimpleNamespace(
        event=lambda kind, *_more: done.append(kind) if kind.startswith("move.") else None,
        add=lambda _samples: None,
        poll=lambda *_what: SimpleNamespace(end=lambda: None, stop=lambda: None),
        wait_for_all=lambda: None,
        latest=lambda *_what: None,
    )
    context = SimpleNamespace(
        testbed=testbed, recorder=recorder, progress=lambda _text: None, run_id="x-ab12cd", settings={}
    )
    setup = MoveSetup(
        throttled_layout([GROUP], "b1", "b2", control=False, wildcard=True), 1000, "tuned", MidMoveAction()
    )
    return empty_broker_run(context, setup, testbed.admin)


def test_the_broker_is_empty_when_it_starts_and_the_throttle_is_there_before_it(joining):
    testbed = joining.testbed
    with joining:
        assert joining.preparation.complete().ok
        moved = joining.transfer(5.0)
    assert moved.done.ok and moved.in_force.ok and moved.restored.ok
    assert testbed.done == [
        "broker-term b2",
        "fill 1",
        "wipe /var/lib/kafka",
        "format /var/lib/kafka/meta.properties",
        "start, with 1000",
        "move.started",
        "move.done",
    ]
    assert "cluster.id=fake-cluster\nnode.id=2\n" in testbed.meta
    assert testbed.admin.configs == {}


def test_an_error_before_the_start_starts_it_all_the_same(joining, monkeypatch):
    monkeypatch.setattr(move_environment, "preload", lambda _servers, _fills, acks, timeout_s, batch_bytes: 1 / 0)
    with pytest.raises(ZeroDivisionError), joining:
        joining.preparation.complete()
    assert joining.testbed.done == ["broker-term b2", "start, with None"]


def test_a_broker_that_is_never_in_sync_is_not_done_and_the_throttle_is_put_back(joining, monkeypatch):
    testbed = joining.testbed
    real = testbed.clear
    monkeypatch.setattr(testbed, "clear", lambda number: (real(number), setattr(testbed.admin, "isr_lacks", {2})))
    with joining:
        joining.preparation.complete()
        moved = joining.transfer(0.01)
    assert isinstance(moved.done, Done) and not moved.done.ok
    assert "b2 to be in sync everywhere" in moved.done.why
    assert moved.done.waited_s == 0.01
    assert moved.restored.ok and testbed.admin.configs == {}


def test_what_an_empty_folder_makes_brokers_say_is_explained_and_nothing_like_it(joining):
    def explained(text):
        [entry] = entries(text)
        return any(allowed.explains(entry, "b2", "4.3.1") for allowed in joining.allowances())

    assert explained(STALE)
    assert not explained(STALE.replace("STALE_BROKER_EPOCH", "NOT_CONTROLLER"))


def test_what_cannot_be_put_back_is_a_difference_of_the_run(joining):
    def hook(call, args):
        if call == "alter_configs" and args[2]:
            raise UnreachableError(f"alter the configuration of {args[0]}", "REQUEST_TIMED_OUT")

    with joining:
        joining.preparation.complete()
        joining.testbed.admin.hook = hook
        moved = joining.transfer(5.0)
    assert moved.done.ok and not moved.restored.ok
    assert "default of all brokers: REQUEST_TIMED_OUT" in " ".join(moved.restored.differences)


def test_a_throttle_that_is_refused_is_why_the_broker_was_not_filled(joining):
    def hook(call, args):
        if call == "alter_configs" and args[1]:
            raise KafkaError(f"alter the configuration of {args[0]}", "CLUSTER_AUTHORIZATION_FAILED")

    with joining:
        joining.preparation.complete()
        joining.testbed.admin.hook = hook
        moved = joining.transfer(5.0)
    assert not moved.done.ok and "CLUSTER_AUTHORIZATION_FAILED" in moved.done.why


def test_copies_of_the_calibration_that_are_not_taken_back_are_told_of_the_stage(joining, monkeypatch):
    monkeypatch.setattr(move_environment.MoveEnvironment, "calibrate", lambda _self: 1.06)
    calibration = {TopicPartition("calibration-ab12cd", p): (2,) for p in range(4)}
    joining.testbed.admin.assignment |= calibration
    joining.testbed.admin.refused = dict.fromkeys(calibration, "INVALID_REPLICA_ASSIGNMENT")
    with joining:
        assert joining.preparation.calibrate() == 1.06
        staged = joining.preparation.complete()
    assert not staged.ok and "were not taken back from b2" in staged.differences[0]
