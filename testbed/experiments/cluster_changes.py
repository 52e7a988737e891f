"""The changes that other clients made to a cluster while a run moved data, from its metadata log.

The log has a record for each change that a client asked for, and brokers count what they answer: a record without a
request is the controller's own. While data moves the run itself asks for little: its plan, at once or in steps, the
throttle's rate when it changes, and that of a broker that is back. It extends the throttle's lists if another client
has moved a partition. It never creates or deletes a topic then.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from results.contract.cluster import ChangeKind, ClusterChange
from results.contract.manifest import Manifest
from results.contract.schema import Event, Sample
from results.criteria.quantities import DRIVER, READING_S, US
from results.criteria.run_view import MODES
from results.criteria.windows import counted
from testbed.errors import TestbedError
from testbed.experiments.kip455_trace import readable
from testbed.kafka.node import LOG
from testbed.kafka.types import TopicPartition, is_internal
from testbed.probes.agent import OPERATORS
from testbed.probes.log_entries import LogEntry, entries
from testbed.provision.testbed import Testbed
from testbed.reassignment.metadata_log import MetadataRecord, Registration, read_records, replay
from testbed.throttle.configs import LISTS, RATES

_BROKER, _TOPIC = 4, 2
"""Kafka's numbers of the kinds of resources in a CONFIG_RECORD."""
ANSWER_US = 5_000_000
"""The longest time from a record to the answer of its request, and to an event that the run writes after the answer."""
COUNTED_US = 1_000_000
"""The longest time from the instant of a sample to its counts: the agent waits for a broker for 0.8 s."""
CLOCK_US = round(READING_S * US)
"""What the controller's clock may differ from the runner's by: `clocks-agree` allows as much."""
_CONFIGURES = ("IncrementalAlterConfigs", "AlterConfigs")
_MOVES, _ELECTS = "AlterPartitionReassignments", "ElectLeaders"
_DELETES = re.compile(r"retention|cleanup\.policy|unclean\.leader")
"""The configurations by which a broker rightly loses records."""
_REASON, MOST_LINES = "due to client delete records request", 1000
"""The end of the line of a leader, Kafka 3.9 to 4.3; it logs one for each partition."""
_DELETED = re.compile(rf"partition=([^,\]]+).*Incremented log start offset to (\d+) {_REASON}")
TOKEN = 6
"""Characters at the end of a run's id with which the names of its topics end as well."""
SHOWN = 80
"""Characters of a value in a text: a list of throttled replicas is long."""


@dataclass(frozen=True, slots=True)
class MoveTime:
    """When a run moved data, and the spans within it in which it changed its throttle itself; µs since the epoch.

    It notes the begin before it asks for its plan. At `asked_us`, its first poll, the controller has accepted the plan.
    """

    begun_us: int
    asked_us: int
    ended_us: int
    own: tuple[tuple[int, int], ...] = ()
    """The spans in which it changed rates."""
    step_us: tuple[int, ...] = ()
    """Begin and end of the step *move*: the run reads the placement of all partitions at both."""
    lists: tuple[tuple[int, int], ...] = ()
    """The spans in which it extended lists of throttled replicas."""

    def compared(self, us: int) -> bool:
        """Return whether the run read the placement of all partitions before an instant, and again after it."""
        return bool(self.step_us) and self.step_us[0] <= us <= self.step_us[-1]

    def quiet(self, us: int, key: str = "") -> bool:
        """Return whether the run moved data at an instant, and did not write this key of a throttle itself."""
        inside = self.begun_us + CLOCK_US < us < self.ended_us - CLOCK_US
        own = self.own if key in RATES else self.lists if key in LISTS else ()
        return inside and not any(begin - CLOCK_US <= us <= end + CLOCK_US for begin, end in own)

    def asking(self, us: int) -> bool:
        """Return whether the run may still have asked for its plan at an instant."""
        return us <= self.asked_us + CLOCK_US


def move_time(events: Sequence[Event], samples: Iterable[Sample]) -> MoveTime | None:
    """Return when the run moved data; None when it did not. A move that was not done ends with its last poll."""
    begun = next((each.ts_us for each in events if each.kind == "move.started"), None)
    if begun is None:
        return None
    done = next((each.ts_us for each in events if each.kind == "move.done"), None)
    polls = [each.ts_us for each in samples if (each.host, each.metric) == (DRIVER, "move.in_flight")]
    ended = max(polls, default=begun) if done is None else done
    step = tuple(each.ts_us for each in events if (each.kind, each.name) == ("step", "move"))
    lists = tuple((each.ts_us - ANSWER_US, each.ts_us) for each in events if each.kind == "throttle.extended")
    return MoveTime(begun, min(polls, default=ended), ended, tuple(_own(events)), step, lists)


def _own(events: Sequence[Event]) -> Iterator[tuple[int, int]]:
    for each in events:
        if each.kind == "throttle.changing":
            done = (e.ts_us for e in events if e.kind == "throttle.in_force" and e.ts_us > each.ts_us)
            yield each.ts_us, next(done, 2**62)
        if each.kind == "throttle.admitted":
            yield each.ts_us - ANSWER_US, each.ts_us


class OwnSteps:
    """The steps that a run itself requested of its partitions, each with the time just before the request."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._asked: dict[TopicPartition, list[tuple[int, frozenset[int]]]] = {}
        self.asked_us: list[int] = []
        """When the run sent each of its requests."""
        for event in events:
            if event.kind == "batch.started":
                for topic, partition, replicas in event.detail["targets"]:
                    step = event.ts_us, frozenset(replicas)
                    self._asked.setdefault(TopicPartition(topic, partition), []).append(step)
                self.asked_us.append(event.ts_us)
        self.topics = frozenset(tp.topic for tp in self._asked)

    def explain(self, change: Registration, before_us: int) -> bool:
        """Return whether the last step that the run requested before a change led to it.

        The change has the step's replicas, however late: a request may wait for a controller. Or it is the first one
        after the request, within the time of an answer. A controller that writes other replicas then is wrong.
        `before_us` is when the partition was reassigned before. Two steps of a partition are half a second apart.
        """
        asked = [each for each in self._asked.get(change.tp, ()) if each[0] <= change.ts_us + CLOCK_US]
        if not asked:
            return False
        asked_us, replicas = asked[-1]
        answers_it = before_us < asked_us - CLOCK_US and change.ts_us <= asked_us + ANSWER_US
        return replicas == _target(change) or answers_it


class Answers:
    """The requests of operators that brokers answered: between which readings, where, and how many, as they count."""

    def __init__(self, samples: Iterable[Sample], controllers: Collection[str] = ()) -> None:
        self._controllers = frozenset(controllers)
        readings: dict[tuple[str, str], list[tuple[int, float]]] = {}
        for each in samples:
            if each.metric == "broker.requests" and each.label in OPERATORS:
                readings.setdefault((each.label, each.host), []).append((each.ts_us, each.value))
        self.spans: dict[str, list[tuple[int, int, str, float]]] = {}
        for (label, host), read in readings.items():
            for (begin, before), (end, now) in pairwise(sorted(read)):
                if (count := counted(np.array([before, now]))) > 0:
                    self.spans.setdefault(label, []).append((begin, end, host, count))

    def outnumber(self, asked_us: Sequence[int], time: MoveTime) -> bool:
        """Return whether brokers answered more requests to reassign than these while data moved.

        A broker counts a request, and so does the controller to which it forwards it.
        """
        spans = self.spans.get(_MOVES, ())
        inside = [(host, count) for _begin, end, host, count in spans if time.begun_us < end <= time.ended_us]
        each = 2 if self._controllers & {host for host, _count in inside} else 1
        own = sum(us <= time.ended_us for us in asked_us)
        return sum(count for _host, count in inside) >= each * (own + 1)

    def near(self, us: int, *requests: str) -> bool:
        """Return whether a broker answered a request of these kinds that led to a record of this instant."""
        return any(
            begin - ANSWER_US <= us <= end + COUNTED_US
            for each in requests
            for begin, end, _host, _count in self.spans.get(each, ())
        )


def foreign_changes(
    records: Sequence[MetadataRecord], time: MoveTime, token: str, answers: Answers, own: OwnSteps
) -> tuple[ClusterChange, ...]:
    """Return the changes by other clients, in order. Pure.

    The names of the run's topics end with `token`.
    """
    found = [change for record in records for change in _changed(record, time, token, answers)]
    found += [*_topics(records, time, token, answers), *_moved(records, time, token, answers, own)]
    return tuple(sorted(found, key=lambda change: change.ts_us))


def _changed(record: MetadataRecord, time: MoveTime, token: str, answers: Answers) -> Iterator[ClusterChange]:
    data, us = record.data, record.ts_us
    if record.type == "CLIENT_QUOTA_RECORD" and time.quiet(us) and answers.near(us, "AlterClientQuotas"):
        yield ClusterChange(us, "configuration", f"a client quota, {data.get('key')} {data.get('value')}")
    if record.type != "CONFIG_RECORD":
        return
    key, name, resource = str(data.get("name")), str(data.get("resourceName")), data.get("resourceType", 0)
    if time.quiet(us, key) and answers.near(us, *_CONFIGURES):
        kinds = {_BROKER: f"broker {name}" if name else "all brokers", _TOPIC: f"topic {name}"}
        where = kinds.get(resource, f"resource {name}")
        value = data.get("value")
        text = "was removed" if value is None else f"was set to {str(value)[:SHOWN]}"
        others = resource == _TOPIC and not name.endswith(token)
        yield ClusterChange(us, _kind(key, others=others), f"{key} of {where} {text}")


def _kind(key: str, *, others: bool) -> ChangeKind:
    """Return what a configuration does; `others`: it is of a topic that the run has not made."""
    if key in (*RATES, *LISTS):
        return "throttle"
    if others:
        return "topic"
    return "deletion" if _DELETES.search(key) else "configuration"


def _topics(records: Sequence[MetadataRecord], time: MoveTime, token: str, answers: Answers) -> Iterator[ClusterChange]:
    names: dict[Any, str] = {}
    for record in records:
        topic, us = record.data.get("topicId"), record.ts_us
        quiet = time.quiet(us)
        if record.type == "TOPIC_RECORD":
            name = names[topic] = str(record.data.get("name"))
            # Kafka makes its own when they are needed.
            if quiet and not is_internal(name) and answers.near(us, "CreateTopics"):
                yield ClusterChange(us, "topic", f"topic {name} was created")
        elif record.type == "REMOVE_TOPIC_RECORD" and quiet and answers.near(us, "DeleteTopics"):
            name = names.get(topic, "")
            kind: ChangeKind = "deletion" if name.endswith(token) else "topic"
            yield ClusterChange(us, kind, f"topic {name} was deleted")


def _moved(
    records: Sequence[MetadataRecord], time: MoveTime, token: str, answers: Answers, own: OwnSteps
) -> Iterator[ClusterChange]:
    """Yield the reassignments that others requested or cancelled.

    The run's own are its steps. Of a topic without steps it is the plan, at the begin. Where brokers answered no other
    request than those for steps, the controller alone is the cause of what no step explains. So it is of what happens
    to a topic of others at the begin, where brokers answered no other request than that for the plan.
    """
    outnumbered = answers.outnumber(own.asked_us or (time.begun_us,), time)
    others = not own.asked_us or outnumbered
    states: dict[TopicPartition, Registration] = {}
    moved_us: dict[TopicPartition, int] = {}
    for state in replay(records).changes:
        tp, us = state.tp, state.ts_us
        last, states[tp] = states.get(tp), state
        theirs = not tp.topic.endswith(token)
        judged = time.quiet(us) or (theirs and time.compared(us))
        if last is None or not _was_requested(last, state) or not judged:
            continue
        before_us, moved_us[tp] = moved_us.get(tp, 0), us
        alone = time.begun_us - CLOCK_US <= us and not outnumbered
        planned = tp.topic not in own.topics and time.asking(us) and (alone or not theirs)
        explained = planned or own.explain(state, before_us) or (tp.topic in own.topics and not others)
        if not explained and answers.near(us, _MOVES):
            yield ClusterChange(us, "reassignment", _in_words(last, state), str(tp))


def _target(state: Registration) -> frozenset[int]:
    """Return the replicas with which a partition's reassignment ends, or the ones that it has without one."""
    return frozenset(state.replicas) - frozenset(state.removing)


def _was_requested(last: Registration, state: Registration) -> bool:
    """Return whether a client requested the change from one state of a partition to the next.

    The controller by itself ends a reassignment with the replicas of its target. Their order does not count: a
    controller that writes another order is wrong, and no other client.
    """
    running = {(frozenset(each.adding), frozenset(each.removing)) for each in (last, state)}
    if len(running) == 1 and set(state.replicas) == set(last.replicas):
        return False
    return bool(state.adding or state.removing) or _target(state) != _target(last)


def _in_words(last: Registration, state: Registration) -> str:
    ended = bool(last.adding or last.removing) and not state.adding and not state.removing
    if ended and set(state.replicas) == set(last.replicas) - set(last.adding):
        return f"the reassignment of {state.tp} was cancelled"
    return f"{state.tp} was reassigned to {[broker for broker in state.replicas if broker not in state.removing]}"


def requests_of_others(answers: Answers, time: MoveTime) -> Iterator[ClusterChange]:
    """Yield each kind of operators' requests that brokers answered while a plan moved at once, with its first. Pure.

    The run's own plan is answered at the begin.
    """
    for request in (_MOVES, _ELECTS):
        spans = answers.spans.get(request, ())
        inside = [each for each in spans if not time.asking(each[0]) and each[1] <= time.ended_us]
        if inside:
            _begin, first, host, _count = min(inside, key=lambda each: each[1])
            yield ClusterChange(first, "reassignment", f"a request {request}, which {host} answered")


def deletions(entries: Iterable[LogEntry], begun_us: int, token: str) -> Iterator[ClusterChange]:
    """Yield the deletions of the run's records that clients asked a broker for, from entries of its log. Pure."""
    for entry in entries:
        found = _DELETED.search(entry.message)
        if entry.ts_us >= begun_us and found and found[1].rpartition("-")[0].endswith(token):
            yield ClusterChange(entry.ts_us, "deletion", f"records of {found[1]} were deleted up to offset {found[2]}")


def _deleted(testbed: Testbed, begun_us: int, token: str) -> Iterator[ClusterChange]:
    for broker in testbed.topology.brokers:
        words = ["grep", "-h", "-m", str(MOST_LINES), _REASON, LOG]
        yield from deletions(entries(testbed.hosts[broker.name].run(words, check=False).stdout), begun_us, token)


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
    controllers = [host.name for host in testbed.topology.controllers]
    answers, token = Answers(samples, controllers), manifest.run_id[-TOKEN:]
    asked = () if own else requests_of_others(answers, time)
    others = (*asked, *_deleted(testbed, events[0].ts_us, token))
    problems = []
    for host in readable(testbed):
        try:
            records = read_records(host)
            return (*foreign_changes(records, time, token, answers, OwnSteps(events)), *others)
        except TestbedError as error:
            problems.append(str(error))
    raise TestbedError(f"the metadata log was not read: {'; '.join(problems)}")
