"""12,000 partitions over three topics against an Admin API that answers as the controller does."""

from collections import Counter

import kafka.errors as client_errors
import pytest
from kafka import TopicPartition as ClientTopicPartition

import testbed.kafka.admin as admin_module
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError, ReassignmentError, UnreachableError
from testbed.kafka.types import TopicPartition

TOPICS, EACH = ("a", "b", "c"), 4000
ALL = [TopicPartition(topic, p) for topic in TOPICS for p in range(EACH)]
TARGETS = dict.fromkeys(ALL, (4, 2, 3))
BROKERS = {1, 2, 3, 4, 5}
MOST_RECORDS = 10_000


class Controller:
    """KRaft's answers: at most 10,000 records an alter, one a partition; every mistake by its partition."""

    def __init__(self):
        self.running, self.sizes, self.lost, self.silent = {}, [], 0, 0

    def alter_partition_reassignments(self, request, timeout_ms):
        assert timeout_ms in (10_000, 20)
        self.sizes.append(len(request))
        if len(request) > MOST_RECORDS:
            raise client_errors.PolicyViolationError
        if self.silent:
            self.silent -= 1
            raise UnreachableError("alter reassignments", "REQUEST_TIMED_OUT", "10 s")
        if self.lost:
            self.lost -= 1
            return dict.fromkeys(request, client_errors.NotControllerError)
        return {tp: self._one(tp, target) for tp, target in request.items()}

    def _one(self, tp, target):
        if tp.topic not in TOPICS or tp.partition >= EACH:
            return client_errors.for_code(3)
        if target is None:
            return None if self.running.pop(tp, None) else client_errors.for_code(85)
        if not target or set(target) - BROKERS:
            return client_errors.for_code(39)
        self.running[tp] = target
        return None

    def list_partition_reassignments(self, timeout_ms):
        return {
            tp: {"replicas": [*target, 1], "adding_replicas": [4], "removing_replicas": [1]}
            for tp, target in self.running.items()
        }


@pytest.fixture
def controller(monkeypatch):
    found = Controller()

    class Connection:
        client = found

        def __init__(self, *_args):
            pass

        def call(self, _what, function, *args, **named):
            return function(*args, **named)

    monkeypatch.setattr(admin_module, "Connection", Connection)
    monkeypatch.setattr(admin_module, "_RETRY_INTERVAL_S", 0.001)
    return found


def test_all_are_asked_for_listed_by_topic_and_cancelled(controller):
    admin = Admin("b")
    admin.alter_reassignments(TARGETS)
    assert controller.sizes == [1000] * 12
    assert sorted(admin.reassignments()) == ALL
    assert Counter(tp.topic for tp in admin.reassignments(["a", "c"])) == {"a": EACH, "c": EACH}
    assert admin.reassignments(["nothing"]) == {}
    listed = admin.reassignments(["b"])[TopicPartition("b", 7)]
    assert (listed.replicas, listed.adding, listed.removing) == ((4, 2, 3, 1), (4,), (1,))
    admin.alter_reassignments({TopicPartition("b", 7): None})
    assert len(controller.running) == len(ALL) - 1
    admin.alter_reassignments(dict.fromkeys(admin.reassignments()))
    assert controller.running == {}


def test_each_error_is_told_by_its_partition_and_name_and_the_others_are_taken(controller):
    wrong = TopicPartition("a", 3999), TopicPartition("b", 0), TopicPartition("x", 0), TopicPartition("c", 2)
    targets = {**TARGETS, wrong[0]: [99], wrong[1]: None, wrong[2]: [1], wrong[3]: []}
    with pytest.raises(ReassignmentError, match="4 of 12001 partitions") as caught:
        Admin("b").alter_reassignments(targets)
    assert caught.value.errors == {
        wrong[0]: "INVALID_REPLICA_ASSIGNMENT",
        wrong[1]: "NO_REASSIGNMENT_IN_PROGRESS",
        wrong[3]: "INVALID_REPLICA_ASSIGNMENT",
        wrong[2]: "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert len(controller.running) == len(ALL) - 3
    assert sum(controller.sizes) == 12_000 and max(controller.sizes) == 1000


def test_a_failover_in_the_middle_asks_nothing_twice(controller):
    controller.lost = 3
    Admin("b").alter_reassignments(TARGETS)
    assert controller.sizes == [1000] * 15
    assert set(controller.running) == {ClientTopicPartition(tp.topic, tp.partition) for tp in ALL}


def test_a_controller_that_does_not_come_back_is_told_for_every_partition(controller):
    controller.lost = 10**6
    targets = {TopicPartition("a", p): [1] for p in range(1500)}
    with pytest.raises((ReassignmentError, KafkaError), match="NOT_CONTROLLER") as caught:
        Admin("b", timeout_s=0.02).alter_reassignments(targets)
    assert len(caught.value.errors) == 1500


def test_a_broker_that_hangs_is_asked_for_once_and_a_cancellation_is_not_repeated(controller):
    controller.silent = 1
    Admin("b").alter_reassignments({TopicPartition("a", 1): [1]})
    assert controller.sizes == [1, 1]
    controller.silent = 2
    with pytest.raises(UnreachableError, match="REQUEST_TIMED_OUT"):
        Admin("b").alter_reassignments({TopicPartition("a", 2): [1]})
    controller.silent = 1
    with pytest.raises(UnreachableError, match="REQUEST_TIMED_OUT"):
        Admin("b").alter_reassignments({TopicPartition("a", 1): None})
    assert controller.sizes == [1] * 5
