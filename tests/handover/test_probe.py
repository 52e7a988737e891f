"""The probe without brokers: what a client refuses for ever is noted, and every record has an outcome."""

from confluent_kafka import KafkaError, KafkaException

from testbed.handover import probe as module
from testbed.handover.probe import Probe
from testbed.kafka.types import TopicPartition

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
