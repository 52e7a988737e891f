"""Records that can be told apart: each carries its partition, its place, and a checksum. Pure.

The payload is incompressible and depends on partition and place, so that no two records of a topic are alike and
no layer can make the bytes fewer.
"""

import random
import struct
import zlib
from dataclasses import dataclass
from enum import StrEnum

_HEADER = struct.Struct(">4sIQI")
_MAGIC = b"tbr1"
HEADER_BYTES = _HEADER.size
_POOL_BYTES = 1 << 20


class Flaw(StrEnum):
    """What can be wrong with a record by itself."""

    NOT_OURS = "not a record of this preload"
    WRONG_PARTITION = "a record of another partition"
    CHECKSUM = "its checksum does not match"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the records of a topic are made: the same recipe gives the same bytes."""

    record_bytes: int
    seed: int

    def pool(self) -> bytes:
        """Random bytes that payloads are cut from: one record longer than a whole number of places."""
        if self.record_bytes <= HEADER_BYTES:
            raise ValueError(
                f"a record of {self.record_bytes} bytes has no room for its {HEADER_BYTES} bytes of header"
            )
        return random.Random(self.seed).randbytes(_POOL_BYTES + self.record_bytes)

    def record(self, pool: bytes, partition: int, place: int) -> bytes:
        """The record at `place` (0, 1, …) of `partition`; `pool` is this recipe's."""
        # An odd stride visits every byte of the pool before it repeats.
        begin = ((partition << 20) + place) * 7919 % _POOL_BYTES
        payload = pool[begin : begin + self.record_bytes - HEADER_BYTES]
        header = _HEADER.pack(_MAGIC, partition, place, 0)
        return _HEADER.pack(_MAGIC, partition, place, zlib.crc32(payload, zlib.crc32(header))) + payload


def inspect(value: bytes | None, partition: int) -> int | Flaw:
    """The place a record says it has, or what is wrong with it."""
    if value is None or len(value) < HEADER_BYTES or value[:4] != _MAGIC:
        return Flaw.NOT_OURS
    magic, written_to, place, checksum = _HEADER.unpack_from(value)
    blank = _HEADER.pack(magic, written_to, place, 0)
    if zlib.crc32(value[HEADER_BYTES:], zlib.crc32(blank)) != checksum:
        return Flaw.CHECKSUM
    return Flaw.WRONG_PARTITION if written_to != partition else int(place)


@dataclass(slots=True)
class Tally:
    """What was found of one partition, record by record."""

    expected: int
    found: int = 0
    duplicated: int = 0
    corrupt: int = 0
    _seen: bytearray | None = None

    def add(self, value: bytes | None, partition: int) -> None:
        """Count one record."""
        if self._seen is None:
            self._seen = bytearray(self.expected)
        place = inspect(value, partition)
        if isinstance(place, Flaw) or place >= self.expected:
            self.corrupt += 1
        elif self._seen[place]:
            self.duplicated += 1
        else:
            self._seen[place] = 1
            self.found += 1

    @property
    def lost(self) -> int:
        """Records that were written and never found whole."""
        return self.expected - self.found

    def missing(self, most: int = 5) -> list[int]:
        """The first places that were never found."""
        seen = self._seen or bytes(self.expected)
        return [place for place, was in enumerate(seen) if not was][:most]
