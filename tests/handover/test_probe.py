"""The probe without brokers: what a client refuses for ever is noted, and every record has an outcome."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from testbed.handover import probe as module
from testbed.handover.probe import FIRST_PRODUCER, RECORD_BYTES, Probe
from testbed.kafka.types import TopicPartition
from testbed.workload.records import Recipe

TP = TopicPartition("t", 0)


class FatalProducer:
    """A producer that takes one record, and then has a fatal error."""

    def __init__(self, _settings):
        self.taken = 0

    def produce(self, *_record):
        self.taken += 1
        if self.taken > 1:
            raise KafkaException(KafkaError(KafkaError._FATAL, "out of order sequence number", True))

    def poll(self, _wait_s):
        return 0

    def flush(self, _wait_s):
        return 1


def test_a_producer_with_a_fatal_error_ends_the_writing_and_its_records_are_in_doubt(monkeypatch):
    monkeypatch.setattr(module, "Producer", FatalProducer)
    probe = Probe(["fake:9092"], [TP], 1)
    probe._write()
    assert "out of order sequence number" in probe.error
    [written] = probe.written()
    assert (written.sent, written.acked, written.refused) == (1, 0, ())


@pytest.mark.parametrize("value", [None, b"", b"a record of another client"])
def test_a_record_of_another_client_has_the_epoch_of_its_broker_and_is_none_of_the_probes(value):
    probe, parts = Probe(["fake:9092"], [TP], 1), {"error": None, "leader_epoch": 7, "offset": 41, "value": value}
    own = Recipe(RECORD_BYTES, 1).payloads().record(0, 3, FIRST_PRODUCER, 5)
    for told in (parts, {**parts, "offset": 42, "value": own}):
        answers = {"topic": TP.topic, "partition": TP.partition, **told}
        probe._took(SimpleNamespace(**{name: lambda answer=answer: answer for name, answer in answers.items()}))
    assert [each[:2] for each in probe.probed()[TP].received] == [(41, 7)]
    assert probe._offsets[TP] == {3: 42}
