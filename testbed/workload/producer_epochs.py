"""The causes of a record that a log has twice: the broker appended it again, or the client sent it in a new epoch.

A client that does not know what became of its requests may begin a new epoch (KIP-360); docs/workload.md says more.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from testbed.errors import TestbedError
from testbed.hosts import Shell
from testbed.kafka.admin import Admin
from testbed.kafka.log_dump import dump
from testbed.kafka.node import DATA_DIR
from testbed.kafka.types import TopicPartition
from testbed.provision.testbed import Testbed
from testbed.topology.host import names_by_id

NO_PRODUCER = -1
SEQUENCES = 1 << 31
"""After the last sequence number comes 0."""

ReadBatches = Callable[[str, int], "Sequence[ProducerBatch]"]
"""Returns the batches of a topic's partition, in the order of their offsets; raises `TestbedError`."""


@dataclass(frozen=True, slots=True)
class ProducerBatch:
    """One batch of records of an idempotent producer, as its header says."""

    producer: int
    epoch: int
    first_sequence: int
    last_sequence: int

    @property
    def records(self) -> int:
        """Return the number of records in the batch."""
        return (self.last_sequence - self.first_sequence) % SEQUENCES + 1


def batch_headers(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the header of each batch in the dump of a log, by the names of its fields."""
    for line in lines:
        if line.startswith("baseOffset: "):
            words = line.split()
            yield dict(zip((word.rstrip(":") for word in words[::2]), words[1::2], strict=False))


def parse_batches(lines: Iterable[str]) -> list[ProducerBatch]:
    """Return the batches of idempotent producers that the dump of a log has; markers of transactions are none."""
    numbers = ("producerId", "producerEpoch", "baseSequence", "lastSequence")
    return [
        ProducerBatch(*(int(header[name]) for name in numbers))
        for header in batch_headers(lines)
        if header.get("isControl") != "true" and int(header["producerId"]) != NO_PRODUCER
    ]


def appended_once(batches: Iterable[ProducerBatch]) -> bool:
    """Return whether each batch of a producer and epoch follows the one before it, without a gap or an overlap."""
    expected: dict[tuple[int, int], int] = {}
    for batch in batches:
        session = batch.producer, batch.epoch
        if batch.first_sequence != expected.get(session, batch.first_sequence):
            return False
        expected[session] = (batch.last_sequence + 1) % SEQUENCES
    return True


def sent_again(batches: Sequence[ProducerBatch], repeats: int) -> bool:
    """Return whether a client that began a new epoch explains that `repeats` records are there twice or late.

    It does when the broker appended each batch once, and the later epochs have at least so many records.
    """
    first: dict[int, int] = {}
    later: Counter[int] = Counter()
    for batch in batches:
        if batch.epoch > first.setdefault(batch.producer, batch.epoch):
            later[batch.producer] += batch.records
    return appended_once(batches) and later.total() >= repeats


def reader(testbed: Testbed, admin: Admin) -> ReadBatches:
    """Return a function that reads the batches of a partition from its leader's log."""

    def read(topic: str, partition: int) -> Sequence[ProducerBatch]:
        leader = admin.partitions([topic])[TopicPartition(topic, partition)].leader
        names = names_by_id(testbed.topology.brokers)
        if leader not in names:
            raise TestbedError(f"{topic}-{partition}: its leader, {leader}, is no broker of testbed {testbed.name}")
        return parse_batches(dump_log(testbed.hosts[names[leader]], f"{topic}-{partition}"))

    return read


def dump_log(host: Shell, partition: str) -> list[str]:
    """Return the dump of all segments of a partition on a broker's host. Raise `TestbedError` on failure."""
    folder = f"{DATA_DIR}/{partition}"
    names = sorted(name for name in host.run(["ls", folder]).stdout.split() if name.endswith(".log"))
    return dump(host, [f"{folder}/{name}" for name in names])
