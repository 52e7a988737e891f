"""The account of every record: acknowledged against found, per producer and partition. Pure.

The caller adds records in the order of their partition, in any number at a time. The account keeps one byte of each.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby

import numpy as np

from testbed.workload.records import Flags, Flaw, Ints, Span, WrittenRecords, count, inspect

_NAMED = 5
"""The number of flawed records that the account names for each kind and partition."""
_COMPLAINTS = 10

LOST, TWICE, DISORDER, REFUSED = "lost", "twice", "out of order", "refused and yet there"
NEVER_SENT = "corrupt (never sent)"
_WORST_FIRST = (LOST, REFUSED, TWICE, DISORDER)


@dataclass(frozen=True, slots=True)
class ProducerAudit:
    """The account of one producer's records.

    `lost`: acknowledged and not found. `duplicated`: found once more. `reordered`: found after a later record of the
    same producer and partition. `corrupt`: the header names this producer, but the content differs from the written
    record. `refused_found`: found although the broker refused them. Records in doubt are neither lost nor proof of a
    flaw. `sent_again` counts those of `duplicated` and `reordered` that the client sent again under a new producer
    epoch. `first` names the first flaws by topic, partition, producer and place.
    """

    name: str
    acked: int
    found: int
    lost: int
    duplicated: int
    reordered: int
    corrupt: int
    refused_found: int
    in_doubt: int
    in_doubt_found: int
    first: tuple[str, ...]
    sent_again: int = 0

    def __add__(self, other: "ProducerAudit") -> "ProducerAudit":
        """Return the sum of both, under this one's name."""
        return ProducerAudit(
            self.name,
            self.acked + other.acked,
            self.found + other.found,
            self.lost + other.lost,
            self.duplicated + other.duplicated,
            self.reordered + other.reordered,
            self.corrupt + other.corrupt,
            self.refused_found + other.refused_found,
            self.in_doubt + other.in_doubt,
            self.in_doubt_found + other.in_doubt_found,
            (self.first + other.first)[:_COMPLAINTS],
            self.sent_again + other.sent_again,
        )


@dataclass(frozen=True, slots=True)
class Audit:
    """The account of all written records; `complaints` names the first flaws.

    `expected` counts the acknowledged records, and `found` those of them that the partitions hold. `corrupt` also
    counts records that no producer of this audit wrote.
    """

    expected: int
    found: int
    lost: int
    duplicated: int
    corrupt: int
    complaints: tuple[str, ...]
    reordered: int = 0
    refused_found: int = 0
    in_doubt: int = 0
    in_doubt_found: int = 0
    producers: tuple[ProducerAudit, ...] = ()
    sent_again: int = 0


@dataclass(slots=True)
class _Flaws:
    """The number of records with each flaw, and the first of them."""

    counts: dict[str, int] = field(default_factory=dict)
    named: dict[str, list[int]] = field(default_factory=dict)

    def add(self, what: str, places: Ints | Sequence[int]) -> None:
        if len(places):
            self.counts[what] = self.counts.get(what, 0) + len(places)
            named = self.named.setdefault(what, [])
            named.extend(int(place) for place in places[: _NAMED - len(named)])

    def corrupt(self) -> int:
        return sum(number for what, number in self.counts.items() if what.startswith("corrupt"))

    def lines(self, where: str, whose: str) -> tuple[str, ...]:
        order = [
            *(what for what in _WORST_FIRST if what in self.counts),
            *sorted(self.counts.keys() - set(_WORST_FIRST)),
        ]
        return tuple(f"{where}: {self.counts[w]} of {whose} {w}, first at {self.named[w]}" for w in order)


class RecordTally:
    """One producer's records of one partition, as the audit finds them."""

    def __init__(self, written: WrittenRecords) -> None:
        self._written = written
        self._seen = np.zeros(max(written.settled, written.sent or 0), np.bool_)
        self._highest = -1
        self._flaws = _Flaws()

    def add(self, places: Ints) -> None:
        """Add sound records of this producer, in the order of their offsets."""
        places = self._sent(places)
        if not len(places):
            return
        before = np.maximum.accumulate(np.concatenate(([self._highest], places)))[:-1]
        if not (places > before).all():
            new = np.zeros(len(places), np.bool_)
            new[np.unique(places, return_index=True)[1]] = True
            new &= ~self._seen[places]
            self._flaws.add(TWICE, places[~new])
            self._flaws.add(DISORDER, places[new & (places < before)])
        self._highest = max(self._highest, int(places.max()))
        self._seen[places] = True

    def add_flawed(self, place: int, flaw: Flaw) -> None:
        """Add a flawed record whose header names this producer."""
        self._flaws.add(f"corrupt ({flaw})", [place])

    def _sent(self, places: Ints) -> Ints:
        """Return the places without those never sent; all of them if the producer's progress is unknown."""
        beyond = places >= len(self._seen)
        if not beyond.any():
            return places
        if self._written.sent is None:
            room = np.zeros(max(int(places.max()) + 1, 2 * len(self._seen)), np.bool_)
            room[: len(self._seen)] = self._seen
            self._seen = room
            return places
        self._flaws.add(NEVER_SENT, places[beyond])
        return places[~beyond]

    @property
    def repeats(self) -> int:
        """Return how many records came twice or late so far."""
        return self._flaws.counts.get(TWICE, 0) + self._flaws.counts.get(DISORDER, 0)

    def result(self, *, sent_again: bool = False) -> ProducerAudit:
        """Return the account so far; call it once. `sent_again`: the client sent again what came twice or late."""
        written, seen, flaws = self._written, self._seen, self._flaws
        refused, doubtful = _mask(written.refused, len(seen)), _mask(written.doubtful, len(seen))
        doubtful[written.settled :] = True
        lost = np.flatnonzero(~(seen | refused | doubtful))
        risen = np.flatnonzero(seen & refused)
        flaws.add(LOST, lost)
        flaws.add(REFUSED, risen)
        doubtful_found = int(np.count_nonzero(seen & doubtful))
        return ProducerAudit(
            name=written.name,
            acked=written.acked,
            found=written.acked - len(lost),
            lost=len(lost),
            duplicated=flaws.counts.get(TWICE, 0),
            reordered=flaws.counts.get(DISORDER, 0),
            corrupt=flaws.corrupt(),
            refused_found=len(risen),
            in_doubt=max(written.in_doubt, count(written.doubtful) + int(np.count_nonzero(seen[written.settled :]))),
            in_doubt_found=doubtful_found,
            first=flaws.lines(f"{written.topic}-{written.partition}", written.name),
            sent_again=self.repeats if sent_again else 0,
        )


def _mask(spans: Iterable[Span], size: int) -> Flags:
    mask = np.zeros(size, np.bool_)
    for begin, end in spans:
        mask[begin:end] = True
    return mask


class Ledger:
    """All partitions of an audit. Raises ValueError if two declarations cover a producer's records of one partition."""

    def __init__(self, written: Iterable[WrittenRecords]) -> None:
        self._tallies: dict[tuple[str, int], dict[int, RecordTally]] = {}
        self._foreign: dict[tuple[str, int], _Flaws] = {}
        for each in written:
            of_partition = self._tallies.setdefault((each.topic, each.partition), {})
            if each.producer in of_partition:
                raise ValueError(f"{each.topic}-{each.partition}: producer {each.producer} ({each.name}) twice")
            of_partition[each.producer] = RecordTally(each)

    def partitions(self) -> list[tuple[str, int]]:
        """Return topic and partition of everything in the account."""
        return sorted(self._tallies)

    def add(self, topic: str, partition: int, values: Sequence[bytes | None]) -> None:
        """Add the next records of a partition, in the order of offsets. Raise KeyError when no producer wrote to it."""
        tallies, heads = self._tallies[topic, partition], inspect(values, partition)
        sound = heads.sound()
        for producer in np.unique(heads.producers[sound]).tolist():
            places = heads.places[sound & (heads.producers == producer)]
            if producer in tallies:
                tallies[producer].add(places)
            else:
                self._stray(topic, partition).add(
                    f"corrupt (of producer {producer}, which is not in this audit)", places
                )
        for number, flaw in heads.flaws.items():
            claimed, place = int(heads.producers[number]), int(heads.places[number])
            if flaw is not Flaw.NOT_OURS and claimed in tallies:
                tallies[claimed].add_flawed(place, flaw)
            else:
                self._stray(topic, partition).add(f"corrupt ({flaw})", [place])

    def _stray(self, topic: str, partition: int) -> _Flaws:
        return self._foreign.setdefault((topic, partition), _Flaws())

    def repeats(self) -> dict[tuple[str, int], int]:
        """Return each partition that has records twice or late, with their number so far."""
        found = {where: sum(tally.repeats for tally in of.values()) for where, of in sorted(self._tallies.items())}
        return {where: number for where, number in found.items() if number}

    def result(self, sent_again: Container[tuple[str, int]] = ()) -> Audit:
        """Return the whole account; call it once.

        `sent_again` has the partitions in which clients sent again what came twice or late.
        """
        found = [
            tally.result(sent_again=where in sent_again)
            for where, of in sorted(self._tallies.items())
            for _id, tally in sorted(of.items())
        ]
        by_name = {
            name: reduce(ProducerAudit.__add__, each)
            for name, each in groupby(sorted(found, key=lambda one: one.name), key=lambda one: one.name)
        }
        stray = [
            line
            for (topic, partition), flaws in sorted(self._foreign.items())
            for line in flaws.lines(f"{topic}-{partition}", "an unknown producer")
        ]
        return Audit(
            expected=sum(each.acked for each in found),
            found=sum(each.found for each in found),
            lost=sum(each.lost for each in found),
            duplicated=sum(each.duplicated for each in found),
            corrupt=sum(each.corrupt for each in found) + sum(f.corrupt() for f in self._foreign.values()),
            complaints=tuple([*(line for each in found for line in each.first), *stray][:_COMPLAINTS]),
            reordered=sum(each.reordered for each in found),
            refused_found=sum(each.refused_found for each in found),
            in_doubt=sum(each.in_doubt for each in found),
            in_doubt_found=sum(each.in_doubt_found for each in found),
            producers=tuple(by_name.values()),
            sent_again=sum(each.sent_again for each in found),
        )
