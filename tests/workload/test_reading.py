"""Reading back: by several consumers, until nothing is left; and when it is given up."""

import time
from concurrent.futures import Future
from itertools import pairwise
from types import SimpleNamespace
from typing import ClassVar

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from testbed.errors import TestbedError
from testbed.workload import preload
from testbed.workload.records import PRELOADED, Fill, Payloads, Recipe, identity, timestamp_ms

RECIPE = Recipe(1024, 1)
FILL = Fill("t", range(6), 10, RECIPE)
PAYLOADS = Payloads(RECIPE)
END = KafkaError(KafkaError._PARTITION_EOF)
FIRST_MS = 1_700_000_000_000


class Message:
    def __init__(self, partition, value=None, error=None, offset=None):
        self._partition, self._value, self._error, self._offset = partition, value, error, offset

    def topic(self):
        return "t"

    def partition(self):
        return self._partition

    def value(self):
        return self._value

    def offset(self):
        return self._offset

    def key(self):
        return PRELOADED.key(self._partition, identity(self._value)[2])

    def headers(self):
        return PRELOADED.headers(identity(self._value)[2])

    def timestamp(self):
        return TIMESTAMP_CREATE_TIME, timestamp_ms(identity(self._value)[3])

    def error(self):
        return self._error


def record(partition, place):
    return PAYLOADS.record(partition, place, FILL.producer, -1000 * (FIRST_MS + place))


class FakeConsumer:
    """Hands out a few messages at a time; `stuck` partitions have no end, and records up to `gives` only.

    Their leader says that the log ends at `leader`; None: it does not answer. `late` partitions give the rest when the
    leader was asked.
    """

    made: ClassVar[list["FakeConsumer"]] = []
    stuck = frozenset()
    gives = 0
    leader = None
    late = False
    failing = None

    def __init__(self, settings):
        self.settings, self.messages, self.open = settings, [], True
        FakeConsumer.made.append(self)

    def assign(self, partitions):
        self.partitions = [each.partition for each in partitions]
        for partition in self.partitions:
            if partition in self.stuck:
                self.messages += self.some(partition, 0, self.gives)
            else:
                self.messages += self.some(partition, 0, FILL.records_per_partition)
                self.messages.append(Message(partition, error=self.failing or END))

    def some(self, partition, begin, end):
        return [Message(partition, record(partition, place), offset=place) for place in range(begin, end)]

    def get_watermark_offsets(self, partition, timeout):
        assert self.open and timeout > 0 and partition.partition in self.stuck
        if self.late:
            self.messages += self.some(partition.partition, self.gives, FILL.records_per_partition)
            self.messages.append(Message(partition.partition, error=END))
        if self.leader is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return 0, self.leader

    def consume(self, _most, timeout):
        assert self.open and 0 < timeout <= 0.2
        given, self.messages = self.messages[:3], self.messages[3:]
        return given

    def offsets_for_times(self, asked, timeout):
        assert self.open and timeout > 0
        return [self.answer(each) for each in asked]

    def answer(self, asked):
        """Answer as a leader with a right time index: the timestamps are a millisecond apart."""
        return TopicPartition(asked.topic, asked.partition, asked.offset - FIRST_MS)

    def close(self):
        self.open = False


@pytest.fixture
def consumers(monkeypatch):
    FakeConsumer.made, FakeConsumer.stuck, FakeConsumer.failing = [], frozenset(), None
    FakeConsumer.gives, FakeConsumer.leader, FakeConsumer.late = 0, None, False
    monkeypatch.setattr(preload, "Consumer", FakeConsumer)
    monkeypatch.setattr(preload, "AGAIN_S", 0.05)
    return FakeConsumer


def test_every_record_is_read_by_several_consumers_that_are_closed_after(consumers):
    found = preload.audit(["b1:9092"], [FILL])
    assert (found.expected, found.found, found.lost, found.duplicated, found.corrupt) == (60, 60, 0, 0, 0)
    shares = [each.partitions for each in consumers.made]
    assert len(shares) == preload.READERS
    assert sorted(partition for share in shares for partition in share) == list(range(6))
    assert not any(each.open for each in consumers.made)


@pytest.mark.parametrize(("offsets", "twice"), [((8, 9), 0), ((10, 11), 2)])
def test_an_offset_that_a_client_delivers_again_is_one_record_and_a_second_offset_is_another(
    consumers, monkeypatch, offsets, twice
):
    assign = FakeConsumer.assign

    def assign_and_repeat(consumer, partitions):
        assign(consumer, partitions)
        again = [Message(0, record(0, place), offset=at) for place, at in zip((8, 9), offsets, strict=True)]
        ends = [n for n, each in enumerate(consumer.messages) if each.partition() == 0 and each.error() is END]
        for end in ends:
            consumer.messages[end:end] = again

    monkeypatch.setattr(FakeConsumer, "assign", assign_and_repeat)
    found = preload.audit(["b1:9092"], [FILL])
    assert (found.expected, found.found, found.duplicated) == (60, 60, twice)


def test_there_are_no_more_consumers_than_partitions(consumers):
    preload.audit(["b1:9092"], [Fill("t", range(2), 10, RECIPE)])
    assert len(consumers.made) == 2


def test_it_is_given_up_when_nothing_comes_any_more_and_not_before(consumers, monkeypatch):
    consumers.stuck = frozenset({4})
    now = iter(range(10_000))
    monkeypatch.setattr(preload.time, "monotonic", lambda: float(next(now)))
    said = r"audit: 1 partition was not read to the end: nothing came for 5 s, among them t-4"
    with pytest.raises(TestbedError, match=said):
        preload.audit(["b1:9092"], [FILL], patience_s=5.0)
    assert not any(each.messages or each.open for each in consumers.made)  # all that was there was read first


def test_what_a_leader_has_and_does_not_give_is_lost_and_named(consumers):
    consumers.stuck, consumers.gives, consumers.leader = frozenset({4}), 7, 10
    found = preload.audit(["b1:9092"], [FILL], patience_s=0.05, by_time=True)
    assert (found.expected, found.found, found.lost, found.corrupt) == (60, 57, 3, 1)
    assert found.of_none == (
        "t-4: 1 of the log's offsets corrupt (not given to consumers), first at "
        "[7: nothing came for 0 s, and the leader's log ends at 10]",
    )


@pytest.mark.parametrize(("leader", "remote"), [(None, False), (7, False), (10, True)])
def test_what_no_leader_says_to_have_or_an_object_store_has_is_not_known(consumers, leader, remote):
    consumers.stuck, consumers.gives, consumers.leader = frozenset({4}), 7, leader
    with pytest.raises(TestbedError, match="audit: 1 partition was not read to the end"):
        preload.audit(["b1:9092"], [FILL], patience_s=0.05, remote=remote)


def test_leaders_are_not_asked_any_more_when_one_does_not_answer(consumers, monkeypatch):
    consumers.stuck, consumers.gives = frozenset({1, 3, 4}), 7
    asked = []
    monkeypatch.setattr(FakeConsumer, "get_watermark_offsets", lambda _self, where, timeout: asked.append(where))
    with pytest.raises(TestbedError, match="audit: 3 partitions were not read to the end"):
        preload.audit(["b1:9092"], [FILL], patience_s=0.05)
    assert len(asked) == 1


def test_what_comes_before_the_leaders_answer_is_read(consumers):
    consumers.stuck, consumers.gives, consumers.leader, consumers.late = frozenset({4}), 7, 10, True
    found = preload.audit(["b1:9092"], [FILL], patience_s=0.05)
    assert (found.expected, found.found, found.lost, found.corrupt) == (60, 60, 0, 0)


def test_what_comes_after_a_leaders_answer_is_waited_for_as_long_again(consumers, monkeypatch):
    consumers.stuck, consumers.gives, consumers.leader = frozenset({4}), 7, 10
    asked = []

    def one_more(self, partition, timeout):
        assert timeout > 0
        asked.append(time.monotonic())
        if (place := 6 + len(asked)) < 10:
            self.messages += self.some(partition.partition, place, place + 1)
        return 0, 11

    monkeypatch.setattr(FakeConsumer, "get_watermark_offsets", one_more)
    found = preload.audit(["b1:9092"], [FILL], patience_s=0.3)
    assert (len(asked), found.found, found.corrupt) == (4, 60, 1)
    assert min(after - before for before, after in pairwise(asked)) > 0.3


def test_an_error_that_stays_is_told_with_its_partition(consumers):
    consumers.failing = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(TestbedError, match=r"audit: t-0: .*authorization failed"):
        preload.audit(["b1:9092"], [FILL])


@pytest.mark.parametrize(("declared", "corrupt"), [("LogAppendTime", 10), ("CreateTime", 20)])
def test_the_topics_configuration_says_whose_timestamps_its_records_have(consumers, monkeypatch, declared, corrupt):
    asked = []

    class FakeAdmin:
        def __init__(self, settings):
            assert settings == {"bootstrap.servers": "b1:9092"}

        def describe_configs(self, resources, request_timeout):
            asked.extend(resource.name for resource in resources)
            answer = Future()
            answer.set_result({"message.timestamp.type": SimpleNamespace(value=declared)})
            return dict.fromkeys(resources, answer)

    kinds = {0: TIMESTAMP_LOG_APPEND_TIME, 1: TIMESTAMP_CREATE_TIME}
    monkeypatch.setattr(preload, "AdminClient", FakeAdmin)
    monkeypatch.setattr(Message, "timestamp", lambda self: (kinds.get(self._partition, 0), 5))
    found = preload.audit(["b1:9092"], [Fill("t", range(2), 10, RECIPE)])
    assert (found.lost, found.corrupt, asked) == (0, corrupt, ["t"])
    assert found.broker_times == (("t",) if declared == "LogAppendTime" else ())
    assert any(
        line.startswith("t-1: 10 of preload corrupt (another timestamp), first at [0: at offset 0, 5 ms")
        for line in found.complaints
    )


@pytest.mark.parametrize("after", [True, False])
def test_a_batch_that_the_client_cannot_read_is_corrupt_and_the_next_ones_are_read(consumers, monkeypatch, after):
    """librdkafka goes on after a batch with a wrong checksum; after the last one it meets the same batch again."""
    spoiled = KafkaError(KafkaError._BAD_MSG, "MessageSet at offset 4 failed CRC32C check")
    assign, consume = FakeConsumer.assign, FakeConsumer.consume

    def assign_with_a_spoiled_batch(consumer, partitions):
        assign(consumer, partitions)
        of_4 = [each for each in consumer.messages if each.partition() == 4]
        if of_4:
            at = consumer.messages.index(of_4[4])
            rest = of_4[7:] if after else []
            consumer.messages[at : at + 7] = [Message(4, error=spoiled, offset=4), *rest]

    def consume_for_ever(consumer, most, timeout):
        given = consume(consumer, most, timeout)
        if not given and 4 in consumer.partitions and not after:
            return [Message(4, error=spoiled, offset=4)]
        return given

    monkeypatch.setattr(FakeConsumer, "assign", assign_with_a_spoiled_batch)
    monkeypatch.setattr(FakeConsumer, "consume", consume_for_ever)
    found = preload.audit(["b1:9092"], [FILL], patience_s=5.0)
    assert (found.expected, found.found) == (60, 57 if after else 54)
    assert (
        "t-4: 1 of the log's offsets corrupt (unreadable), first at [4: MessageSet at offset 4 failed CRC32C check]"
        in (found.of_none)
    )


def test_leaders_that_find_records_by_their_times_are_right(consumers):
    assert preload.audit(["b1:9092"], [FILL], by_time=True).corrupt == 0


@pytest.mark.parametrize(("answer", "given"), [(8, "offset 8"), (-1, "no offset")])
@pytest.mark.parametrize("at", [0, 4, 9])
def test_a_leader_that_gives_another_offset_for_a_time_is_named(consumers, monkeypatch, answer, given, at):
    """Each partition is asked for its first record, for its last, and for one between."""
    right = FakeConsumer.answer

    def answered(consumer, asked):
        wrong = (asked.partition, asked.offset) == (2, FIRST_MS + at)
        return TopicPartition("t", 2, answer) if wrong else right(consumer, asked)

    monkeypatch.setattr(FakeConsumer, "answer", answered)
    assert preload.audit(["b1:9092"], [FILL]).corrupt == 0
    found = preload.audit(["b1:9092"], [FILL], by_time=True)
    assert (found.found, found.lost, found.corrupt) == (60, 0, 1)
    assert found.of_none == (
        "t-2: 1 of the log's offsets corrupt (not found by its time), "
        f"first at [{at}: the leader gives {given} for {FIRST_MS + at} ms]",
    )


def test_a_leader_that_does_not_answer_is_asked_again(consumers, monkeypatch):
    refusals = [KafkaException(KafkaError(KafkaError._TIMED_OUT)), KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)]
    right = FakeConsumer.answer

    class Refused:
        topic, partition = "t", 4

        def __init__(self, error):
            self.error = error

    def answered(consumer, asked):
        if asked.partition == 4 and refusals:
            refusal = refusals.pop(0)
            if isinstance(refusal, KafkaException):
                raise refusal
            return Refused(refusal)
        return right(consumer, asked)

    monkeypatch.setattr(FakeConsumer, "answer", answered)
    monkeypatch.setattr(preload, "_LOOK_S", 0.001)
    assert preload.audit(["b1:9092"], [FILL], by_time=True).corrupt == 0
    assert not refusals
    monkeypatch.setattr(
        FakeConsumer, "answer", lambda _self, _asked: Refused(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
    )
    with pytest.raises(TestbedError, match=r"offsets of timestamps.*t-4"):
        preload.audit(["b1:9092"], [FILL], by_time=True, patience_s=0.01)
