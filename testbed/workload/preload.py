"""Filling topics before a move, and reading them back after it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from testbed.errors import TestbedError
from testbed.workload.records import Recipe, Tally

Progress = Callable[[int, int], None]
"""Bytes done, bytes in all."""


@dataclass(frozen=True, slots=True)
class Fill:
    """What a topic is filled with: as many records in each partition."""

    topic: str
    partitions: Sequence[int]
    records_per_partition: int
    recipe: Recipe

    @property
    def bytes(self) -> int:
        """Of all records' values."""
        return len(self.partitions) * self.records_per_partition * self.recipe.record_bytes


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found of everything that was written; `complaints` names the first flaws."""

    expected: int
    found: int
    lost: int
    duplicated: int
    corrupt: int
    complaints: tuple[str, ...]


def preload(bootstrap: Sequence[str], fills: Sequence[Fill], *, timeout_s: float = 300.0) -> None:
    """Write every record of `fills`, acknowledged by all in-sync replicas.

    Raises `TestbedError` when one was not acknowledged, naming topic, partition and the broker's error.
    """
    failures: list[str] = []

    def delivered(error: KafkaError | None, message: Any) -> None:
        if error is not None and len(failures) < 5:
            failures.append(f"{message.topic()}-{message.partition()}: {error.str()}")

    producer = Producer(
        {
            "bootstrap.servers": ",".join(bootstrap),
            "acks": "all",
            # Faster than idempotent, and never sent twice: what is not acknowledged at once is an error.
            "enable.idempotence": False,
            "retries": 0,
            "compression.type": "none",
            "linger.ms": 20,
            # The Java producer's default. It matters: a fetch response is cut at its size limit, mostly in the middle
            # of a batch, and that part is fetched again. With large batches that is several per cent of the bytes.
            "batch.size": 16384,
            "queue.buffering.max.kbytes": 131072,
            "message.timeout.ms": int(timeout_s * 1000),
        }
    )
    deadline = time.monotonic() + timeout_s
    for fill in fills:
        pool = fill.recipe.pool()
        # One batch's worth of a partition after the other: larger batches than record by record in turn.
        chunk = max(1, 262144 // fill.recipe.record_bytes)
        for begin in range(0, fill.records_per_partition, chunk):
            for partition in fill.partitions:
                for place in range(begin, min(begin + chunk, fill.records_per_partition)):
                    _produce(producer, fill.topic, partition, fill.recipe.record(pool, partition, place), delivered)
            producer.poll(0)
            if failures or time.monotonic() > deadline:
                break
    left = producer.flush(max(0.1, deadline - time.monotonic()))
    if failures:
        raise TestbedError("preload: records were not acknowledged: " + "; ".join(failures))
    if left:
        raise TestbedError(f"preload: {left} records were not acknowledged within {timeout_s:.0f} s")


def _produce(producer: Any, topic: str, partition: int, value: bytes, delivered: Callable[..., None]) -> None:
    while True:
        try:
            producer.produce(topic, value, partition=partition, on_delivery=delivered)
        except BufferError:
            producer.poll(0.1)  # the queue is full: serve deliveries until there is room
        else:
            return


def audit(
    bootstrap: Sequence[str], fills: Sequence[Fill], *, timeout_s: float = 300.0, progress: Progress | None = None
) -> Audit:
    """Read every partition of `fills` from its beginning to its end and account for every record.

    Raises `TestbedError` when a partition cannot be read to its end in time: nothing is known of its records then.
    """
    tallies = {
        (fill.topic, partition): Tally(fill.records_per_partition) for fill in fills for partition in fill.partitions
    }
    total, done = sum(fill.bytes for fill in fills), 0
    consumer = Consumer(
        {
            "bootstrap.servers": ",".join(bootstrap),
            "group.id": "testbed-audit",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "fetch.message.max.bytes": 1048576,
            "queued.max.messages.kbytes": 65536,
            "check.crcs": True,
        }
    )
    open_partitions = set(tallies)
    deadline = time.monotonic() + timeout_s
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in sorted(tallies)])
        while open_partitions:
            if time.monotonic() > deadline:
                raise TestbedError(
                    f"audit: {len(open_partitions)} partitions were not read to their end within {timeout_s:.0f} s, "
                    f"among them {'-'.join(map(str, min(open_partitions)))}"
                )
            for message in consumer.consume(500, timeout=1.0):
                error = message.error()
                key = (str(message.topic()), int(message.partition() or 0))
                if error is None:
                    value = message.value()
                    tallies[key].add(value, key[1])
                    done += len(value or b"")
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(key)
                else:
                    raise TestbedError(f"audit: {key[0]}-{key[1]}: {error.str()}")
            if progress:
                progress(done, total)
    except KafkaException as error:
        raise TestbedError(f"audit: {error}") from error
    finally:
        consumer.close()
    return summarize(tallies)


def summarize(tallies: Mapping[tuple[str, int], Tally]) -> Audit:
    """All partitions together, with the first flaws named."""
    complaints = []
    for (topic, partition), tally in sorted(tallies.items()):
        if tally.lost:
            complaints.append(f"{topic}-{partition}: {tally.lost} lost, first at {tally.missing()}")
        if tally.duplicated:
            complaints.append(f"{topic}-{partition}: {tally.duplicated} twice")
        if tally.corrupt:
            complaints.append(f"{topic}-{partition}: {tally.corrupt} corrupt")
    values = tallies.values()
    return Audit(
        expected=sum(tally.expected for tally in values),
        found=sum(tally.found for tally in values),
        lost=sum(tally.lost for tally in values),
        duplicated=sum(tally.duplicated for tally in values),
        corrupt=sum(tally.corrupt for tally in values),
        complaints=tuple(complaints[:10]),
    )
