"""The objects of the testbed's own remote storage manager: what their keys say, and which belong to nothing. Pure.

`testbed/tiered/java/…/Keys.java` makes the keys: `TOPIC-TOPICID/PARTITION/BASEOFFSET-SEGMENTID.KIND`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from testbed.tiered.segments import Segment, SegmentId, State

LOG = "log"
KINDS = (LOG, "index", "timeindex", "txnindex", "snapshot", "epochs")
_ID = r"[A-Za-z0-9_-]{22}"
_KEY = re.compile(
    rf"(?P<topic>[^/]+)-(?P<topic_id>{_ID})/(?P<partition>\d+)/(?P<offset>\d{{20}})-(?P<id>{_ID})\.(?P<kind>[a-z]+)"
)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object of a segment, and its size."""

    of: SegmentId
    start_offset: int
    kind: str
    bytes: int


def parse(key: str, size: int) -> StoredObject | None:
    """What a key says; None for one that the manager did not make."""
    found = _KEY.fullmatch(key)
    if found is None or found["kind"] not in KINDS:
        return None
    of = SegmentId(found["topic"], found["topic_id"], int(found["partition"]), found["id"])
    return StoredObject(of, int(found["offset"]), found["kind"], size)


@dataclass(frozen=True, slots=True)
class Account:
    """The store held against the metadata.

    `segments` are copied, and whole in the store; `bytes` are those of their logs, `objects` all that the segments
    have. `orphans` lie in the store and nothing refers to them for reading: of a copy that was begun and not ended (a
    broker was killed), of a deletion that was, or unknown. `missing` are copied, says the metadata, and their log is
    not there, or not whole: that is lost data. `foreign` objects are not the manager's.
    """

    segments: int
    bytes: int
    objects: int
    orphans: Mapping[SegmentId, int]
    """Copy → its objects' bytes."""
    missing: tuple[Segment, ...]
    foreign: int = 0

    def __str__(self) -> str:
        return (
            f"{self.segments} segments ({self.bytes:,} bytes in {self.objects} objects), {len(self.orphans)} orphaned "
            f"copies ({sum(self.orphans.values()):,} bytes), {len(self.missing)} missing"
        )


def account(segments: Iterable[Segment], listed: Iterable[tuple[str, int]]) -> Account:
    """Hold what was `listed` (key, size) against the metadata's `segments`; both of about the same moment."""
    copied = {segment.of: segment for segment in segments if segment.state is State.COPIED}
    logs: dict[SegmentId, int] = {}
    orphans: dict[SegmentId, int] = {}
    objects = foreign = 0
    for key, size in listed:
        found = parse(key, size)
        if found is None:
            foreign += 1
        elif found.of in copied:
            objects += 1
            if found.kind == LOG:
                logs[found.of] = size
        else:
            orphans[found.of] = orphans.get(found.of, 0) + size
    missing = tuple(segment for of, segment in sorted(copied.items()) if logs.get(of) != segment.bytes)
    whole = copied.keys() - {segment.of for segment in missing}
    return Account(len(whole), sum(logs[of] for of in whole), objects, orphans, missing, foreign)
