"""Distinguishable records: each carries its partition, its producer, its place, and a checksum. Pure.

A *place* counts a producer's records of one partition: 0, 1, … without gaps. The payload is incompressible (unless a
recipe asks for redundancy) and changes from place to place, so that no layer can compress it.
"""

import random
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from zlib import crc32

import numpy as np
import numpy.typing as npt

_FRONT = struct.Struct(">4sI")
_IDENTITY = struct.Struct(">IIQq")
_MAGIC = b"tbr2"
HEADER_BYTES = _FRONT.size + _IDENTITY.size
_HEADER = np.dtype(
    [
        ("magic", "S4"),
        ("checksum", ">u4"),
        ("partition", ">u4"),
        ("producer", ">u4"),
        ("place", ">u8"),
        ("due_us", ">i8"),
    ]
)
_POOL_BYTES = 1 << 20
_CUTS_BYTES = 4 << 20
_MOST_CUTS = 4096
_BLOCK_BYTES = 64

PRELOAD = 0
"""The producer of records written before a run's load; a load's producers are 1, 2, …"""

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Flaw(StrEnum):
    """A flaw of a single record."""

    NOT_OURS = "not a record of the testbed"
    CHECKSUM = "its checksum does not match"
    WRONG_PARTITION = "a record of another partition"


class Payloads:
    """The payloads of one recipe with their checksums, computed once: a record then costs a copy, not a checksum."""

    def __init__(self, recipe: "Recipe") -> None:
        size = recipe.record_bytes - HEADER_BYTES
        pool = recipe.pool()
        count = max(16, min(_MOST_CUTS, _CUTS_BYTES // size))
        begins = (cut * max(7919, size | 1) % (len(pool) - size) for cut in range(count))
        self._cuts = [(part, crc32(part)) for part in (pool[begin : begin + size] for begin in begins)]

    def record(self, partition: int, place: int, producer: int = PRELOAD, due_us: int = 0) -> bytes:
        """Return the record at `place` of `producer` in `partition`; `due_us` is its due time, 0 if it has none."""
        payload, checksum = self._cuts[(place + 97 * partition) % len(self._cuts)]
        identity = _IDENTITY.pack(partition, producer, place, due_us)
        return _FRONT.pack(_MAGIC, crc32(identity, checksum)) + identity + payload


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe for records: the same recipe gives the same bytes. `redundancy` is the share a codec can save."""

    record_bytes: int
    seed: int
    redundancy: float = 0.0

    def pool(self) -> bytes:
        """Return the bytes that payloads are cut from. Raise ValueError when a record is too short for its header."""
        if self.record_bytes <= HEADER_BYTES:
            raise ValueError(
                f"a record of {self.record_bytes} bytes has no room for its {HEADER_BYTES} bytes of header"
            )
        size = max(_POOL_BYTES, 4 * self.record_bytes)
        drawn = random.Random(self.seed).randbytes(size - size % _BLOCK_BYTES)
        if not self.redundancy:
            return drawn
        blocks = np.frombuffer(drawn, np.uint8).reshape(-1, _BLOCK_BYTES).copy()
        blocks[:, : round(self.redundancy * _BLOCK_BYTES)] = 0
        return blocks.tobytes()

    def payloads(self) -> Payloads:
        """Return the payloads of this recipe."""
        return Payloads(self)


def identity(value: bytes) -> tuple[int, int, int, int]:
    """Return partition, producer, place and due time (µs) of a valid record, without a check."""
    return _IDENTITY.unpack_from(value, _FRONT.size)


@dataclass(frozen=True, slots=True)
class Headers:
    """The headers of many records of one partition, in their order. A flawed record's header may hold any value."""

    producers: Ints
    places: Ints
    due_us: Ints
    flaws: dict[int, Flaw]
    """A mask of the flawed records."""

    def sound(self) -> Flags:
        """Return a mask of the records without a flaw."""
        mask = np.ones(len(self.places), np.bool_)
        mask[list(self.flaws)] = False
        return mask


_FOREIGN = bytes(HEADER_BYTES)


def read_headers(values: Sequence[bytes | None]) -> npt.NDArray[np.void]:
    """Return all headers in one array, unchecked; a value too short for a header gives zeros."""
    heads = [v[:HEADER_BYTES] if v is not None and len(v) > HEADER_BYTES else _FOREIGN for v in values]
    return np.frombuffer(b"".join(heads), _HEADER)


def inspect(values: Sequence[bytes | None], partition: int) -> Headers:
    """Return the headers of records found in `partition`, with their flaws."""
    heads = read_headers(values)
    begin, end = _FRONT.size, HEADER_BYTES
    sums = [0 if v is None else crc32(v[begin:end], crc32(v[end:])) for v in values]
    foreign = heads["magic"] != _MAGIC
    broken = heads["checksum"] != np.array(sums, np.uint32)
    elsewhere = heads["partition"] != partition
    flaws: dict[int, Flaw] = {}
    for number in np.flatnonzero(foreign | broken | elsewhere):
        changed = Flaw.CHECKSUM if broken[number] else Flaw.WRONG_PARTITION
        flaws[int(number)] = Flaw.NOT_OURS if foreign[number] else changed
    return Headers(
        heads["producer"].astype(np.int64), heads["place"].astype(np.int64), heads["due_us"].astype(np.int64), flaws
    )


Span = tuple[int, int]
"""Places from the first up to, but excluding, the second."""


def spans(places: Iterable[int]) -> tuple[Span, ...]:
    """Return places in any order as spans."""
    found: list[list[int]] = []
    for place in sorted(places):
        if found and found[-1][1] == place:
            found[-1][1] += 1
        else:
            found.append([place, place + 1])
    return tuple((begin, end) for begin, end in found)


def count(spans: Iterable[Span]) -> int:
    """Return the number of places in the spans."""
    return sum(end - begin for begin, end in spans)


@dataclass(frozen=True, slots=True)
class WrittenRecords:
    """One producer's records of one partition.

    Every place below `settled` has an outcome: acknowledged, unless `refused` or `doubtful` holds it. `refused`: a
    broker or the client refused it, or its transaction was aborted. `doubtful`: no answer, so the log may hold it or
    not. All places from `settled` up to `sent` are in doubt; `sent` is None if the producer died and its progress is
    unknown.
    """

    producer: int
    name: str
    topic: str
    partition: int
    settled: int
    sent: int | None
    refused: tuple[Span, ...] = ()
    doubtful: tuple[Span, ...] = ()

    @property
    def acked(self) -> int:
        """Return the number of records that the log must hold."""
        return self.settled - count(self.refused) - count(self.doubtful)

    @property
    def in_doubt(self) -> int:
        """Return the number of records in doubt, as far as they are known."""
        return count(self.doubtful) + (max(0, self.sent - self.settled) if self.sent is not None else 0)


@dataclass(frozen=True, slots=True)
class Fill:
    """The content of a topic before a load: the same number of records in each partition."""

    topic: str
    partitions: Sequence[int]
    records_per_partition: int
    recipe: Recipe

    @property
    def bytes(self) -> int:
        """Return the bytes of all records' values."""
        return len(self.partitions) * self.records_per_partition * self.recipe.record_bytes

    def written(self) -> list[WrittenRecords]:
        """Return the records that the audit should find."""
        count = self.records_per_partition
        return [WrittenRecords(PRELOAD, "preload", self.topic, p, settled=count, sent=count) for p in self.partitions]
