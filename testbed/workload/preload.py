"""Filling topics before a move. What was filled is read back by `audit`."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from testbed.errors import TestbedError
from testbed.wait import wait_for
from testbed.workload.audit import Audit
from testbed.workload.fill import Fill
from testbed.workload.reading import audit

LED_S, LOOK_S = 30.0, 0.2
CONNECTIONS = 3
"""A broker answers one request of a connection after the other: several producers wait side by side."""
__all__ = ["Audit", "Fill", "audit", "preload"]


def preload(
    bootstrap: Sequence[str],
    fills: Sequence[Fill],
    *,
    acks: Literal["all", "1"] = "all",
    client: Mapping[str, str] | None = None,
    timeout_s: float = 300.0,
) -> None:
    """Write every record of `fills`, acknowledged by all in-sync replicas; with `acks` 1 by the leader alone.

    That is several times faster where there are followers: a broker answers one request of a connection after the
    other, each has one batch, and with all each waits until the followers have asked for the next one. Who chooses it
    waits until the high watermarks are at the ends. `client` has librdkafka's settings for reaching the cluster.
    A partition's records go through one of `CONNECTIONS` producers, in order.

    Raises `TestbedError` when one was not acknowledged, naming topic, partition and the broker's error.
    """
    failures: list[str] = []

    def delivered(error: KafkaError | None, message: Any) -> None:
        if error is not None and len(failures) < 5:
            failures.append(f"{message.topic()}-{message.partition()}: {error.str()}")

    deadline = time.monotonic() + timeout_s
    _wait_led(bootstrap, fills, client or {}, min(timeout_s, LED_S))
    producers = [_producer(bootstrap, acks, timeout_s, client or {}) for _ in range(CONNECTIONS)]
    for fill in fills:
        payloads = fill.recipe.payloads()
        # One batch's worth of a partition after the other: larger batches than record by record in turn.
        chunk = max(1, 262144 // fill.recipe.record_bytes)
        for begin in range(0, fill.records_per_partition, chunk):
            for partition in fill.partitions:
                producer = producers[partition % CONNECTIONS]
                for place in range(begin, min(begin + chunk, fill.records_per_partition)):
                    _produce(producer, fill.topic, partition, payloads.record(partition, place), delivered)
            for producer in producers:
                producer.poll(0)
            if failures or time.monotonic() > deadline:
                break
    left = sum(producer.flush(max(0.1, deadline - time.monotonic())) for producer in producers)
    if failures:
        raise TestbedError("preload: records were not acknowledged: " + "; ".join(failures))
    if left:
        raise TestbedError(f"preload: {left} records were not acknowledged within {timeout_s:.0f} s")


def _producer(bootstrap: Sequence[str], acks: str, timeout_s: float, client: Mapping[str, str]) -> Producer:
    return Producer(
        {
            "bootstrap.servers": ",".join(bootstrap),
            "acks": acks,
            # Faster than idempotent, and never sent twice: what is not acknowledged at once is an error.
            "enable.idempotence": False,
            "retries": 0,
            "compression.type": "none",
            "linger.ms": 20,
            # The Java producer's default. It matters: a fetch response is cut at its size limit, mostly in the middle
            # of a batch, and that part is fetched again. With large batches that is several per cent of the bytes.
            "batch.size": 16384,
            "queue.buffering.max.kbytes": 131072 // CONNECTIONS,
            "message.timeout.ms": int(timeout_s * 1000),
            # A broker that is stopped on purpose is no news; what is not delivered is raised.
            "log_level": 2,
            **client,
        }
    )


def _wait_led(bootstrap: Sequence[str], fills: Sequence[Fill], client: Mapping[str, str], timeout_s: float) -> None:
    """Wait until every partition's leader answers as its leader.

    A broker that has not heard yet that it leads a new partition refuses a batch, which the client sends again whatever
    its `retries` are, and the next one overtakes it: on a busy machine the first three records of a partition were seen
    after later ones.
    """
    pending = [TopicPartition(fill.topic, partition) for fill in fills for partition in fill.partitions]
    settings = {"bootstrap.servers": ",".join(bootstrap), "group.id": "testbed-preload", **client}

    def refusal() -> str:
        """Why the first of them that does not answer does not; empty: all do."""
        # A new client each time: one that has met a broker to which a topic was unknown says so for half a minute.
        consumer = Consumer(settings)
        try:
            while pending:
                consumer.get_watermark_offsets(pending[-1], timeout_s, cached=False)
                pending.pop()
        except KafkaException as error:
            return f"{pending[-1].topic}-{pending[-1].partition}: {error.args[0].str()}"
        finally:
            consumer.close()
        return ""

    wait_for(refusal, lambda why: not why, timeout_s, LOOK_S, "preload: every partition's leader to answer")


def _produce(producer: Any, topic: str, partition: int, value: bytes, delivered: Callable[..., None]) -> None:
    while True:
        try:
            producer.produce(topic, value, partition=partition, on_delivery=delivered)
        except BufferError:
            producer.poll(0.1)  # the queue is full: serve deliveries until there is room
        else:
            return
