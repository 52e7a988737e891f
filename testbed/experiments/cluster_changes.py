"""The changes that other clients made to a cluster while a run moved data, from its metadata log.

The log has a record for each change that a client asked for. While data moves the run itself writes few: the throttle's
rate when it changes, and that of a broker that is back. It never creates or deletes a topic then.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from results.contract.cluster import ChangeKind, ClusterChange
from results.contract.manifest import Manifest
from results.contract.schema import Event, Sample
from results.criteria.run_view import MODES
from testbed.errors import TestbedError
from testbed.experiments.kip455_trace import readable
from testbed.experiments.samplers import DRIVER
from testbed.kafka.node import LOG
from testbed.probes.agent import OPERATORS
from testbed.probes.logwatch import LogEntry, entries
from testbed.provision.testbed import Testbed
from testbed.reassignment.metadata_log import MetadataRecord, read_records, replay
from testbed.throttle.configs import LISTS, RATES

_BROKER, _TOPIC = 4, 2
"""Kafka's numbers of the kinds of resources in a CONFIG_RECORD."""
ADMITTED_US = 5_000_000
"""The longest time from a rate's record to the event of a broker that is back: one request and its answer."""
_REASON, MOST_LINES = "due to client delete records request", 1000
"""The end of the line of a leader, Kafka 3.9 to 4.3; it logs one for each partition."""
_DELETED = re.compile(rf"partition=([^,\]]+).*Incremented log start offset to (\d+) {_REASON}")
TOKEN = 6
"""Characters at the end of a run's id with which the names of its topics end as well."""
SHOWN = 80
"""Characters of a value in a text: a list of throttled replicas is long."""


@dataclass(frozen=True, slots=True)
class MoveTime:
    """When a run moved data, and the spans within it in which it changed rates itself; µs since the epoch."""

    begun_us: int
    ended_us: int
    own: tuple[tuple[int, int], ...] = ()

    def quiet(self, us: int, *, rate: bool) -> bool:
        """Return whether the run wrote no configuration (with `rate`: no rate of a throttle) at an instant."""
        inside = self.begun_us < us < self.ended_us
        return inside and not (rate and any(begin <= us <= end for begin, end in self.own))


def move_time(events: Sequence[Event], samples: Iterable[Sample]) -> MoveTime | None:
    """Return when the run moved data; None when it did not. A move that was not done ends with its last poll."""
    begun = next((each.ts_us for each in events if each.kind == "move.started"), None)
    if begun is None:
        return None
    ended = next((each.ts_us for each in events if each.kind == "move.done"), None)
    if ended is None:
        polls = (each.ts_us for each in samples if (each.host, each.metric) == (DRIVER, "move.in_flight"))
        ended = max(polls, default=begun)
    return MoveTime(begun, ended, tuple(_own(events)))


def _own(events: Sequence[Event]) -> Iterator[tuple[int, int]]:
    for each in events:
        if each.kind == "throttle.changing":
            done = (e.ts_us for e in events if e.kind == "throttle.in_force" and e.ts_us > each.ts_us)
            yield each.ts_us, next(done, 2**62)
        if each.kind == "throttle.admitted":
            yield each.ts_us - ADMITTED_US, each.ts_us


def foreign_changes(
    records: Sequence[MetadataRecord], time: MoveTime, token: str, *, steps: bool
) -> tuple[ClusterChange, ...]:
    """Return the changes by other clients, in order. Pure.

    The names of the run's topics end with `token`. Where it moves them in `steps`, its own requests are not told from
    those of others.
    """
    found = [change for record in records for change in _changed(record, time)]
    found += [*_topics(records, time, token), *_moved(records, time, token, steps=steps)]
    return tuple(sorted(found, key=lambda change: change.ts_us))


def _changed(record: MetadataRecord, time: MoveTime) -> Iterator[ClusterChange]:
    data = record.data
    if record.type == "CLIENT_QUOTA_RECORD" and time.quiet(record.ts_us, rate=False):
        yield ClusterChange(record.ts_us, "configuration", f"a client quota, {data.get('key')} {data.get('value')}")
    if record.type != "CONFIG_RECORD":
        return
    key, name = str(data.get("name")), str(data.get("resourceName"))
    if time.quiet(record.ts_us, rate=key in RATES):
        kinds = {_BROKER: f"broker {name}" if name else "all brokers", _TOPIC: f"topic {name}"}
        where = kinds.get(data.get("resourceType", 0), f"resource {name}")
        kind: ChangeKind = "throttle" if key in (*RATES, *LISTS) else "configuration"
        value = data.get("value")
        text = "was removed" if value is None else f"was set to {str(value)[:SHOWN]}"
        yield ClusterChange(record.ts_us, kind, f"{key} of {where} {text}")


def _topics(records: Sequence[MetadataRecord], time: MoveTime, token: str) -> Iterator[ClusterChange]:
    names: dict[Any, str] = {}
    for record in records:
        topic, quiet = record.data.get("topicId"), time.quiet(record.ts_us, rate=False)
        if record.type == "TOPIC_RECORD":
            name = names[topic] = str(record.data.get("name"))
            if quiet and not name.startswith("__"):  # Kafka makes its own when they are needed
                yield ClusterChange(record.ts_us, "topic", f"topic {name} was created")
        elif record.type == "REMOVE_TOPIC_RECORD" and quiet:
            name = names.get(topic, "")
            kind: ChangeKind = "deletion" if name.endswith(token) else "topic"
            yield ClusterChange(record.ts_us, kind, f"topic {name} was deleted")


def _moved(records: Sequence[MetadataRecord], time: MoveTime, token: str, *, steps: bool) -> Iterator[ClusterChange]:
    """Yield the reassignments that others began: a controller adds no replica by itself."""
    adding: dict[tuple[str, int], frozenset[int]] = {}
    for state in replay(records).changes:
        key = state.tp.topic, state.tp.partition
        new = frozenset(state.adding) - adding.get(key, frozenset())
        adding[key] = frozenset(state.adding)
        mine = steps and state.tp.topic.endswith(token)
        if new and not mine and time.quiet(state.ts_us, rate=False):
            yield ClusterChange(state.ts_us, "reassignment", f"{state.tp} was reassigned to {list(state.replicas)}")


def requests_of_others(samples: Iterable[Sample], time: MoveTime) -> Iterator[ClusterChange]:
    """Yield each kind of operators' requests that brokers answered while a plan moved at once, with its first. Pure.

    A request that the run made before is in the first reading of a broker. A broker that begins again counts from 0.
    """
    counts: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for each in samples:
        inside = time.begun_us <= each.ts_us <= time.ended_us
        if inside and each.metric == "broker.requests" and each.label in OPERATORS:
            counts.setdefault((each.label, each.host), []).append((each.ts_us, each.value))
    for request in OPERATORS:
        grown = [
            (now[0], host)
            for (label, host), read in sorted(counts.items())
            for before, now in pairwise(sorted(read))
            if label == request and now[1] > before[1]
        ]
        if grown:
            first, host = min(grown)
            yield ClusterChange(first, "reassignment", f"a request {request}, which {host} answered")


def deletions(entries: Iterable[LogEntry], begun_us: int) -> Iterator[ClusterChange]:
    """Yield the deletions of records that clients asked a broker for, from entries of its log. Pure."""
    for entry in entries:
        if entry.ts_us >= begun_us and (found := _DELETED.search(entry.message)):
            yield ClusterChange(entry.ts_us, "deletion", f"records of {found[1]} were deleted up to offset {found[2]}")


def _deleted(testbed: Testbed, begun_us: int) -> Iterator[ClusterChange]:
    for broker in testbed.topology.brokers:
        words = ["grep", "-h", "-m", str(MOST_LINES), _REASON, LOG]
        yield from deletions(entries(testbed.hosts[broker.name].run(words, check=False).stdout), begun_us)


def read_changes(
    testbed: Testbed, manifest: Manifest, events: Sequence[Event], samples: Sequence[Sample]
) -> tuple[ClusterChange, ...]:
    """Return the changes by other clients while a run moved data. Raise `TestbedError` when no host has the log.

    The metadata log has no record of deleted records, and the run deletes none: a deletion counts at any time.
    """
    time = move_time(events, samples)
    if time is None:
        return ()
    steps = manifest.parameters.get("mode") in MODES
    # An upgrade ends with elections of the run's own.
    own = steps or any(event.kind == "broker.leaving" for event in events)
    asked = () if own else requests_of_others(samples, time)
    others = (*asked, *_deleted(testbed, events[0].ts_us))
    problems = []
    for host in readable(testbed):
        try:
            records = read_records(host)
            return (*foreign_changes(records, time, manifest.run_id[-TOKEN:], steps=steps), *others)
        except TestbedError as error:
            problems.append(str(error))
    raise TestbedError(f"the metadata log was not read: {'; '.join(problems)}")
