"""What the logs of brokers and controllers say of reassignments, in-sync replicas and stopped brokers. Pure.

The lines are those of server.log, controller.log and state-change.log, from Kafka 2.4 with ZooKeeper to 4.x with KRaft.
Several hosts log the same fact. So facts are merged by their time, not by their file.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from testbed.incidents.evidence import EvidenceText, SourceLine, broker_ids, partition_name, topic_name, whole
from testbed.incidents.log_layouts import kafka_line
from testbed.incidents.tool_output import BrokerRack
from testbed.kafka.types import TopicPartition
from testbed.probes.logwatch import JVM, LogEntry, entries

_OF_INTEREST = re.compile(
    r"[Ff]enc|RegisterBroker|BrokerRegistrationChange|Newly added brokers|ing ISR|assignment|partition change|"
    r"adding ?[Rr]eplicas|SHUTTING_DOWN|shutting down|\] started|\) for sending"
)
_SEARCHED = 500
"""Lines in which a log has an entry, if it is a log."""
_IDS = r"\[[\d, ]*\]|null"
_RECORD = re.compile(r"PartitionChangeRecord\(partitionId=(\d+), (.*)\) for topic (\S+)")
_DIFFERENCE = re.compile(r"partition change for (\S+-\d+)(?: with topic ID \S+)?: (.*)")
_ZOOKEEPER = re.compile(
    r"Successfully updated assignment of partition (\S+-\d+) to "
    r"ReplicaAssignment\(replicas=([\d,]*), addingReplicas=([\d,]*), removingReplicas=([\d,]*)\)"
)
_REQUEST = re.compile(r"LeaderAndIsrPartitionState\(topicName='([^']*)', partitionIndex=(\d+), (.*)")
_LEADER = re.compile(
    r"Leader (\S+-\d+) with topic id .*adding replicas (\[[\d, ]*\]) and removing replicas (\[[\d, ]*\])"
)
_ACCEPTED = re.compile(r"Successfully altered (\d+) out of \d+ partition reassignment\(s\)")
_ISR = re.compile(
    r"\[Partition (?P<tp>\S+-\d+) broker=\d+\] "
    r"(?P<way>Shrinking|Expanding) ISR from [\d,]* to (?P<isr>[\d,]*)"
)
_REGISTERED = re.compile(
    r"Replayed (?:initial )?RegisterBrokerRecord (?P<which>\S+)"
    r".*RegisterBrokerRecord\(brokerId=(?P<broker>\d+)(?P<rest>.*)"
)
_RACK = re.compile(r" rack='([^']*)'")
_CONNECTED = re.compile(r"connected to \S+ \(id: (\d+) rack: (.+?)\) for sending")
_SERVES, _STOPS = True, False
_BROKERS: tuple[tuple[re.Pattern[str], bool], ...] = (
    (re.compile(r"Fencing broker (\d+)(?: at epoch \d+)? because"), _STOPS),
    (re.compile(r"Fenced broker: FenceBrokerRecord\(id=(\d+)"), _STOPS),
    (re.compile(r"Unfenced broker: UnfenceBrokerRecord\(id=(\d+)"), _SERVES),
    (re.compile(r"BrokerRegistrationChangeRecord\(brokerId=(\d+), .*\bfenced=1\b"), _STOPS),
    (re.compile(r"BrokerRegistrationChangeRecord\(brokerId=(\d+), .*\bfenced=-1\b"), _SERVES),
    (re.compile(r"The request from broker (\d+) to unfence has been granted"), _SERVES),
    (re.compile(r"\[BrokerServer id=(\d+)\] Transition from STARTED to SHUTTING_DOWN"), _STOPS),
    (re.compile(r"\[KafkaServer id=(\d+)\] shutting down"), _STOPS),
    (re.compile(r"\[BrokerLifecycleManager id=(\d+)\] The broker has been unfenced"), _SERVES),
    (re.compile(r"\[KafkaServer id=(\d+)\] started"), _SERVES),
)
_MEMBERS = re.compile(
    r"Newly added brokers: ([\d,]*), deleted brokers: ([\d,]*)(?:, bounced brokers: ([\d,]*))?, "
    r"all live brokers: [\d,]*"
)


@dataclass(frozen=True, slots=True)
class LoggedAssignment:
    """A change of a partition's replicas; None is for what the line does not say."""

    at_us: int
    tp: TopicPartition
    replicas: tuple[int, ...] | None
    adding: tuple[int, ...] | None
    removing: tuple[int, ...] | None
    place: SourceLine


@dataclass(frozen=True, slots=True)
class LoggedMove:
    """A reassignment: `target` and `before` are None when no line gives all replicas. `ended_us` is None while it runs.

    `completed` is false when it was cancelled, or replaced by another one.
    """

    tp: TopicPartition
    began_us: int
    before: tuple[int, ...] | None
    target: tuple[int, ...] | None
    adding: frozenset[int]
    removing: frozenset[int]
    place: SourceLine
    ended_us: int | None = None
    completed: bool = True


@dataclass(frozen=True, slots=True)
class LoggedIsr:
    """New in-sync replicas; `shrinks` when the leader removed one."""

    at_us: int
    tp: TopicPartition
    isr: tuple[int, ...]
    shrinks: bool
    place: SourceLine


@dataclass(frozen=True, slots=True)
class LoggedServing:
    """A broker begins to serve, or stops."""

    at_us: int
    broker: int
    serves: bool
    place: SourceLine


@dataclass(frozen=True, slots=True)
class LoggedOutage:
    """The time in which a broker did not serve; None when it did not return in these logs."""

    broker: int
    stopped_us: int
    returned_us: int | None
    place: SourceLine


@dataclass(slots=True)
class LogReport:
    """What logs say, in the order of the files. `accepted` are requests: time and number of partitions."""

    assignments: list[LoggedAssignment] = field(default_factory=list)
    isrs: list[LoggedIsr] = field(default_factory=list)
    servings: list[LoggedServing] = field(default_factory=list)
    racks: list[BrokerRack] = field(default_factory=list)
    accepted: list[tuple[int, int]] = field(default_factory=list)
    _quiet: set[TopicPartition] = field(default_factory=set, repr=False)
    """Partitions that do not move, as this text said last: a state-change.log repeats it for each new leader."""

    def add(self, text: EvidenceText) -> bool:
        """Add what a text says; return whether it is a log at all."""
        is_log = False
        self._quiet.clear()
        for number, raw in enumerate(text.text.split("\n"), 1):
            wanted = _OF_INTEREST.search(raw) is not None
            if not wanted and (is_log or number > _SEARCHED):
                continue
            for entry in entries(kafka_line(raw)):
                if entry.logger in ("", JVM):
                    continue
                is_log = True
                if wanted:
                    self._add(entry, SourceLine(text.file, number))
        return is_log

    def _add(self, entry: LogEntry, place: SourceLine) -> None:
        for read in (self._assignment, self._isr, self._serving):
            try:
                read(entry, place)
            except ValueError:
                # A line that is none of Kafka's: logs also quote what clients sent.
                continue

    def _assignment(self, entry: LogEntry, place: SourceLine) -> None:
        for pattern, parse in _ASSIGNMENTS:
            if line := pattern.search(entry.message):
                tp, replicas, adding, removing = parse(line)
                if adding == removing == () and tp in self._quiet:
                    return
                (self._quiet.add if adding == removing == () else self._quiet.discard)(tp)
                self.assignments.append(LoggedAssignment(entry.ts_us, tp, replicas, adding, removing, place))
                return
        if line := _ACCEPTED.search(entry.message):
            self.accepted.append((entry.ts_us, whole(line[1])))

    def _isr(self, entry: LogEntry, place: SourceLine) -> None:
        if line := _ISR.search(entry.message):
            tp, isr = partition_name(line["tp"]), broker_ids(line["isr"])
            self.isrs.append(LoggedIsr(entry.ts_us, tp, isr, line["way"] == "Shrinking", place))

    def _serving(self, entry: LogEntry, place: SourceLine) -> None:
        for pattern, serves in _BROKERS:
            if line := pattern.search(entry.message):
                self.servings.append(LoggedServing(entry.ts_us, whole(line[1]), serves, place))
                return
        if line := _MEMBERS.search(entry.message):
            added, deleted, bounced = (broker_ids(each or "") for each in line.groups())
            stopped = [LoggedServing(entry.ts_us, each, False, place) for each in (*deleted, *bounced)]
            self.servings += [*stopped, *(LoggedServing(entry.ts_us, each, True, place) for each in (*added, *bounced))]
        elif line := _CONNECTED.search(entry.message):
            self.racks.append(BrokerRack(whole(line[1]), None if line[2] == "null" else line[2], place))
        elif line := _REGISTERED.search(entry.message):
            broker, rack = whole(line["broker"]), _RACK.search(line["rest"])
            if rack or " rack=null" in line["rest"]:
                self.racks.append(BrokerRack(broker, rack[1] if rack else None, place))
            # A broker that was killed and is back before its session ends: only its new registration says so.
            if line["which"] == "establishing" and " fenced=true" in line["rest"]:
                self.servings.append(LoggedServing(entry.ts_us, broker, False, place))

    def moves(self) -> list[LoggedMove]:
        """Return the reassignments in the order of their beginnings."""
        return logged_moves(self.assignments)

    def outages(self) -> list[LoggedOutage]:
        """Return the outages in the order of their beginnings."""
        return logged_outages(self.servings)


Assignment = tuple[TopicPartition, tuple[int, ...] | None, tuple[int, ...] | None, tuple[int, ...] | None]


def _fields(text: str, separator: str) -> Iterator[tuple[int, ...] | None]:
    """Yield replicas, adding and removing replicas of a record; None for a field that is not there, or null."""
    for name in ("replicas", "addingReplicas", "removingReplicas"):
        value = re.search(rf"(?:^|, ){name}{separator}({_IDS})", text)
        yield None if value is None or value[1] == "null" else broker_ids(value[1])


def _record(line: re.Match[str]) -> Assignment:
    replicas, adding, removing = _fields(line[2], "=")
    return TopicPartition(topic_name(line[3]), whole(line[1])), replicas, adding, removing


def _difference(line: re.Match[str]) -> Assignment:
    replicas, adding, removing = _fields(line[2], rf": (?:{_IDS}) -> ")
    return partition_name(line[1]), replicas, adding, removing


def _assigned(line: re.Match[str]) -> Assignment:
    return partition_name(line[1]), broker_ids(line[2]), broker_ids(line[3]), broker_ids(line[4])


def _requested(line: re.Match[str]) -> Assignment:
    replicas, adding, removing = _fields(line[3], "=")
    return TopicPartition(topic_name(line[1]), whole(line[2])), replicas, adding, removing


def _led(line: re.Match[str]) -> Assignment:
    return partition_name(line[1]), None, broker_ids(line[2]), broker_ids(line[3])


_ASSIGNMENTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Assignment]], ...] = (
    (_RECORD, _record),
    (_DIFFERENCE, _difference),
    (_ZOOKEEPER, _assigned),
    (_REQUEST, _requested),
    (_LEADER, _led),
)


@dataclass(slots=True)
class _Partition:
    """What is known of a partition at one time, and its running reassignment."""

    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    open: LoggedMove | None = None


def logged_moves(changes: Iterable[LoggedAssignment]) -> list[LoggedMove]:
    """Return the reassignments of the changes, in the order of their beginnings.

    A change that says the same as the one before it, from another host, is no other reassignment.
    """
    partitions: dict[TopicPartition, _Partition] = {}
    ended: list[LoggedMove] = []
    for change in sorted(changes, key=lambda each: each.at_us):
        now = partitions.setdefault(change.tp, _Partition())
        if change.replicas is None and change.adding is None and change.removing is None:
            continue
        now.adding = now.adding if change.adding is None else change.adding
        now.removing = now.removing if change.removing is None else change.removing
        # A line without all replicas is about others, once these change.
        fits = now.replicas is not None and {*now.adding, *now.removing} <= {*now.replicas}
        now.replicas = change.replicas or (now.replicas if fits else None)
        following = _move(change, now)
        if now.open is not None and following is not None and _same(now.open, following):
            known = now.open if now.open.target is not None else following
            now.open = replace(known, began_us=now.open.began_us, place=now.open.place)
            continue
        if now.open is not None:
            completed = following is None and _reached(now.open, change.replicas)
            ended.append(replace(now.open, ended_us=change.at_us, completed=completed))
        now.open = following
    running = [each.open for each in partitions.values() if each.open is not None]
    return sorted([*ended, *running], key=lambda each: (each.began_us, each.tp))


def _move(change: LoggedAssignment, now: _Partition) -> LoggedMove | None:
    """Return the reassignment that runs after a change; None when none does."""
    if not now.adding and not now.removing:
        return None
    before = target = None
    if now.replicas is not None:
        before = tuple(broker for broker in now.replicas if broker not in now.adding)
        target = tuple(broker for broker in now.replicas if broker not in now.removing)
    adding, removing = frozenset(now.adding), frozenset(now.removing)
    return LoggedMove(change.tp, change.at_us, before or None, target or None, adding, removing, change.place)


def _same(one: LoggedMove, other: LoggedMove) -> bool:
    return (one.adding, one.removing) == (other.adding, other.removing) and (
        one.target is None or other.target is None or one.target == other.target
    )


def _reached(move: LoggedMove, replicas: tuple[int, ...] | None) -> bool:
    return replicas is None or move.target is None or {*replicas} == {*move.target}


def logged_outages(servings: Iterable[LoggedServing]) -> list[LoggedOutage]:
    """Return the outages, in the order of their beginnings. Two lines about one stop are one outage."""
    stopped: dict[int, LoggedServing] = {}
    outages: list[LoggedOutage] = []
    for each in sorted(servings, key=lambda serving: serving.at_us):
        if not each.serves:
            stopped.setdefault(each.broker, each)
        elif begun := stopped.pop(each.broker, None):
            outages.append(LoggedOutage(each.broker, begun.at_us, each.at_us, begun.place))
    outages += [LoggedOutage(broker, each.at_us, None, each.place) for broker, each in stopped.items()]
    return sorted(outages, key=lambda outage: (outage.stopped_us, outage.broker))


def newest(moves: Iterable[LoggedMove]) -> Mapping[TopicPartition, LoggedMove]:
    """Return the reassignment of each partition that began last."""
    return {each.tp: each for each in sorted(moves, key=lambda move: move.began_us)}
