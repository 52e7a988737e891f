"""What a preload waits for before it writes: leaders that answer, asked by a client without old knowledge."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException

from testbed.errors import TestbedError
from testbed.wait import WaitTimeout
from testbed.workload import preload as module
from testbed.workload.records import Fill, Recipe

UNKNOWN = KafkaError(KafkaError._UNKNOWN_PARTITION)


class FakeAdmin:
    """One that has once met an unknown topic knows it as unknown for good, as librdkafka does for half a minute."""

    made = 0
    knows_from = 2
    asked = ()

    def __init__(self, settings):
        FakeAdmin.made += 1
        self.number = FakeAdmin.made

    def list_offsets(self, wanted, request_timeout):
        FakeAdmin.asked += ((self.number, [(tp.topic, tp.partition) for tp in wanted]),)
        return {tp: self.answer(tp) for tp in wanted}

    def answer(self, tp):
        future = Future()
        if tp.topic == "late" and self.number < FakeAdmin.knows_from:
            future.set_exception(KafkaException(UNKNOWN))
        else:
            future.set_result(0)
        return future


@pytest.fixture
def admins(monkeypatch):
    FakeAdmin.made, FakeAdmin.knows_from, FakeAdmin.asked = 0, 2, ()
    monkeypatch.setattr(module, "AdminClient", FakeAdmin)
    monkeypatch.setattr(module, "LOOK_S", 0.001)
    return FakeAdmin


def fills():
    recipe = Recipe(1024, 1)
    return [Fill("late", range(2), 1, recipe), Fill("there", range(2), 1, recipe)]


def test_a_client_that_met_an_unknown_topic_is_not_asked_again(admins):
    module._wait_led(["b1:9092"], fills(), 5.0)
    late, there = [("late", 0), ("late", 1)], [("there", 0), ("there", 1)]
    assert list(admins.asked) == [(1, [*late, *there]), (2, late)]


def test_without_partitions_nobody_is_asked(admins):
    module._wait_led(["b1:9092"], [], 5.0)
    assert admins.made == 0


def test_a_leader_that_never_answers_is_named(admins):
    admins.knows_from = 10**9
    with pytest.raises(
        WaitTimeout, match=r"preload: every partition's leader to answer.*late-0: .*[Uu]nknown partition"
    ):
        module._wait_led(["b1:9092"], fills(), 0.05)


class RefusingProducer:
    """A producer whose first record is refused."""

    topics: ClassVar[list] = []

    def __init__(self, _settings):
        self.waiting = []

    def produce(self, topic, _value, _key, partition, on_delivery, *, timestamp, headers):
        self.topics.append(topic)
        self.waiting.append((on_delivery, SimpleNamespace(topic=lambda: topic, partition=lambda: partition)))

    def poll(self, _wait_s):
        for delivered, message in self.waiting[:1]:
            delivered(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), message)
        self.waiting = []

    def flush(self, _wait_s):
        return 0


def test_after_a_refused_record_no_further_topic_is_written(admins, monkeypatch):
    monkeypatch.setattr(module, "Producer", RefusingProducer)
    with pytest.raises(TestbedError, match="preload: records were not acknowledged: there-0: .*authorization failed"):
        module.preload(["b1:9092"], [Fill(name, range(2), 1, Recipe(1024, 1)) for name in ("there", "other")])
    assert set(RefusingProducer.topics) == {"there"}
