"""The records that a consumer was given, as spans: an account of millions of records has a few rows. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from testbed.workload.records import Flags, Flaw, Headers, Ints
from testbed.workload.spans import Span

UNORDERED = 0
"""The session of records that came in one call with a new assignment, some before it and some after it. Others count
from 1."""
UNREADABLE = "a batch that the client refused"
FLAWS: Mapping[int, str] = {-1: Flaw.NOT_OURS, -2: Flaw.WRONG_PARTITION, -3: Flaw.CHECKSUM, -4: UNREADABLE}
"""The flaw of a span by the number in place of its producer."""
_CODES = {flaw: code for code, flaw in FLAWS.items()}
_TOPIC = 1 << 32

Row = list[int]
"""The topic's number, the partition, and the fields of a `DeliveredSpan`."""


@dataclass(frozen=True, slots=True)
class DeliveredSpan:
    """Records that came one after the other: of one producer, at consecutive offsets, with consecutive places.

    A `session` lasts from one assignment of partitions to the next. Flawed records have their flaw's number (`FLAWS`)
    in place of their producer's, and their offsets as places. The records of an unreadable batch are not counted.
    """

    session: int
    producer: int
    offset: int
    place: int
    records: int

    @property
    def end(self) -> int:
        """Return the offset after the last record."""
        return self.offset + self.records

    @property
    def places(self) -> Span:
        """Return the places of the records."""
        return self.place, self.place + self.records

    @property
    def shift(self) -> int:
        """Return what each offset has more than its record's place."""
        return self.offset - self.place

    def from_offset(self, offset: int) -> "DeliveredSpan":
        """Return the records from an offset of the span on; none of them from its end on."""
        return replace(self, offset=offset, place=offset - self.shift, records=max(0, self.end - offset))

    def goes_on(self, after: "DeliveredSpan") -> bool:
        """Return whether the two are one span."""
        both = (self.session, self.producer, self.offset, self.shift)
        return both == (after.session, after.producer, after.end, after.shift)


def rows_of(
    session: int, topics: Sequence[int] | Ints, partitions: Sequence[int], offsets: Sequence[int], heads: Headers
) -> list[Row]:
    """Return records as rows, partition by partition. The records, and their headers, are in the order of arrival."""
    of, at = np.array(partitions, np.int64), np.array(offsets, np.int64)
    where = np.array(topics, np.int64) * _TOPIC + of
    producers = heads.producers.copy()
    producers[list(heads.flaws)] = [_CODES[flaw] for flaw in heads.flaws.values()]
    places = np.where(producers < 0, at, heads.places)
    order = np.argsort(where, kind="stable")
    where, producers, at, places = where[order], producers[order], at[order], places[order]
    begins = np.flatnonzero(_breaks(where, 0) | _breaks(producers, 0) | _breaks(at, 1) | _breaks(places, 1))
    columns = (
        where[begins] // _TOPIC,
        where[begins] % _TOPIC,
        np.full(len(begins), session),
        producers[begins],
        at[begins],
        places[begins],
        np.diff(np.append(begins, len(at))),
    )
    rows: list[Row] = np.column_stack(columns).tolist()
    return rows


def _breaks(values: Ints, step: int) -> Flags:
    return np.concatenate(([True], np.diff(values) != step))


def unreadable_row(session: int, topic: int, partition: int, offset: int) -> Row:
    """Return the row of a batch that the client refused at an offset."""
    return [topic, partition, session, _CODES[UNREADABLE], offset, offset, 0]
