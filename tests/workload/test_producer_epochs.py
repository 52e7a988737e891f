"""Why a log has a record twice: by the batches of a log as Kafka's tool prints them."""

from dataclasses import replace

import pytest

from testbed.errors import TestbedError
from testbed.workload import preload
from testbed.workload.audit import Ledger
from testbed.workload.producer_epochs import SEQUENCES, ProducerBatch, appended_once, parse_batches, sent_again
from testbed.workload.records import BROKER_TIME, Payloads, ReadRecords, Recipe, WrittenRecords

# As Kafka 4.3.1 printed them: a record of epoch 0 at offset 2016, and again in the first batch of epoch 1.
DUMPED = """\
Dumping /var/lib/kafka/soak-13-2/00000000000000000000.log
Log starting offset: 0
baseOffset: 0 lastOffset: 14 count: 15 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1795646771101 size: 15555 magic: 2 compresscodec: none crc: 1 isvalid: true
baseOffset: 2015 lastOffset: 2015 count: 1 baseSequence: 15 lastSequence: 15 producerId: 1002 producerEpoch: 0 partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 2 CreateTime: 1795646771817 size: 1094 magic: 2 compresscodec: none crc: 248777549 isvalid: true
baseOffset: 2016 lastOffset: 2016 count: 1 baseSequence: 16 lastSequence: 16 producerId: 1002 producerEpoch: 0 partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 3 CreateTime: 1795646771917 size: 1094 magic: 2 compresscodec: none crc: 248777549 isvalid: true
baseOffset: 2017 lastOffset: 2024 count: 8 baseSequence: 0 lastSequence: 7 producerId: 1002 producerEpoch: 1 partitionLeaderEpoch: 2 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 4 CreateTime: 1795646772662 size: 1094 magic: 2 compresscodec: none crc: 4 isvalid: true
baseOffset: 2025 lastOffset: 2025 count: 1 baseSequence: -1 lastSequence: -1 producerId: 1002 producerEpoch: 1 partitionLeaderEpoch: 2 isTransactional: true isControl: true deleteHorizonMs: OptionalLong.empty position: 5 CreateTime: 1795646772662 size: 78 magic: 2 compresscodec: none crc: 5 isvalid: true
"""  # noqa: E501 - lines of the tool
BATCHES = [ProducerBatch(1002, 0, 15, 15), ProducerBatch(1002, 0, 16, 16), ProducerBatch(1002, 1, 0, 7)]


def test_a_dump_has_the_batches_of_idempotent_producers_alone():
    assert parse_batches(DUMPED.splitlines()) == BATCHES


def test_a_new_epoch_explains_as_many_records_as_it_has():
    assert sent_again(BATCHES, 8)
    assert not sent_again(BATCHES, 9)
    assert not sent_again(BATCHES[:2], 1)


@pytest.mark.parametrize(
    "wrong",
    [
        [*BATCHES, BATCHES[2]],
        [BATCHES[0], BATCHES[0], *BATCHES[1:]],
        [BATCHES[1], BATCHES[0], BATCHES[2]],
        [replace(BATCHES[0], first_sequence=9, last_sequence=14), *BATCHES[1:]],
    ],
    ids=["the last batch again", "the first batch again", "out of order", "a batch is missing"],
)
def test_a_new_epoch_explains_nothing_where_the_broker_did_not_keep_an_order(wrong):
    assert not appended_once(wrong)
    assert not sent_again(wrong, 1)


def test_sequence_numbers_begin_again_after_the_last():
    batches = [ProducerBatch(1, 0, SEQUENCES - 2, 0), ProducerBatch(1, 0, 1, 4)]
    assert [batch.records for batch in batches] == [3, 4]
    assert appended_once(batches)


def ledger_with_a_record_twice():
    recipe = Recipe(100, 7)
    ledger = Ledger([WrittenRecords(1, "producer-1", "t", 0, 3, 3)])
    found = ReadRecords()
    for offset, place in enumerate((0, 1, 2, 2)):
        found.add(offset, recipe_record(recipe, place), None, None, BROKER_TIME)
    ledger.add("t", 0, found)
    return ledger


def recipe_record(recipe, place):
    return Payloads(recipe).record(0, place, 1, 0)


@pytest.mark.parametrize(("batches", "again"), [(BATCHES, 1), (BATCHES[:2], 0)])
def test_the_account_says_what_the_client_sent_again(batches, again):
    found = preload._account(ledger_with_a_record_twice(), lambda _topic, _partition: batches)
    assert (found.duplicated, found.sent_again, found.producers[0].sent_again) == (1, again, again)


def test_a_log_that_cannot_be_read_explains_nothing():
    def refuse(_topic, _partition):
        raise TestbedError("no such host")

    found = preload._account(ledger_with_a_record_twice(), refuse)
    assert (found.duplicated, found.sent_again) == (1, 0)
    assert found.complaints[-1] == "t-0: its log could not be read: no such host"
