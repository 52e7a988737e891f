"""The remote log's metadata: the records of Kafka's topic for it, and the segments they add up to. Pure."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from testbed.errors import TestbedError
from testbed.software.varints import Reader

_FRAME = 1
_SEGMENT, _UPDATE, _PARTITION_DELETE, _SNAPSHOT = range(4)


class State(IntEnum):
    """How far a segment's copy, or its deletion, has come: Kafka's RemoteLogSegmentState."""

    COPY_STARTED = 0
    COPIED = 1
    DELETE_STARTED = 2
    DELETED = 3


@dataclass(frozen=True, slots=True, order=True)
class SegmentId:
    """One copy of a segment. Kafka gives every attempt at a copy an `id` of its own."""

    topic: str
    topic_id: str
    partition: int
    id: str


@dataclass(frozen=True, slots=True)
class Segment:
    """What the metadata says of one copy; offsets are inclusive."""

    of: SegmentId
    start_offset: int
    end_offset: int
    bytes: int
    broker: int
    state: State


@dataclass(frozen=True, slots=True)
class Update:
    """A segment's new state."""

    of: SegmentId
    state: State


def decode(value: bytes) -> Segment | Update | None:
    """One record's value; None for those that are about no segment. Raises `TestbedError` for one in another form."""
    try:
        reader = Reader(value)
        frame, kind, version = reader.unsigned(), reader.unsigned(), reader.unsigned()
        if frame != _FRAME or version != 0:
            raise TestbedError(
                f"remote log metadata in frame {frame}, version {version}: only frame 1, version 0 is known"
            )
        if kind == _SEGMENT:
            return _segment(reader)
        if kind == _UPDATE:
            of = _id(reader)
            reader.skip(4 + 8)  # the broker, the time
            reader.skip(max(0, reader.unsigned() - 1))  # a manager's own metadata
            return Update(of, State(_int(reader, 1)))
        if kind in (_PARTITION_DELETE, _SNAPSHOT):
            return None
    except (IndexError, ValueError) as error:
        raise TestbedError(f"remote log metadata that cannot be read ({len(value)} bytes): {error}") from error
    raise TestbedError(f"remote log metadata of kind {kind}: 0 to 3 are known")


def replay(known: dict[SegmentId, Segment], values: Iterable[bytes]) -> None:
    """Bring `known` forward by records in the order of their partition."""
    for value in values:
        found = decode(value)
        if isinstance(found, Segment):
            known[found.of] = found
        elif found is not None and found.of in known:
            known[found.of] = replace(known[found.of], state=found.state)


def _segment(reader: Reader) -> Segment:
    of = _id(reader)
    start, end = _int(reader, 8), _int(reader, 8)
    broker = _int(reader, 4)
    reader.skip(8 + 8)  # the newest record's time, the event's
    for _ in range(reader.unsigned() - 1):
        reader.skip(4 + 8)  # a leader epoch and its first offset
        _tags(reader)
    size = _int(reader, 4)
    reader.skip(max(0, reader.unsigned() - 1))
    # What newer releases add comes after it, and is not needed.
    return Segment(of, start, end, size, broker, State(_int(reader, 1)))


def _id(reader: Reader) -> SegmentId:
    topic = reader.take(reader.unsigned() - 1).decode("utf-8")
    topic_id = _uuid(reader)
    partition = _int(reader, 4)
    _tags(reader)
    found = SegmentId(topic, topic_id, partition, _uuid(reader))
    _tags(reader)
    return found


def _uuid(reader: Reader) -> str:
    """As Kafka writes it in words."""
    return base64.urlsafe_b64encode(reader.take(16)).decode("ascii").rstrip("=")


def _int(reader: Reader, size: int) -> int:
    return int.from_bytes(reader.take(size), signed=True)


def _tags(reader: Reader) -> None:
    for _ in range(reader.unsigned()):
        reader.unsigned()
        reader.skip(reader.unsigned())
