"""What a preload waits for before it writes: leaders that answer, asked by a client without old knowledge."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from testbed.wait import WaitTimeout
from testbed.workload import preload as module
from testbed.workload.records import Fill, Recipe

UNKNOWN = KafkaError(KafkaError._UNKNOWN_PARTITION)


class FakeConsumer:
    """One that has once met an unknown topic knows it as unknown for good, as librdkafka does for half a minute."""

    made = 0
    knows_from = 2
    asked = ()

    def __init__(self, settings):
        FakeConsumer.made += 1
        self.number, self.open = FakeConsumer.made, True

    def get_watermark_offsets(self, tp, timeout_s, cached):
        assert self.open and not cached
        FakeConsumer.asked += ((self.number, tp.topic, tp.partition),)
        if tp.topic == "late" and self.number < FakeConsumer.knows_from:
            raise KafkaException(UNKNOWN)
        return 0, 0

    def close(self):
        self.open = False


@pytest.fixture
def consumers(monkeypatch):
    FakeConsumer.made, FakeConsumer.knows_from, FakeConsumer.asked = 0, 2, ()
    monkeypatch.setattr(module, "Consumer", FakeConsumer)
    monkeypatch.setattr(module, "LOOK_S", 0.001)
    return FakeConsumer


def fills():
    recipe = Recipe(1024, 1)
    return [Fill("late", range(2), 1, recipe), Fill("there", range(2), 1, recipe)]


def test_a_client_that_met_an_unknown_topic_is_not_asked_again(consumers):
    module._wait_led(["b1:9092"], fills(), {}, 5.0)
    there = [("there", 1), ("there", 0)]
    assert list(consumers.asked) == [
        *((1, *each) for each in [*there, ("late", 1)]),
        *((2, *each) for each in [("late", 1), ("late", 0)]),
    ]


def test_a_leader_that_never_answers_is_named(consumers):
    consumers.knows_from = 10**9
    with pytest.raises(
        WaitTimeout, match=r"preload: every partition's leader to answer.*late-1: .*[Uu]nknown partition"
    ):
        module._wait_led(["b1:9092"], fills(), {}, 0.05)
