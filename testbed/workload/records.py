"""Distinguishable records: each carries its partition, its producer, its place, its time, and a checksum. Pure.

A *place* counts a producer's records of one partition: 0, 1, … without gaps. The payload is incompressible (unless a
recipe asks for redundancy) and changes from place to place, so that no layer can compress it. A record's envelope (its
key, its headers and its timestamp) follows from its value, so the audit can compute it again.
"""

import random
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from testbed.workload.spans import Span, count

_FRONT = struct.Struct(">4sI")
_IDENTITY = struct.Struct(">IIQq")
MAGIC = b"tbr2"
"""The begin of each record's value."""
HEADER_BYTES = _FRONT.size + _IDENTITY.size
_HEADER = np.dtype(
    [
        ("magic", "S4"),
        ("checksum", ">u4"),
        ("partition", ">u4"),
        ("producer", ">u4"),
        ("place", ">u8"),
        ("time_us", ">i8"),
    ]
)
_POOL_BYTES = 1 << 20
_CUTS_BYTES = 4 << 20
_MOST_CUTS = 4096
_BLOCK_BYTES = 64

_FIRST_PRELOAD = 1 << 31
"""A load's producers are 1, 2, …; those of records written before it begin here."""
MARKED = 7
"""One record in so many has a header, and also a key if its producer has no keys. It is a prime, so that in batches of
any size each position is marked in its turn."""
HEADER = "place"
"""The name of a marked record's header. Its value is the record's place."""
BROKER_TIME = -(1 << 62)
"""In place of the timestamp of a record whose batch says LogAppendTime: no producer knows it."""

Where = tuple[str, int]
"""Topic and partition."""
RecordHeaders = list[tuple[str, str | bytes | None]]
_Part = TypeVar("_Part")
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Flaw(StrEnum):
    """A flaw of a single record."""

    NOT_OURS = "not a record of the testbed"
    CHECKSUM = "its checksum does not match"
    WRONG_PARTITION = "a record of another partition"
    TIME = "another timestamp"
    BROKER_TIME = "the broker's timestamp"
    KEY = "another key"
    HEADERS = "other headers"


class Payloads:
    """The payloads of one recipe with their checksums, computed once: a record then costs a copy, not a checksum."""

    def __init__(self, recipe: "Recipe") -> None:
        size = recipe.record_bytes - HEADER_BYTES
        pool = recipe.pool()
        count = max(16, min(_MOST_CUTS, _CUTS_BYTES // size))
        begins = (cut * max(7919, size | 1) % (len(pool) - size) for cut in range(count))
        self._cuts = [(part, crc32(part)) for part in (pool[begin : begin + size] for begin in begins)]

    def record(self, partition: int, place: int, producer: int, time_us: int = 0) -> bytes:
        """Return the value of the record at `place` of `producer` in `partition`.

        `time_us` is when it is due. A negative one is when it was written: it has no latency. 0: it has no time.
        """
        payload, checksum = self._cuts[(place + 97 * partition) % len(self._cuts)]
        identity = _IDENTITY.pack(partition, producer, place, time_us)
        return _FRONT.pack(MAGIC, crc32(identity, checksum)) + identity + payload


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
    """Return partition, producer, place and time (µs; see `Payloads.record`) of a valid record, without a check."""
    return _IDENTITY.unpack_from(value, _FRONT.size)


def timestamp_ms(time_us: int) -> int:
    """Return a record's timestamp (Kafka's CreateTime) from the time in its value."""
    return abs(time_us) // 1000


@dataclass(frozen=True, slots=True)
class Envelope:
    """The rule by which a producer gives its records keys and headers.

    With `keys` each record has one of so many keys of its partition. Without, the marked records have one.
    """

    keys: int = 0

    def key(self, partition: int, place: int) -> bytes | None:
        """Return the key of a record."""
        if self.keys:
            return b"%d-%d" % (partition, place % self.keys)
        return b"%d-%d" % (partition, place) if place % MARKED == 0 else None

    @staticmethod
    def headers(place: int) -> RecordHeaders | None:
        """Return the headers of a record."""
        return [(HEADER, b"%d" % place)] if place % MARKED == 0 else None

    def all_keys(self, partitions: Ints, places: Ints) -> list[bytes | None]:
        """Return the keys of many records."""
        wanted = np.arange(len(places)) if self.keys else _marked(places)
        return _sparse(len(places), wanted, map(self.key, partitions[wanted].tolist(), places[wanted].tolist()))

    def all_headers(self, places: Ints) -> list[RecordHeaders | None]:
        """Return the headers of many records."""
        wanted = _marked(places)
        return _sparse(len(places), wanted, map(self.headers, places[wanted].tolist()))


def _marked(places: Ints) -> Ints:
    return np.flatnonzero(places % MARKED == 0)


def _sparse(records: int, wanted: Ints, parts: Iterable[_Part | None]) -> list[_Part | None]:
    """Return the parts of the wanted ones of so many records, and None for the others."""
    found: list[_Part | None] = [None] * records
    for at, part in zip(wanted.tolist(), parts, strict=True):
        found[at] = part
    return found


PRELOADED = Envelope()
"""The rule of a fill's records."""


@dataclass(slots=True)
class ReadRecords:
    """Records that a consumer read, part by part, in the order in which they came."""

    offsets: list[int] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    headers: list[object] = field(default_factory=list)
    times_ms: list[int] = field(default_factory=list)
    """Timestamps; `BROKER_TIME` where the broker set it."""

    def add(self, offset: int, value: bytes | None, key: bytes | None, headers: object, time_ms: int) -> None:
        """Add the next record, with its parts as the client gives them."""
        self.offsets.append(offset)
        self.values.append(value)
        self.keys.append(key)
        self.headers.append(headers)
        self.times_ms.append(time_ms)

    def extend(self, others: "ReadRecords") -> None:
        """Add the next records."""
        self.offsets += others.offsets
        self.values += others.values
        self.keys += others.keys
        self.headers += others.headers
        self.times_ms += others.times_ms

    def only(self, numbers: Ints) -> "ReadRecords":
        """Return the records of these numbers."""
        found = ReadRecords()
        for n in numbers.tolist():
            found.add(self.offsets[n], self.values[n], self.keys[n], self.headers[n], self.times_ms[n])
        return found


@dataclass(frozen=True, slots=True)
class Headers:
    """What the values of many records begin with, in order. A flawed value may begin with anything."""

    partitions: Ints
    producers: Ints
    places: Ints
    times_us: Ints
    flaws: dict[int, Flaw]
    """The flawed records by their number."""

    def sound(self) -> Flags:
        """Return a mask of the records without a flaw."""
        mask = np.ones(len(self.places), np.bool_)
        mask[list(self.flaws)] = False
        return mask


_FOREIGN = bytes(HEADER_BYTES)


def cut_headers(values: Sequence[bytes | None]) -> bytes:
    """Return the bytes of all headers; a value too short for a header gives zeros."""
    return b"".join([v[:HEADER_BYTES] if v is not None and len(v) > HEADER_BYTES else _FOREIGN for v in values])


def checksums(values: Sequence[bytes | None]) -> list[int]:
    """Return the checksum of each value, as its header should have it."""
    begin, end = _FRONT.size, HEADER_BYTES
    return [0 if v is None else crc32(v[begin:end], crc32(v[end:])) for v in values]


def examine(cut: bytes, sums: Sequence[int], partitions: int | Ints) -> Headers:
    """Return the headers that `cut_headers` cut from records found in `partitions`, with the records' flaws.

    `sums` are the checksums of the values.
    """
    heads = np.frombuffer(cut, _HEADER)
    foreign = heads["magic"] != MAGIC
    broken = heads["checksum"] != np.array(sums, np.uint32)
    elsewhere = heads["partition"] != partitions
    flaws: dict[int, Flaw] = {}
    for number in np.flatnonzero(foreign | broken | elsewhere):
        changed = Flaw.CHECKSUM if broken[number] else Flaw.WRONG_PARTITION
        flaws[int(number)] = Flaw.NOT_OURS if foreign[number] else changed
    partition, producer, place, time_us = (
        heads[part].astype(np.int64) for part in ("partition", "producer", "place", "time_us")
    )
    return Headers(partition, producer, place, time_us, flaws)


def inspect(values: Sequence[bytes | None], partitions: int | Ints) -> Headers:
    """Return the headers of records found in `partitions`, with their flaws."""
    return examine(cut_headers(values), checksums(values), partitions)


@dataclass(frozen=True, slots=True)
class EnvelopeFlaw:
    """A difference between a record's envelope and the one that its producer gave it; `detail` has both."""

    number: int
    flaw: Flaw
    detail: str


def compare_envelopes(
    envelope: Envelope, found: ReadRecords, heads: Headers, numbers: Ints, *, broker_times: bool
) -> list[EnvelopeFlaw]:
    """Return what differs in the records of these numbers, which are sound and follow one rule.

    With `broker_times` the topic's configuration lets the broker set their timestamps.
    """
    flaws = []
    times = np.array(found.times_ms, np.int64)[numbers]
    expected_ms = np.abs(heads.times_us[numbers]) // 1000
    wrong = (times != expected_ms) & (expected_ms != 0)
    if broker_times:
        wrong &= times != BROKER_TIME
    for at in np.flatnonzero(wrong).tolist():
        time = "the broker's time" if times[at] == BROKER_TIME else f"{times[at]} ms"
        flaws.append(EnvelopeFlaw(int(numbers[at]), Flaw.TIME, f"{time}, not {expected_ms[at]}"))
    places, wanted = heads.places[numbers], numbers.tolist()
    parts: tuple[tuple[Flaw, Sequence[object], Sequence[object]], ...] = (
        (Flaw.KEY, found.keys, envelope.all_keys(heads.partitions[numbers], places)),
        (Flaw.HEADERS, found.headers, envelope.all_headers(places)),
    )
    for flaw, all_seen, expected in parts:
        seen = [all_seen[number] for number in wanted]
        if seen != expected:
            both = zip(wanted, seen, expected, strict=True)
            flaws += [EnvelopeFlaw(number, flaw, f"{one}, not {other}") for number, one, other in both if one != other]
    return flaws


AckedRun = tuple[int, int, int]
"""Places from the first up to, but excluding, the second; the third is what each acknowledged offset has more."""


@dataclass(frozen=True, slots=True)
class WrittenRecords:
    """One producer's records of one partition.

    Every place below `settled` has an outcome: acknowledged, unless `refused` or `doubtful` holds it. `refused`: a
    broker or the client refused it, or its transaction was aborted. `doubtful`: no answer, so the log may hold it or
    not. All places from `settled` up to `sent` are in doubt; `sent` is None if the producer died and its progress is
    unknown. `acked_at` has the offsets that the broker acknowledged, as far as they are known. `envelope` is None if
    keys, headers and timestamps do not follow from the values. A `transactional` producer's log also has markers.
    """

    producer: int
    name: str
    topic: str
    partition: int
    settled: int
    sent: int | None
    refused: tuple[Span, ...] = ()
    doubtful: tuple[Span, ...] = ()
    acked_at: tuple[AckedRun, ...] = ()
    envelope: Envelope | None = None
    transactional: bool = False

    @property
    def acked(self) -> int:
        """Return the number of records that the log must hold."""
        return self.settled - count(self.refused) - count(self.doubtful)


def preloader(topic: str) -> int:
    """Return the producer of a topic's fill: one for each topic, so that a record of another topic is noticed."""
    return _FIRST_PRELOAD | crc32(topic.encode()) >> 1


@dataclass(frozen=True, slots=True)
class Fill:
    """The content of a topic before a load: the same number of records in each partition, from offset 0 on."""

    topic: str
    partitions: Sequence[int]
    records_per_partition: int
    recipe: Recipe

    @property
    def bytes(self) -> int:
        """Return the bytes of all records' values."""
        return len(self.partitions) * self.records_per_partition * self.recipe.record_bytes

    @property
    def producer(self) -> int:
        """Return the producer of these records."""
        return preloader(self.topic)

    def written(self) -> list[WrittenRecords]:
        """Return the records that the audit should find."""
        count = self.records_per_partition
        return [
            WrittenRecords(
                self.producer,
                "preload",
                self.topic,
                partition,
                settled=count,
                sent=count,
                acked_at=((0, count, 0),) if count else (),
                envelope=PRELOADED,
            )
            for partition in self.partitions
        ]
