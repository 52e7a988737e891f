"""The controller's records of partitions, replayed by the rules of Kafka's `PartitionRegistration`. Pure.

The records are read as `kafka-dump-log --cluster-metadata-decoder` prints them: one line each, its payload in JSON.
Source of the rules: `org.apache.kafka.metadata.PartitionRegistration.merge`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from testbed.errors import TestbedError
from testbed.kafka.types import TopicPartition

NO_LEADER, NO_LEADER_CHANGE = -1, -2
_LINE = re.compile(r"^\|? ?offset: (\d+) .*?CreateTime: (-?\d+) .*?payload: (\{.*\})\s*$")
_FILE = re.compile(r"^Dumping (\S*/)?(\d+)(-\d+\.checkpoint|\.log)\b")
_TRUNCATED = re.compile(r"^\|? ?offset: \d+ ")


class MetadataLogError(TestbedError):
    """The log cannot be understood; the message has the line or the record."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the metadata log; `ts_us` is when the controller wrote it (µs since the epoch, whole ms)."""

    offset: int
    ts_us: int
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Registration:
    """A partition as the controller has it from `offset` on. `leader` is None while there is none."""

    offset: int
    ts_us: int
    tp: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    leader_epoch: int
    partition_epoch: int


@dataclass(frozen=True, slots=True)
class Removal:
    """A partition that is gone with its topic from `offset` on."""

    offset: int
    ts_us: int
    tp: TopicPartition


@dataclass(frozen=True, slots=True)
class History:
    """Every state of every partition in order, and each one's last (deleted ones have none)."""

    changes: tuple[Registration, ...]
    now: Mapping[TopicPartition, Registration]
    removals: tuple[Removal, ...] = ()

    def of(self, tp: TopicPartition) -> tuple[Registration, ...]:
        """All states of one partition."""
        return tuple(change for change in self.changes if change.tp == tp)


def parse(lines: Iterable[str]) -> Iterator[Record]:
    """Read the records out of the dump; other lines (headers, batches) are passed over.

    After a snapshot the log's records that it holds already are left out. Raises `MetadataLogError` for a record's
    line that cannot be read: one that was lost would be a hole in the history.
    """
    held, in_snapshot = 0, False
    for line in lines:
        if file := _FILE.match(line):
            in_snapshot = file.group(3) != ".log"
            held = max(held, int(file.group(2))) if in_snapshot else held
        found = _LINE.match(line)
        if found is None:
            if _TRUNCATED.match(line) and "isControl" not in line and "controlType" not in line and "payload:" in line:
                raise MetadataLogError(f"a record of the metadata log cannot be read: {line[:200]!r}")
            continue
        offset, millis, payload = found.groups()
        if not in_snapshot and int(offset) < held:
            continue
        try:
            document = json.loads(payload)
            yield Record(int(offset), int(millis) * 1000, document["type"], document.get("data", {}))
        except (ValueError, KeyError) as error:
            raise MetadataLogError(f"record {offset} of the metadata log: {error!r} in {payload[:200]!r}") from error


def replay(records: Iterable[Record]) -> History:
    """Replay the records from the log's beginning (or a snapshot's).

    Raises `MetadataLogError` when a change names a partition or topic that was never made.
    """
    topics: dict[str, str] = {}
    now: dict[TopicPartition, Registration] = {}
    changes: list[Registration] = []
    removals: list[Removal] = []
    for record in records:
        data = record.data
        if record.type == "TOPIC_RECORD":
            topics[data["topicId"]] = data["name"]
        elif record.type == "REMOVE_TOPIC_RECORD":
            name = topics.pop(data["topicId"], None)
            for tp in [tp for tp in now if tp.topic == name]:
                del now[tp]
                removals.append(Removal(record.offset, record.ts_us, tp))
        elif record.type in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            if data["topicId"] not in topics:
                raise MetadataLogError(f"record {record.offset} is of topic id {data['topicId']}, which no record made")
            tp = TopicPartition(topics[data["topicId"]], data["partitionId"])
            state = _made(tp, record) if record.type == "PARTITION_RECORD" else _merged(now.get(tp), tp, record)
            now[tp] = state
            changes.append(state)
    return History(tuple(changes), now, tuple(removals))


def _made(tp: TopicPartition, record: Record) -> Registration:
    data = record.data
    return Registration(
        record.offset,
        record.ts_us,
        tp,
        tuple(data["replicas"]),
        tuple(data.get("addingReplicas") or ()),
        tuple(data.get("removingReplicas") or ()),
        tuple(data["isr"]),
        _leader(data["leader"]),
        data["leaderEpoch"],
        data["partitionEpoch"],
    )


def _merged(before: Registration | None, tp: TopicPartition, record: Record) -> Registration:
    """What is null stays; a leader that is given, the same one too, begins a new leader epoch."""
    if before is None:
        raise MetadataLogError(f"record {record.offset} changes {tp}, which no record made")
    data = record.data

    def given(key: str, old: tuple[int, ...]) -> tuple[int, ...]:
        value = data.get(key)
        return old if value is None else tuple(value)

    leader = data.get("leader", NO_LEADER_CHANGE)
    elected = leader != NO_LEADER_CHANGE
    return replace(
        before,
        offset=record.offset,
        ts_us=record.ts_us,
        replicas=given("replicas", before.replicas),
        adding=given("addingReplicas", before.adding),
        removing=given("removingReplicas", before.removing),
        isr=given("isr", before.isr),
        leader=_leader(leader) if elected else before.leader,
        leader_epoch=before.leader_epoch + elected,
        partition_epoch=before.partition_epoch + 1,
    )


def _leader(broker: int) -> int | None:
    return None if broker == NO_LEADER else broker
