"""The remote log: the segments that Kafka's metadata topic records, and the objects that hold them. Pure.

`testbed/tiered/java/…/Keys.java` makes the keys: `TOPIC-TOPICID/PARTITION/BASEOFFSET-SEGMENTID.KIND`.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from testbed.errors import TestbedError
from testbed.software.format import BinaryReader

_FRAME = 1
_SEGMENT, _UPDATE, _PARTITION_DELETE, _SNAPSHOT = range(4)


class SegmentState(IntEnum):
    """The progress of a segment's copy or deletion: Kafka's RemoteLogSegmentState."""

    COPY_STARTED = 0
    COPIED = 1
    DELETE_STARTED = 2
    DELETED = 3


@dataclass(frozen=True, slots=True, order=True)
class SegmentId:
    """One copy of a segment. Kafka gives each attempt at a copy its own `id`."""

    topic: str
    topic_id: str
    partition: int
    id: str


@dataclass(frozen=True, slots=True)
class Segment:
    """The metadata of one copy; offsets are inclusive."""

    of: SegmentId
    start_offset: int
    end_offset: int
    bytes: int
    broker: int
    state: SegmentState


@dataclass(frozen=True, slots=True)
class SegmentUpdate:
    """A segment's new state."""

    of: SegmentId
    state: SegmentState


def decode(value: bytes) -> Segment | SegmentUpdate | None:
    """Decode a record's value; return None for one about no segment. Raise `TestbedError` for any other form."""
    try:
        reader = BinaryReader(value)
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
            return SegmentUpdate(of, SegmentState(_int(reader, 1)))
        if kind in (_PARTITION_DELETE, _SNAPSHOT):
            return None
    except (IndexError, ValueError) as error:
        raise TestbedError(f"remote log metadata that cannot be read ({len(value)} bytes): {error}") from error
    raise TestbedError(f"remote log metadata of kind {kind}: 0 to 3 are known")


def replay(known: dict[SegmentId, Segment], values: Iterable[bytes]) -> None:
    """Update `known` with records in the order of their partition."""
    for value in values:
        found = decode(value)
        if isinstance(found, Segment):
            known[found.of] = found
        elif found is not None and found.of in known:
            known[found.of] = replace(known[found.of], state=found.state)


def _segment(reader: BinaryReader) -> Segment:
    of = _id(reader)
    start, end = _int(reader, 8), _int(reader, 8)
    broker = _int(reader, 4)
    reader.skip(8 + 8)  # the newest record's time, the event's
    for _ in range(reader.unsigned() - 1):
        reader.skip(4 + 8)  # a leader epoch and its first offset
        _tags(reader)
    size = _int(reader, 4)
    reader.skip(max(0, reader.unsigned() - 1))
    # Fields of newer releases follow here and are not needed.
    return Segment(of, start, end, size, broker, SegmentState(_int(reader, 1)))


def _id(reader: BinaryReader) -> SegmentId:
    topic = reader.take(reader.unsigned() - 1).decode("utf-8")
    topic_id = _uuid(reader)
    partition = _int(reader, 4)
    _tags(reader)
    found = SegmentId(topic, topic_id, partition, _uuid(reader))
    _tags(reader)
    return found


def _uuid(reader: BinaryReader) -> str:
    """Return a UUID in Kafka's text form."""
    return base64.urlsafe_b64encode(reader.take(16)).decode("ascii").rstrip("=")


def _int(reader: BinaryReader, size: int) -> int:
    return int.from_bytes(reader.take(size), signed=True)


def _tags(reader: BinaryReader) -> None:
    for _ in range(reader.unsigned()):
        reader.unsigned()
        reader.skip(reader.unsigned())


LOG = "log"
KINDS = (LOG, "index", "timeindex", "txnindex", "snapshot", "epochs")
_ID_PATTERN = r"[A-Za-z0-9_-]{22}"
_KEY = re.compile(
    rf"(?P<topic>[^/]+)-(?P<topic_id>{_ID_PATTERN})/(?P<partition>\d+)/\d{{20}}-(?P<id>{_ID_PATTERN})\.(?P<kind>[a-z]+)"
)


def parse_key(key: str) -> tuple[SegmentId, str] | None:
    """Return the copy and the kind of the object with this key; None for a key that the manager did not make."""
    found = _KEY.fullmatch(key)
    if found is None or found["kind"] not in KINDS:
        return None
    return SegmentId(found["topic"], found["topic_id"], int(found["partition"]), found["id"]), found["kind"]


@dataclass(frozen=True, slots=True)
class StoreAccount:
    """The comparison of store and metadata.

    `segments` are copied, and whole in the store; `bytes` are the bytes of their logs, `objects` all their objects.
    `orphans` are in the store, but no reader refers to them. They come from an interrupted copy (a broker was killed),
    from a deletion, or from an unknown cause. `missing` are copied according to the metadata, but their log is not in
    the store, or not whole: this is lost data. `foreign` objects are not the manager's.
    """

    segments: int
    bytes: int
    objects: int
    orphans: Mapping[SegmentId, int]
    """Copy → bytes of its objects."""
    missing: tuple[Segment, ...]
    foreign: int = 0

    def __str__(self) -> str:
        return (
            f"{self.segments} segments ({self.bytes:,} bytes in {self.objects} objects), {len(self.orphans)} orphaned "
            f"copies ({sum(self.orphans.values()):,} bytes), {len(self.missing)} missing"
        )


def account(segments: Iterable[Segment], listed: Iterable[tuple[str, int]]) -> StoreAccount:
    """Compare the `listed` objects with the metadata's `segments`, both of one time, and return the result."""
    copied = {segment.of: segment for segment in segments if segment.state is SegmentState.COPIED}
    logs: dict[SegmentId, int] = {}
    orphans: dict[SegmentId, int] = {}
    objects = foreign = 0
    for key, size in listed:
        found = parse_key(key)
        if found is None:
            foreign += 1
            continue
        of, kind = found
        if of not in copied:
            orphans[of] = orphans.get(of, 0) + size
            continue
        objects += 1
        if kind == LOG:
            logs[of] = size
    missing = tuple(segment for of, segment in sorted(copied.items()) if logs.get(of) != segment.bytes)
    whole = copied.keys() - {segment.of for segment in missing}
    return StoreAccount(len(whole), sum(logs[of] for of in whole), objects, orphans, missing, foreign)
