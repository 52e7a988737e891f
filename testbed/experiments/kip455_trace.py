"""The states of partitions over time, recorded in a run: by polling clients, and exactly from the metadata log.

Events: `trace.described` (DescribeTopics) and `trace.listed` (ListPartitionReassignments), each after a change;
`trace.log`, a record of the controller's log, with the time at which the controller wrote it.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from results.contract.schema import Event, Sample
from results.contract.steps import State
from results.criteria.step_measures import DESCRIBED, LISTED, LOG, state_of
from testbed.errors import TestbedError
from testbed.hosts import Shell
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError
from testbed.kafka.partitions import existing_partitions
from testbed.kafka.types import PartitionState, Reassignment, TopicPartition
from testbed.probes.recorder import Recorder, now_us
from testbed.provision.testbed import Testbed
from testbed.reassignment.metadata_log import MetadataHistory, MetadataLogError, Registration, read_history

POLL_S = 0.15
_READINGS = 3
"""Maximum number of reads of the log until it agrees with DescribeTopics: either may be a moment older."""
_SHOWN = 300
"""Characters of an error that are shown: its end, where the tool names the cause."""

Detail = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TraceComparison:
    """The log's last states compared with DescribeTopics. `equal` is None when unknown; `problem` says why."""

    equal: bool | None
    differences: tuple[str, ...] = ()
    problem: str = ""


class Trace:
    """The trace of some topics' partitions. Call `look` regularly, and `finish` once at the end."""

    def __init__(self, recorder: Recorder, admin: Admin, topics: Sequence[str]) -> None:
        self._recorder, self._admin, self._topics = recorder, admin, tuple(topics)
        self._lock = threading.Lock()
        self._last: dict[tuple[str, TopicPartition], Detail] = {}
        self._seen: dict[TopicPartition, tuple[int, State]] = {}

    def look(self) -> list[Sample]:
        """Poll once and record every change as an event. Raise `KafkaError` when the cluster does not answer."""
        asked = now_us()
        # The list comes first: DescribeTopics then shows a move that has left the list as complete or cancelled.
        listed = self._admin.reassignments(self._topics)
        described = existing_partitions(self._admin, self._topics)
        with self._lock:
            known = {tp for _kind, tp in self._last}
            for tp in sorted({*known, *described}):
                answers = (_described(described.get(tp)), _listed(listed.get(tp), gone=tp not in described))
                for kind, detail in zip((DESCRIBED, LISTED), answers, strict=True):
                    self._record(kind, tp, detail)
                self._seen[tp] = asked, state_of(answers[0] | {k: answers[1].get(k) for k in ("adding", "removing")})
        return []

    def latest(self, tp: TopicPartition, since_us: int) -> State | None:
        """Return the state of a partition by a poll that began after `since_us`; None without such a poll."""
        with self._lock:
            asked, state = self._seen.get(tp, (0, None))
        return state if asked > since_us else None

    def finish(self, hosts: Iterable[Shell], since_us: int = 0) -> TraceComparison:
        """Read the metadata log on the first readable host, record its changes, and compare its last states.

        Record the changes since `since_us`: topics of the same names may have existed before.
        """
        problems = []
        for host in hosts:
            try:
                return self._finish(host, since_us)
            except TestbedError as error:
                problems.append(f"the log could not be read on a host: …{str(error)[-_SHOWN:]}")
        return TraceComparison(None, problem="; ".join(problems) or "there is no host to read the log on")

    def _finish(self, host: Shell, since_us: int) -> TraceComparison:
        for _reading in range(_READINGS):
            history = read_history(host)
            try:
                there = existing_partitions(self._admin, self._topics)
            except KafkaError as error:
                raise MetadataLogError(f"DescribeTopics, which the log is compared with, failed: {error}") from error
            different = differences(history, there, self._topics)
            if not different:
                break
        self._recorder.add_events(each for each in log_events(history, self._topics) if each.ts_us >= since_us)
        return TraceComparison(not different, tuple(different))

    def _record(self, kind: str, tp: TopicPartition, detail: Detail) -> None:
        if self._last.get((kind, tp)) != detail:
            self._last[kind, tp] = detail
            self._recorder.event(kind, str(tp), {"topic": tp.topic, "partition": tp.partition, **detail})


def readable(testbed: Testbed) -> list[Shell]:
    """Return the hosts that have the metadata log, controllers first."""
    names = [host.name for host in (*testbed.topology.controllers, *testbed.topology.brokers)]
    return [testbed.hosts[name] for name in dict.fromkeys(names)]


def log_events(history: MetadataHistory, topics: Sequence[str]) -> list[Event]:
    """Return the log's records of these topics as events. Pure."""
    changes = [(c.offset, c.ts_us, c.tp, _logged(c)) for c in history.changes if c.tp.topic in topics]
    changes += [(r.offset, r.ts_us, r.tp, {"gone": True}) for r in history.removals if r.tp.topic in topics]
    return [
        Event(ts_us, LOG, str(tp), None, {"topic": tp.topic, "partition": tp.partition, "offset": offset, **detail})
        for offset, ts_us, tp, detail in sorted(changes, key=lambda each: (each[0], each[2]))
    ]


def differences(
    history: MetadataHistory, there: Mapping[TopicPartition, PartitionState], topics: Sequence[str]
) -> list[str]:
    """Return the differences between the log's last states and DescribeTopics; empty without a difference. Pure."""
    logged = {tp: state for tp, state in history.now.items() if tp.topic in topics}
    found = []
    for tp in sorted({*logged, *there}):
        ours, theirs = logged.get(tp), there.get(tp)
        if ours is None or theirs is None:
            found.append(f"{tp} exists only {'in the log' if theirs is None else 'for DescribeTopics'}")
            continue
        names = {"replicas": "replicas", "isr": "ISR", "leader": "leader", "leader_epoch": "leader epoch"}
        pairs = [(name, getattr(ours, field), getattr(theirs, field)) for field, name in names.items()]
        found += [f"{tp}: {name} {a} in the log, {b} described" for name, a, b in pairs if a != b]
    return found


def _fields(state: object, *names: str) -> dict[str, Any]:
    """Return these fields of a state as an event has them: lists of brokers, and numbers."""
    values = {name: getattr(state, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _logged(state: Registration) -> dict[str, Any]:
    return _fields(state, "replicas", "adding", "removing", "isr", "leader", "leader_epoch", "partition_epoch")


def _described(state: PartitionState | None) -> dict[str, Any]:
    return {"gone": True} if state is None else _fields(state, "replicas", "isr", "leader", "leader_epoch")


def _listed(running: Reassignment | None, *, gone: bool) -> dict[str, Any]:
    if running is None:
        return {"gone": True} if gone else {"adding": [], "removing": []}
    return _fields(running, "replicas", "adding", "removing")
