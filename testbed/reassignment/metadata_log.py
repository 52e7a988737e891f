"""The controller's records of partitions, replayed by the rules of Kafka's `PartitionRegistration`. Pure.

`kafka-dump-log --cluster-metadata-decoder` prints the records: one line each, with the payload in JSON.
Source of the rules: `org.apache.kafka.metadata.PartitionRegistration.merge`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from results.contract.untrusted import parse_json
from testbed.errors import TestbedError
from testbed.hosts import Shell
from testbed.kafka.log_dump import dump
from testbed.kafka.node import DATA_DIR
from testbed.kafka.types import TopicPartition

NO_LEADER, NO_LEADER_CHANGE = -1, -2
_LINE = re.compile(r"^\|? ?offset: (\d+) .*?CreateTime: (-?\d+) .*?payload: (\{.*\})\s*$")
_FILE = re.compile(r"^Dumping (\S*/)?(\d+)(-\d+\.checkpoint|\.log)\b")
_TRUNCATED = re.compile(r"^\|? ?offset: \d+ ")


class MetadataLogError(TestbedError):
    """The metadata log is malformed; the message has the line or the record."""


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One record of the metadata log; `ts_us` is when the controller wrote it (µs since the epoch, whole ms)."""

    offset: int
    ts_us: int
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Registration:
    """The state of a partition from `offset` on. `leader` is None without a leader."""

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
    """The deletion of a partition with its topic, at `offset`."""

    offset: int
    ts_us: int
    tp: TopicPartition


@dataclass(frozen=True, slots=True)
class MetadataHistory:
    """Every state of every partition in order, and the last state of each partition that exists."""

    changes: tuple[Registration, ...]
    now: Mapping[TopicPartition, Registration]
    removals: tuple[Removal, ...] = ()


def parse(lines: Iterable[str]) -> Iterator[MetadataRecord]:
    """Return the records of a dump, without its other lines (headers, batches).

    After a snapshot the result excludes the log's records that the snapshot contains. Raise `MetadataLogError` when a
    record's line is unreadable: a lost record would be a gap in the history.
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
            document = parse_json(payload)
            yield MetadataRecord(int(offset), int(millis) * 1000, document["type"], document.get("data", {}))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MetadataLogError(f"record {offset} of the metadata log: {error!r} in {payload[:200]!r}") from error


def replay(records: Iterable[MetadataRecord]) -> MetadataHistory:
    """Return the history from the records, which start at the log's beginning or with a snapshot.

    Raise `MetadataLogError` when a change names a partition or topic that was never created, or lacks a field.
    """
    replayed = _Replay()
    for record in records:
        try:
            replayed.apply(record)
        except (KeyError, TypeError, AttributeError) as error:
            raise MetadataLogError(f"record {record.offset}, {record.type}, cannot be applied: {error!r}") from error
    return MetadataHistory(tuple(replayed.changes), replayed.now, tuple(replayed.removals))


class _Replay:
    """The state after the records so far."""

    def __init__(self) -> None:
        self._topics: dict[str, str] = {}
        self.now: dict[TopicPartition, Registration] = {}
        self.changes: list[Registration] = []
        self.removals: list[Removal] = []

    def apply(self, record: MetadataRecord) -> None:
        """Apply one record. Raise KeyError, TypeError or AttributeError when it has not the fields of its type."""
        data, now = record.data, self.now
        if record.type == "TOPIC_RECORD":
            self._topics[data["topicId"]] = data["name"]
        elif record.type == "REMOVE_TOPIC_RECORD":
            name = self._topics.pop(data["topicId"], None)
            for tp in [tp for tp in now if tp.topic == name]:
                del now[tp]
                self.removals.append(Removal(record.offset, record.ts_us, tp))
        elif record.type in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            if data["topicId"] not in self._topics:
                raise MetadataLogError(f"record {record.offset} is of topic id {data['topicId']}, which no record made")
            tp = TopicPartition(self._topics[data["topicId"]], data["partitionId"])
            state = _made(tp, record) if record.type == "PARTITION_RECORD" else _merged(now.get(tp), tp, record)
            now[tp] = state
            self.changes.append(state)


def _made(tp: TopicPartition, record: MetadataRecord) -> Registration:
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


def _merged(before: Registration | None, tp: TopicPartition, record: MetadataRecord) -> Registration:
    """Return the changed state: null fields stay; a leader in the record begins a new epoch, also the same leader."""
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


_FOLDER = f"{DATA_DIR}/__cluster_metadata-0"


def read_history(host: Shell) -> MetadataHistory:
    """Return every state of every partition, from the metadata log of a controller or broker that runs on `host`.

    Raise `MetadataLogError` when the log's beginning is gone and no snapshot replaces it, and `CommandFailed` when the
    tool fails.
    """
    return replay(read_records(host))


def read_records(host: Shell) -> list[MetadataRecord]:
    """Return all records of the metadata log of a controller or broker that runs on `host`; see `read_history`."""
    names = host.run(["ls", _FOLDER]).stdout.split()
    files = [f"{_FOLDER}/{name}" for name in files_to_read(names)]
    return list(parse(dump(host, files, "--cluster-metadata-decoder")))


def files_to_read(names: Sequence[str]) -> list[str]:
    """Return the log's segments in order, after a snapshot if the first segment does not begin at 0.

    Raise `MetadataLogError` when segments and snapshots do not reach back to the beginning.
    """
    segments = sorted(name for name in names if name.endswith(".log"))
    if not segments:
        raise MetadataLogError(f"no segment in {_FOLDER}; there are {', '.join(sorted(names)) or 'no files'}")
    begins = int(segments[0].removesuffix(".log"))
    if begins == 0:
        return segments
    # A snapshot's name is the first offset after its content; the log continues there, or begins before.
    snapshots = [name for name in sorted(names) if name.endswith(".checkpoint") and name[0].isdigit()]
    fitting = [name for name in snapshots if int(name.split("-")[0]) >= begins]
    if not fitting:
        raise MetadataLogError(f"the log begins at offset {begins} and no snapshot reaches it: {snapshots or 'none'}")
    return [fitting[-1], *segments]
