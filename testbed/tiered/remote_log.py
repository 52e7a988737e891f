"""The remote log of a running testbed: its metadata topic and its bucket, read only."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from testbed.errors import TestbedError
from testbed.kafka.node import METADATA_TOPIC
from testbed.objectstore.store import TIERED, ObjectStore, ObjectStoreError
from testbed.tiered.segments import Segment, SegmentId, SegmentState, StoreAccount, account, replay
from testbed.wait import wait_for

_AT_ONCE = 2000
_TIMEOUT_S = 30.0


class RemoteLog(AbstractContextManager["RemoteLog"]):
    """The segments that the cluster knows, read from Kafka's own metadata topic."""

    def __init__(self, bootstrap: Sequence[str]) -> None:
        self._known: dict[SegmentId, Segment] = {}
        self._next: dict[int, int] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": ",".join(bootstrap),
                "group.id": "testbed-remote-log",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 3,
            }
        )

    def __exit__(self, *_error: object) -> None:
        self._consumer.close()

    def segments(self, topic: str | None = None) -> list[Segment]:
        """Return every copy of a segment of the topic (None: of all topics), in the present metadata.

        Empty before the first topic is tiered. Raise `TestbedError` when the topic cannot be read to its present end.
        """
        # A broker that was just killed may still be the leader that receives the request.
        wait_for(self._trouble, lambda trouble: not trouble, _TIMEOUT_S, 0.1, f"{METADATA_TOPIC} to be read")
        return [each for of, each in sorted(self._known.items()) if topic is None or of.topic == topic]

    def copied_bytes(self, topic: str) -> dict[int, int]:
        """Return partition → bytes of its segments in the store; a segment that was copied twice counts once."""
        largest: dict[tuple[int, int], int] = {}
        for each in self.segments(topic):
            if each.state is SegmentState.COPIED:
                place = (each.of.partition, each.end_offset)
                largest[place] = max(largest.get(place, 0), each.bytes)
        total = Counter[int]()
        for (partition, _end), size in largest.items():
            total[partition] += size
        return total

    def _trouble(self) -> str:
        """Read to the present end; return the obstacle if it may pass."""
        try:
            self._read()
        except KafkaException as error:
            if not error.args[0].retriable():
                raise TestbedError(f"{METADATA_TOPIC} cannot be read: {error}") from error
            return str(error)
        return ""

    def _read(self) -> None:
        ends = self._ends()
        deadline = time.monotonic() + _TIMEOUT_S
        if self._next.keys() != ends.keys():
            self._next = {partition: self._next.get(partition, 0) for partition in ends}
            self._consumer.assign([TopicPartition(METADATA_TOPIC, *each) for each in self._next.items()])
        while behind := [partition for partition, end in ends.items() if self._next[partition] < end]:
            if time.monotonic() > deadline:
                raise TestbedError(
                    f"{METADATA_TOPIC}: partitions {', '.join(map(str, behind))} were not read to their end within "
                    f"{_TIMEOUT_S:g} s"
                )
            for message in self._consumer.consume(_AT_ONCE, timeout=0.2):
                self._take(message)

    def _take(self, message: Any) -> None:
        error: KafkaError | None = message.error()
        if error is None:
            value: bytes | None = message.value()
            replay(self._known, [value] if value is not None else [])
            self._next[message.partition()] = message.offset() + 1
        elif not error.retriable():
            raise TestbedError(f"{METADATA_TOPIC}-{message.partition()}: {error.str()}")

    def _ends(self) -> dict[int, int]:
        """Return partition → the topic's present end; nothing before the topic exists."""
        found = self._consumer.list_topics(METADATA_TOPIC, timeout=_TIMEOUT_S).topics[METADATA_TOPIC]
        ends = {}
        for partition in () if found.error is not None else found.partitions:
            where = TopicPartition(METADATA_TOPIC, partition)
            _low, ends[partition] = self._consumer.get_watermark_offsets(where, timeout=_TIMEOUT_S)
        return ends


def stored(store: ObjectStore) -> list[tuple[str, int]]:
    """Return key and size in bytes of every object in the bucket of the remote log. Raise `TestbedError` on failure."""
    # Imported here: the import takes a third of a second, and only users of a store need it.
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        with closing(store.client()) as client:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=TIERED)
            return [(str(each["Key"]), int(each["Size"])) for page in pages for each in page.get("Contents", ())]
    except (BotoCoreError, ClientError) as error:
        raise ObjectStoreError(f"the bucket {TIERED} cannot be listed: {error}") from error


def accounted(store: ObjectStore, remote: RemoteLog) -> StoreAccount:
    """Return the comparison of store and metadata; exact when nothing is copied or deleted meanwhile."""
    return account(remote.segments(), stored(store))
