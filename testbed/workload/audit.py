"""The account of every record: acknowledged against found, per producer and partition. Pure.

The caller adds records in the order of their partition, in any number at a time. The account keeps one byte of each.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, reduce
from itertools import groupby

import numpy as np

from testbed.workload.records import (
    BROKER_TIME,
    Flags,
    Flaw,
    Headers,
    Ints,
    ReadRecords,
    WrittenRecords,
    compare_envelopes,
    inspect,
)
from testbed.workload.spans import Span

_NAMED = 5
"""The number of flawed records that the account names for each kind and partition."""
_COMPLAINTS = 10
_SEEN, _AT_HOME = 1, 2
"""What the account keeps of a record: whether it was found, and whether at the offset that the broker acknowledged."""
_STRAYS = 1000
"""The number of records of which the account keeps where else they were found."""

LOST, TWICE, DISORDER, REFUSED = "lost", "twice", "out of order", "refused and yet there"
NEVER_SENT = "corrupt (never sent)"
MISPLACED = "corrupt (at another offset than acknowledged)"
NOT_BY_TIME = "corrupt (not found by its time)"
WITHHELD = "corrupt (not given to consumers)"
GAP, UNREADABLE, OFFSET_TWICE = "corrupt (a gap)", "corrupt (unreadable)", "corrupt (twice, for different records)"
NOT_OURS, OF_OTHERS = f"corrupt ({Flaw.NOT_OURS})", ", which is not in this audit)"
_WORST_FIRST = (LOST, REFUSED, TWICE, DISORDER)


@dataclass(frozen=True, slots=True)
class ProducerAudit:
    """The account of one producer's records.

    `lost`: acknowledged and not found. `duplicated`: found once more. `reordered`: found after a later record of the
    same producer and partition. `corrupt`: the header names this producer, but the value, key, headers or timestamp
    differ from the written record, or it is not at the acknowledged offset. `refused_found`: found although the broker
    refused them. Records in doubt are neither lost nor proof of a flaw. `sent_again` counts those of `duplicated` and
    `reordered` that the client sent again under a new producer epoch. `first` names the first flaws by topic,
    partition, producer and place.
    """

    name: str
    acked: int
    found: int
    lost: int
    duplicated: int
    reordered: int
    corrupt: int
    refused_found: int
    first: tuple[str, ...]
    sent_again: int = 0

    def __add__(self, other: "ProducerAudit") -> "ProducerAudit":
        """Return the sum of both, under this one's name."""
        sums = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return replace(self, **{**sums, "name": self.name, "first": sums["first"][:_COMPLAINTS]})


@dataclass(frozen=True, slots=True)
class Audit:
    """The account of all written records; `complaints` names the first flaws.

    `expected` counts the acknowledged records, and `found` those of them that the partitions hold. `corrupt` also
    counts records that no producer of this audit wrote, gaps between offsets, batches that cannot be read, and records
    that the leader does not find by their time; the first of these are in `of_none`. `foreign` counts values
    without a testbed's header, and records of a producer that is not in this audit. `broker_times` has the topics in
    which the brokers rightly set the timestamps.
    """

    expected: int
    found: int
    lost: int
    duplicated: int
    corrupt: int
    complaints: tuple[str, ...]
    reordered: int = 0
    producers: tuple[ProducerAudit, ...] = ()
    sent_again: int = 0
    of_none: tuple[str, ...] = ()
    broker_times: tuple[str, ...] = ()
    foreign: int = 0


@dataclass(slots=True)
class _Flaws:
    """The number of records with each flaw, and the first of them."""

    counts: dict[str, int] = field(default_factory=dict)
    named: dict[str, list[str]] = field(default_factory=dict)

    def add(self, what: str, places: Ints | Sequence[int], detail_of: Mapping[int, str] | None = None) -> None:
        """Add records by place, with details that some of them have."""
        if len(places):
            self.counts[what] = self.counts.get(what, 0) + len(places)
            named = self.named.setdefault(what, [])
            details = detail_of or {}
            named.extend(f"{place}{details.get(int(place), '')}" for place in places[: _NAMED - len(named)])

    def foreign(self) -> int:
        return sum(number for what, number in self.counts.items() if what == NOT_OURS or what.endswith(OF_OTHERS))

    def corrupt(self) -> int:
        return sum(number for what, number in self.counts.items() if what.startswith("corrupt"))

    def lines(self, where: str, whose: str) -> tuple[str, ...]:
        order = [
            *(what for what in _WORST_FIRST if what in self.counts),
            *sorted(self.counts.keys() - set(_WORST_FIRST)),
        ]
        return tuple(f"{where}: {self.counts[w]} of {whose} {w}, first at [{', '.join(self.named[w])}]" for w in order)


class RecordTally:
    """One producer's records of one partition, as the audit finds them."""

    def __init__(self, written: WrittenRecords) -> None:
        self.written = written
        self._found = np.zeros(max(written.settled, written.sent or 0), np.uint8)
        self._highest = -1
        self._flaws = _Flaws()
        self._strays: dict[int, str] = {}
        runs = np.array(sorted(written.acked_at), np.int64).reshape(-1, 3)
        self._begins, self._ends, self._shifts = runs.T

    def add(self, places: Ints, offsets: Ints) -> None:
        """Add sound records of this producer, in the order of their offsets."""
        sent = self._sent(places)
        places, offsets = places[sent], offsets[sent]
        if not len(places):
            return
        before = np.maximum.accumulate(np.concatenate(([self._highest], places)))[:-1]
        if not (places > before).all():
            new = np.zeros(len(places), np.bool_)
            new[np.unique(places, return_index=True)[1]] = True
            new &= self._found[places] == 0
            self._flaws.add(TWICE, places[~new])
            self._flaws.add(DISORDER, places[new & (places < before)])
        self._highest = max(self._highest, int(places.max()))
        acked = self._acked_at(places)
        at_home = (acked == offsets) | (acked < 0)
        for at in np.flatnonzero(~at_home)[: _STRAYS - len(self._strays)].tolist():
            self._strays[int(places[at])] = f": at offset {offsets[at]}, not {acked[at]}"
        self._found[places] |= _SEEN
        self._found[places[at_home]] |= _AT_HOME

    def add_flawed(self, place: int, flaw: Flaw, detail: str = "") -> None:
        """Add a flawed record whose header names this producer."""
        self._flaws.add(f"corrupt ({flaw})", [place], {place: detail})

    def has(self, place: int) -> bool:
        """Return whether a record of this place was found so far."""
        return 0 <= place < len(self._found) and bool(self._found[place])

    def _acked_at(self, places: Ints) -> Ints:
        """Return the acknowledged offsets of records, -1 for each that is not known."""
        if not len(self._begins):
            return np.full(len(places), -1)
        run = np.searchsorted(self._begins, places, side="right") - 1
        return np.where((run >= 0) & (places < self._ends[run]), places + self._shifts[run], -1)

    def _sent(self, places: Ints) -> Flags:
        """Return a mask of the records that were sent; all of them if the producer's progress is unknown."""
        beyond = places >= len(self._found)
        if beyond.any() and self.written.sent is None:
            room = np.zeros(max(int(places.max()) + 1, 2 * len(self._found)), np.uint8)
            room[: len(self._found)] = self._found
            self._found = room
            return ~np.zeros(len(places), np.bool_)
        self._flaws.add(NEVER_SENT, places[beyond])
        return ~beyond

    @property
    def repeats(self) -> int:
        """Return how many records came twice or late so far."""
        return self._flaws.counts.get(TWICE, 0) + self._flaws.counts.get(DISORDER, 0)

    def result(self, *, sent_again: bool = False) -> ProducerAudit:
        """Return the account so far; call it once. `sent_again`: the client sent again what came twice or late."""
        written, seen, flaws = self.written, self._found > 0, self._flaws
        refused, doubtful = _mask(written.refused, len(seen)), _mask(written.doubtful, len(seen))
        doubtful[written.settled :] = True
        lost = np.flatnonzero(~(seen | refused | doubtful))
        risen = np.flatnonzero(seen & refused)
        flaws.add(LOST, lost)
        flaws.add(REFUSED, risen)
        # A record that the client sent again is at several offsets; one of them is the acknowledged one.
        flaws.add(MISPLACED, np.flatnonzero(self._found == _SEEN), self._strays)
        return ProducerAudit(
            name=written.name,
            acked=written.acked,
            found=written.acked - len(lost),
            lost=len(lost),
            duplicated=flaws.counts.get(TWICE, 0),
            reordered=flaws.counts.get(DISORDER, 0),
            corrupt=flaws.corrupt(),
            refused_found=len(risen),
            first=flaws.lines(f"{written.topic}-{written.partition}", written.name),
            sent_again=self.repeats if sent_again else 0,
        )


def _mask(spans: Iterable[Span], size: int) -> Flags:
    mask = np.zeros(size, np.bool_)
    for begin, end in spans:
        mask[begin:end] = True
    return mask


class Ledger:
    """All partitions of an audit. Raises ValueError if two declarations cover a producer's records of one partition.

    `broker_times` says whether a topic's configuration lets the broker set timestamps. It is asked once for a topic
    that has a record with such a timestamp.
    """

    def __init__(
        self, written: Iterable[WrittenRecords], broker_times: Callable[[str], bool] = lambda _topic: False
    ) -> None:
        self._broker_times = cache(broker_times)
        self._by_broker: set[str] = set()
        self._tallies: dict[tuple[str, int], dict[int, RecordTally]] = {}
        self._foreign: dict[tuple[str, int], _Flaws] = defaultdict(_Flaws)
        self._logs: dict[tuple[str, int], _Flaws] = defaultdict(_Flaws)
        self._next: dict[tuple[str, int], int] = {}
        self._elsewhere: dict[int, str] = {}
        for each in written:
            of_partition = self._tallies.setdefault((each.topic, each.partition), {})
            if each.producer in of_partition:
                raise ValueError(f"{each.topic}-{each.partition}: producer {each.producer} ({each.name}) twice")
            of_partition[each.producer] = RecordTally(each)
            self._elsewhere[each.producer] = f"{each.name} of {each.topic}, which wrote nothing here"

    def partitions(self) -> list[tuple[str, int]]:
        """Return topic and partition of everything in the account."""
        return sorted(self._tallies)

    def add(self, topic: str, partition: int, found: ReadRecords) -> None:
        """Add the next records of a partition, as they came. Raise KeyError when no producer wrote to it.

        A client may deliver an offset again after a leader change: that is one record in the log.
        """
        offsets = np.array(found.offsets, np.int64)
        highest = np.maximum.accumulate(np.concatenate(([self._next.get((topic, partition), 0) - 1], offsets)))[:-1]
        again = offsets <= highest
        if again.any():
            self._add_new(topic, partition, found.only(np.flatnonzero(~again)))
            self._check_again(topic, partition, found.only(np.flatnonzero(again)))
        else:
            self._add_new(topic, partition, found)

    def _add_new(self, topic: str, partition: int, found: ReadRecords) -> None:
        tallies, heads = self._tallies[topic, partition], inspect(found.values, partition)
        offsets, sound = np.array(found.offsets, np.int64), heads.sound()
        self._check_gaps(topic, partition, offsets)
        by_broker = BROKER_TIME in found.times_ms and self._broker_times(topic)
        if by_broker:
            self._by_broker.add(topic)
        for producer in np.unique(heads.producers[sound]).tolist():
            numbers = np.flatnonzero(sound & (heads.producers == producer))
            places = heads.places[numbers]
            if producer not in tallies:
                whose = self._elsewhere.get(producer, f"producer {producer}, which is not in this audit")
                self._foreign[topic, partition].add(f"corrupt (of {whose})", places)
                continue
            tallies[producer].add(places, offsets[numbers])
            envelope = tallies[producer].written.envelope
            if envelope is not None:
                for each in compare_envelopes(envelope, found, heads, numbers, broker_times=by_broker):
                    detail = f": at offset {found.offsets[each.number]}, {each.detail}"
                    tallies[producer].add_flawed(int(heads.places[each.number]), each.flaw, detail)
        for number, flaw in heads.flaws.items():
            self._add_flawed(topic, partition, heads, number, flaw)

    def _add_flawed(self, topic: str, partition: int, heads: Headers, number: int, flaw: Flaw) -> None:
        tallies = self._tallies[topic, partition]
        claimed, place = int(heads.producers[number]), int(heads.places[number])
        if flaw is not Flaw.NOT_OURS and claimed in tallies:
            tallies[claimed].add_flawed(place, flaw)
        else:
            self._foreign[topic, partition].add(f"corrupt ({flaw})", [place])

    def _check_gaps(self, topic: str, partition: int, offsets: Ints) -> None:
        """Check that each offset follows the one before it; transactions have markers between their records."""
        if not len(offsets):
            return
        where = topic, partition
        expected = np.concatenate(([self._next.get(where, offsets[0])], offsets[:-1] + 1))
        self._next[where] = int(offsets[-1]) + 1
        if not any(tally.written.transactional for tally in self._tallies[where].values()):
            after = np.flatnonzero(offsets != expected)
            details = {int(offsets[at]): f", not {expected[at]}" for at in after[:_NAMED]}
            self._logs[where].add(GAP, offsets[after], details)

    def _check_again(self, topic: str, partition: int, found: ReadRecords) -> None:
        """Check that records at offsets that were read before are records that were read before."""
        tallies, heads = self._tallies[topic, partition], inspect(found.values, partition)
        for number, offset in enumerate(found.offsets):
            tally = tallies.get(int(heads.producers[number]))
            if number in heads.flaws or tally is None or not tally.has(int(heads.places[number])):
                self._logs[topic, partition].add(OFFSET_TWICE, [offset])

    def add_unreadable(self, topic: str, partition: int, offset: int, why: str) -> None:
        """Add a batch that a client refused to read."""
        self._logs[topic, partition].add(UNREADABLE, [offset], {offset: f": {why}"})

    def read_up_to(self, topic: str, partition: int) -> int:
        """Return the offset after the last record of a partition; 0 before the first one."""
        return self._next.get((topic, partition), 0)

    def add_withheld(self, topic: str, partition: int, why: str) -> None:
        """Add that a leader gives no record from the next offset on, although it has some."""
        offset = self.read_up_to(topic, partition)
        self._logs[topic, partition].add(WITHHELD, [offset], {offset: f": {why}"})

    def add_lookup(self, topic: str, partition: int, time_ms: int, offset: int, answer: int) -> None:
        """Add the leader's answer for the timestamp of the record at `offset`; below 0: it has none that late."""
        if answer != offset:
            given = "no offset" if answer < 0 else f"offset {answer}"
            detail = {offset: f": the leader gives {given} for {time_ms} ms"}
            self._logs[topic, partition].add(NOT_BY_TIME, [offset], detail)

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
        of_none = [
            line
            for of, whose in ((self._foreign, "an unknown producer"), (self._logs, "the log's offsets"))
            for (topic, partition), flaws in sorted(of.items())
            for line in flaws.lines(f"{topic}-{partition}", whose)
        ]
        return Audit(
            expected=sum(each.acked for each in found),
            found=sum(each.found for each in found),
            lost=sum(each.lost for each in found),
            duplicated=sum(each.duplicated for each in found),
            corrupt=sum(each.corrupt for each in found)
            + sum(flaws.corrupt() for of in (self._foreign, self._logs) for flaws in of.values()),
            complaints=tuple([*(line for each in found for line in each.first), *of_none][:_COMPLAINTS]),
            reordered=sum(each.reordered for each in found),
            producers=tuple(by_name.values()),
            sent_again=sum(each.sent_again for each in found),
            of_none=tuple(of_none[:_COMPLAINTS]),
            broker_times=tuple(sorted(self._by_broker)),
            foreign=sum(flaws.foreign() for flaws in self._foreign.values()),
        )
