"""The deliveries to a consumer during a load, compared with what the producers wrote. Pure.

What a client can know: the next record of a partition has the next offset, except behind the marker of a transaction;
and it is the next one of its producer, except what was refused. This holds within one session, in which the client
never goes back: when a leader changes, it discards what the former one still answers. It passes on all that one answer
has, also twice. A new session begins at the group's offset: not before the last one that the coordinator acknowledged,
and not after what came before. The first session begins at the end of the log, before its first fetch is answered.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from results.contract.live_load import LiveDeliveries
from testbed.workload.audit import Audit
from testbed.workload.delivered_spans import FLAWS, UNORDERED, DeliveredSpan
from testbed.workload.delivery_reports import Delivered, Remainder, SessionBegin
from testbed.workload.records import Flaw, Where, WrittenRecords, preloader
from testbed.workload.spans import Span, common, count, less, merged

_NAMED = 5
"""The number of flaws that the account names for each kind and producer."""
SKIPPED, MISSED, REPEATED, CORRUPT, REFUSED = "skipped", "missed", "repeated", "corrupt", "refused"


class _DeliveryFlaws:
    """The number of records with each kind of flaw, by producer, and the first of them in words."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._places: dict[tuple[str, str], dict[Where, list[Span]]] = {}
        self._lines: dict[tuple[str, str], list[str]] = {}

    def add(self, kind: str, records: int, line: str, producer: str = "") -> None:
        """Add records. A flaw that no producer's records have is of the producer with an empty name."""
        self._counts[kind, producer] += records
        self._name(kind, producer, line)

    def add_places(self, kind: str, where: Where, places: Span, line: str, producer: str) -> None:
        """Add a producer's records of a partition. Each counts once, also if it has the flaw in several sessions."""
        self._places.setdefault((kind, producer), {}).setdefault(where, []).append(places)
        self._name(kind, producer, line)

    def _name(self, kind: str, producer: str, line: str) -> None:
        lines = self._lines.setdefault((kind, producer), [])
        if len(lines) < _NAMED and line not in lines:
            lines.append(line)

    def leave_out(self, kind: str, producer: str, records: int) -> None:
        """Leave out a producer's flaws of one kind that the log has as well."""
        places = self._places.pop((kind, producer), {})
        left = self._counts.pop((kind, producer), 0) + _number(places) - records
        if left > 0:
            self._counts[kind, producer] = left
        else:
            self._lines.pop((kind, producer), None)

    def records(self, kind: str) -> int:
        counted = sum(number for (of, _producer), number in self._counts.items() if of == kind)
        return counted + sum(_number(places) for (of, _producer), places in self._places.items() if of == kind)

    def lines(self) -> tuple[str, ...]:
        return tuple(line for _key, lines in sorted(self._lines.items()) for line in lines)


def _number(places: Mapping[Where, Iterable[Span]]) -> int:
    return sum(count(merged(each)) for each in places.values())


def compare(
    consumer: str,
    delivered: Delivered,
    written: Iterable[WrittenRecords],
    audit: Audit,
    *,
    alone: bool = True,
    from_end: bool = True,
    shared: bool = False,
) -> LiveDeliveries:
    """Return the account of what `consumer` was given, against the `written` records of all producers.

    Records that the log itself has twice, late or not at all are in the `audit`, and not in this account. The first
    record of each session is judged if the consumer is `alone` in its group: only then it knows the group's offset.
    Records of a fill are counted if it began `from_end`. On `shared` storage a leader may give an end that is too low.
    """
    producers: dict[Where, dict[int, WrittenRecords]] = {}
    for each in written:
        producers.setdefault((each.topic, each.partition), {})[each.producer] = each
    flaws = _DeliveryFlaws()
    for where, spans in sorted(delivered.spans.items()):
        partition = _DeliveredPartition(where, producers.get(where, {}), flaws)
        partition.check_records(spans)
        for session in sorted({span.session for span in spans} - {UNORDERED}):
            partition.check_order([span for span in spans if span.session == session])
        if alone:
            partition.check_begins(spans, delivered.begins.get(where, {}), fill=not from_end)
    behind = 0
    for where, remainder in sorted(delivered.last.items()):
        if alone:
            behind += _DeliveredPartition(where, producers.get(where, {}), flaws).check_last(remainder, shared=shared)
    for (where, producer, flaw), flawed in sorted(delivered.envelopes.items()):
        if flaw is Flaw.BROKER_TIME and where[0] in audit.broker_times:
            continue
        name = producers[where][producer].name if producer in producers.get(where, {}) else f"producer {producer}"
        line = f"{flawed.records} of {name} with {flaw}, first at offset {flawed.offset}: {flawed.detail}"
        flaws.add(CORRUPT, flawed.records, f"{where[0]}-{where[1]}: {line}", name)
    for one in audit.producers:
        # What comes late in the log may come in another session, or after the last record that was read.
        flaws.leave_out(MISSED, one.name, one.lost + one.reordered)
        flaws.leave_out(REPEATED, one.name, one.duplicated + one.reordered)
        flaws.leave_out(REFUSED, one.name, one.refused_found)
    return LiveDeliveries(
        consumer,
        records=delivered.records,
        checked=delivered.checked,
        skipped=flaws.records(SKIPPED),
        missed=flaws.records(MISSED),
        repeated=flaws.records(REPEATED),
        corrupt=flaws.records(CORRUPT),
        refused=flaws.records(REFUSED),
        first=flaws.lines(),
        again=sum(map(_again, delivered.spans.values())),
        compared=delivered.compared,
        behind=behind,
        older=sum(_older(where, spans) for where, spans in delivered.spans.items()) if from_end else 0,
    )


def _older(where: Where, spans: Iterable[DeliveredSpan]) -> int:
    """Return how many records of the topic's fill a partition gave: its log ended after them when the load began."""
    return count(merged((span.offset, span.end) for span in spans if span.producer == preloader(where[0])))


def _again(spans: Sequence[DeliveredSpan]) -> int:
    """Return how many records of a partition came in more than one session, each further time counted."""
    sessions: dict[int, list[Span]] = {}
    for span in spans:
        sessions.setdefault(span.session, []).append((span.offset, span.end))
    once = count(merged(span for each in sessions.values() for span in each))
    return sum(count(merged(each)) for each in sessions.values()) - once


class _DeliveredPartition:
    """The deliveries of one partition to one consumer."""

    def __init__(self, where: Where, producers: Mapping[int, WrittenRecords], flaws: _DeliveryFlaws) -> None:
        self._where, self._producers, self._flaws = where, producers, flaws
        self._transactional = any(each.transactional for each in producers.values())

    def _add(self, kind: str, records: int, line: str) -> None:
        self._flaws.add(kind, records, f"{self._where[0]}-{self._where[1]}: {line}")

    def _add_places(self, kind: str, places: Span, line: str, producer: str) -> None:
        self._flaws.add_places(kind, self._where, places, f"{self._where[0]}-{self._where[1]}: {line}", producer)

    def check_records(self, spans: Sequence[DeliveredSpan]) -> None:
        """Check the records without their order: whether they are whole, and which producer wrote them."""
        for span in dict.fromkeys(spans):  # a client meets a batch that it refuses again and again
            written = self._producers.get(span.producer)
            if written is None:
                what = FLAWS.get(span.producer, f"of producer {span.producer}, which wrote nothing here")
                self._add(CORRUPT, max(1, span.records), f"{_numbers('offset', (span.offset, span.end))}: {what}")
            elif written.refused:
                for refused in common([span.places], written.refused):
                    line = f"{_they_were('record', refused, f' of {written.name}')} refused and yet delivered"
                    at = f"at offset {refused[0] + span.shift}"
                    self._add_places(REFUSED, refused, f"{line}, {at}", written.name)

    def check_order(self, spans: Sequence[DeliveredSpan]) -> None:
        """Check the offsets of one session, and the places of each producer."""
        next_offset = spans[0].offset
        next_place: dict[int, int] = {}
        missing: dict[int, dict[Span, int]] = {}
        whole = all(span.producer in self._producers for span in spans)
        for number, span in enumerate(spans):
            fresh = span
            if span.offset < next_offset:
                self._check_back(span, min(span.end, next_offset), spans[:number])
                fresh = span.from_offset(next_offset)
            elif span.offset > next_offset and not self._transactional:
                whole = False
                skipped = next_offset, span.offset
                self._add(SKIPPED, skipped[1] - skipped[0], f"{_they_were('offset', skipped)} skipped")
            next_offset = max(next_offset, span.end)
            written = self._producers.get(span.producer)
            if written is None or not fresh.records:
                continue
            begin, end = fresh.places
            expected = next_place.get(span.producer, begin)
            if begin > expected:
                missing.setdefault(span.producer, {})[expected, begin] = fresh.offset
            elif begin < expected:
                line = f"record {begin} of {written.name} came at offset {fresh.offset}, after record {expected - 1}"
                self._add_places(REPEATED, (begin, min(end, expected)), line, written.name)
            next_place[span.producer] = max(expected, end)
        if whole:  # else the records at skipped offsets, and changed ones, are missing as well
            for producer, gaps in missing.items():
                self._check_missing(
                    self._producers[producer], gaps, [s.places for s in spans if s.producer == producer]
                )

    def check_begins(self, spans: Sequence[DeliveredSpan], begins: Mapping[int, SessionBegin], *, fill: bool) -> None:
        """Check the first record of each session whose begin is known.

        No acknowledged record may be left out before it; without `fill` those of the topic's fill may. The first record
        may not be below the offset that the group committed.
        """
        next_offset, seen = 0, set()
        for span in spans:
            if span.session in begins and span.session not in seen:
                seen.add(span.session)
                begin = begins[span.session]
                self._check_first(max(next_offset, begin.highest), span.offset, fill=fill)
                if span.offset < begin.lowest:
                    again = span.offset, begin.lowest
                    line = f"{_numbers('offset', again)} came again, although the group had committed {begin.lowest}"
                    self._add(REPEATED, again[1] - again[0], line)
            next_offset = max(next_offset, span.end)

    def check_last(self, remainder: Remainder, *, shared: bool) -> int:
        """Check the records that had not come when the load ended; return how many the consumer may be behind.

        A leader acknowledges a record when consumers may have it. So an end that is too low is wrong as well, unless a
        transaction that goes on holds consumers back. Of `shared` storage the testbed knows no such promise.
        """
        lacking = list(self._acknowledged(remainder.reached, remainder.end, fill=False))
        leader_end = remainder.leader_end
        if leader_end is None or (leader_end < remainder.end and (shared or self._transactional)):
            return count(missing for _written, missing in lacking)
        for written, missing in lacking:
            what = _they_were("record", missing, f" of {written.name}")
            line = f"{what} acknowledged and never delivered; the leader gives consumers the end {leader_end}"
            self._add_places(MISSED, missing, line, written.name)
        return 0

    def _check_first(self, begin: int, first: int, *, fill: bool) -> None:
        for written, missing in self._acknowledged(begin, first, fill=fill):
            what = _they_were("record", missing, f" of {written.name}")
            line = f"{what} acknowledged and not delivered after an assignment, before offset {first}"
            self._add_places(MISSED, missing, line, written.name)

    def _acknowledged(self, begin: int, end: int, *, fill: bool) -> Iterator[tuple[WrittenRecords, Span]]:
        """Yield the records that were acknowledged at these offsets; those of the topic's fill with `fill` only."""
        for written in self._producers.values():
            if written.producer == preloader(self._where[0]) and not fill:
                continue
            for place, place_end, shift in written.acked_at:
                found = max(place, begin - shift), min(place_end, end - shift)
                if found[0] < found[1]:
                    yield written, found

    def _check_back(self, span: DeliveredSpan, end: int, before: Sequence[DeliveredSpan]) -> None:
        """Tell what came at the offsets of a span, up to `end`, which are below those before it."""
        seen: list[Span] = []
        for each in before:
            both = max(span.offset, each.offset), min(end, each.end)
            if both[0] >= both[1]:
                continue
            seen.append(both)
            if (span.producer, span.shift) == (each.producer, each.shift):
                self._add(REPEATED, both[1] - both[0], f"{_numbers('offset', both)} came twice")
            else:
                self._add(CORRUPT, both[1] - both[0], f"{_numbers('offset', both)}: twice, with different records")
        for late in less([(span.offset, end)], seen):
            self._add(REPEATED, late[1] - late[0], f"{_numbers('offset', late)} came after later ones")

    def _check_missing(self, written: WrittenRecords, gaps: Mapping[Span, int], delivered: Sequence[Span]) -> None:
        """Check that what is missing between delivered records was never acknowledged; `gaps` have the next offset."""
        acknowledged = [(begin, min(end, written.settled)) for begin, end in gaps]
        for missing in less(acknowledged, [*delivered, *written.refused, *written.doubtful]):
            offset = next(offset for (begin, end), offset in gaps.items() if begin <= missing[0] < end)
            line = f"{_they_were('record', missing, f' of {written.name}')} acknowledged and not delivered"
            self._add_places(MISSED, missing, f"{line} before offset {offset}", written.name)


def _numbers(what: str, span: Span) -> str:
    return f"{what}s {span[0]} to {span[1] - 1}" if span[1] > span[0] + 1 else f"{what} {span[0]}"


def _they_were(what: str, span: Span, of: str = "") -> str:
    return f"{_numbers(what, span)}{of} {'were' if span[1] > span[0] + 1 else 'was'}"
