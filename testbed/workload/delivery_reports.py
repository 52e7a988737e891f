"""The reports of a consumer on the records that it was given. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from testbed.workload.delivered_spans import DeliveredSpan
from testbed.workload.records import Flaw, Where


@dataclass(frozen=True, slots=True)
class FlawedEnvelopes:
    """Records of one producer and partition with one flaw; `offset` and `detail` are the first one's."""

    records: int
    offset: int
    detail: str


@dataclass(frozen=True, slots=True)
class SessionBegin:
    """The offsets between which a session of a partition begins, as the consumer knows them without its records.

    It may also begin above `highest`, where the records end that came before.
    """

    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class Remainder:
    """A partition of which a consumer lacks acknowledged records: those from `reached` up to, but excluding, `end`.

    Where nothing came any more, the leader was asked: `leader_end` is the end of its log that it gives to consumers.
    None: it was not asked, or did not answer, or the consumer does not fetch the partition.
    """

    reached: int
    end: int
    leader_end: int | None


@dataclass(slots=True)
class Delivered:
    """The sum of a consumer's reports.

    `begins` has the begins of a partition's sessions, by session, as far as they are known. `checked` counts the
    records whose value was checked with its checksum, and `compared` those whose key, headers and timestamp were
    compared with what their producer gave them.
    """

    spans: dict[Where, list[DeliveredSpan]] = field(default_factory=dict)
    """The records of each partition, in the order of their arrival."""
    begins: dict[Where, dict[int, SessionBegin]] = field(default_factory=dict)
    envelopes: dict[tuple[Where, int, Flaw], FlawedEnvelopes] = field(default_factory=dict)
    """By partition, producer and flaw."""
    last: dict[Where, Remainder] = field(default_factory=dict)
    """What had not come when the load ended."""
    checked: int = 0
    compared: int = 0

    def hear(self, topics: Sequence[str], said: Mapping[str, Any]) -> None:
        """Add one report; `topics` by their numbers."""
        self.add(topics, said.get("delivered", ()))
        for topic, partition, session, *offsets in said.get("begins", ()):
            self.begins.setdefault((topics[topic], partition), {})[session] = SessionBegin(*offsets)
        for topic, partition, producer, flaw, records, offset, detail in said.get("envelopes", ()):
            key = (topics[topic], partition), producer, Flaw(flaw)
            before = self.envelopes.get(key, FlawedEnvelopes(0, offset, detail))
            self.envelopes[key] = replace(before, records=before.records + records)
        for topic, partition, *remainder in said.get("last", ()):
            self.last[topics[topic], partition] = Remainder(*remainder)
        self.checked = said.get("checked", self.checked)
        self.compared = said.get("compared", self.compared)

    def add(self, topics: Sequence[str], rows: Iterable[Sequence[int]]) -> None:
        """Add rows of records in the order of the reports."""
        for topic, partition, session, producer, offset, place, records in rows:
            span = DeliveredSpan(session, producer, offset, place, records)
            found = self.spans.setdefault((topics[topic], partition), [])
            if found and span.goes_on(found[-1]):
                found[-1] = replace(found[-1], records=found[-1].records + records)
            else:
                found.append(span)

    @property
    def records(self) -> int:
        """Return the number of records."""
        return sum(span.records for spans in self.spans.values() for span in spans)
