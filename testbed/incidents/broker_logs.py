"""Facts in the logs of brokers and controllers: reassignments, in-sync replicas and stopped brokers. Pure.

The lines are those of server.log, controller.log and state-change.log, from Kafka 2.4 with ZooKeeper to 4.x with KRaft.
Several hosts log the same fact. So facts are merged by their time, not by their file.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from testbed.incidents.captured_release import logged_release
from testbed.incidents.evidence_text import EvidenceText, SourceLine, broker_ids, partition_name, topic_name, whole
from testbed.incidents.log_layouts import kafka_line
from testbed.kafka.types import TopicPartition
from testbed.probes.log_entries import JVM, LogEntry, entries

_OF_INTEREST = re.compile(
    r"[Ff]enc|RegisterBroker|BrokerRegistrationChange|Newly added brokers|ing ISR|assignment|partition change|"
    r"adding ?[Rr]eplicas|SHUTTING_DOWN|shutting down|\] started|\) for sending|Kafka version: "
)
_SEARCHED = 500
"""Lines in which a log has an entry, if it is a log."""
_IDS = r"\[[\d, ]*\]|null"
_ASSIGNMENTS = (
    re.compile(r"PartitionChangeRecord\(partitionId=(?P<partition>\d+), (?P<fields>.*)\) for topic (?P<topic>\S+)"),
    re.compile(r"partition change for (?P<tp>\S+-\d+)(?: with topic ID \S+)?: (?P<fields>.*)"),
    re.compile(
        r"Successfully updated assignment of partition (?P<tp>\S+-\d+) to ReplicaAssignment\("
        r"replicas=(?P<replicas>[\d,]*), addingReplicas=(?P<adding>[\d,]*), removingReplicas=(?P<removing>[\d,]*)\)"
    ),
    re.compile(
        r"LeaderAndIsrPartitionState\(topicName='(?P<topic>[^']*)', partitionIndex=(?P<partition>\d+), (?P<fields>.*)"
    ),
    re.compile(
        r"state change for (?P<tp>\S+-\d+) with topic id \S+, partition registration "
        r"PartitionRegistration\((?P<fields>.*)"
    ),
    re.compile(
        r"Leader (?P<tp>\S+-\d+) with topic id "
        r".*adding replicas (?P<adding>\[[\d, ]*\]) and removing replicas (?P<removing>\[[\d, ]*\])"
    ),
)
"""Lines about a partition's replicas: controllers, then controllers with ZooKeeper, then brokers."""
_FIELDS = {
    key: re.compile(rf"(?:^|, ){name}(?:=|: (?:{_IDS}) -> )({_IDS})")
    for key, name in (("replicas", "replicas"), ("adding", "addingReplicas"), ("removing", "removingReplicas"))
}
_ACCEPTED = re.compile(r"Successfully altered \d+ out of \d+ partition reassignment\(s\)")
_ISR = re.compile(r"\[Partition (?P<tp>\S+-\d+) broker=\d+\] (?P<way>Shrinking|Expanding) ISR from [\d,]* to ")
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

    `completed` is false when it was cancelled, or replaced by another one; `cancelled` says which of both.
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
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class LoggedIsr:
    """A change of in-sync replicas; `shrinks` when the leader removed one."""

    at_us: int
    tp: TopicPartition
    shrinks: bool


@dataclass(frozen=True, slots=True)
class LoggedServing:
    """A broker begins to serve, or stops."""

    at_us: int
    broker: int
    serves: bool


@dataclass(frozen=True, slots=True)
class LoggedOutage:
    """The time in which a broker did not serve; `returned_us` is None when it did not return in these logs."""

    broker: int
    stopped_us: int
    returned_us: int | None


@dataclass(slots=True)
class LogReport:
    """What logs say, in the order of the files. `accepted` counts requests to move partitions."""

    assignments: list[LoggedAssignment] = field(default_factory=list)
    isrs: list[LoggedIsr] = field(default_factory=list)
    servings: list[LoggedServing] = field(default_factory=list)
    racks: dict[int, str | None] = field(default_factory=dict)
    """Broker → the rack of its last line; None: it has none."""
    releases: set[str] = field(default_factory=set)
    """What brokers and controllers logged at their starts, such as `4.1.1`."""
    accepted: int = 0
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
        for pattern in _ASSIGNMENTS:
            if line := pattern.search(entry.message):
                each = _assignment(line, entry.ts_us, place)
                still = each.adding == each.removing == ()
                if not still or each.tp not in self._quiet:
                    self.assignments.append(each)
                (self._quiet.add if still else self._quiet.discard)(each.tp)
                return
        if release := logged_release(entry.message):
            self.releases.add(release)
        self.accepted += _ACCEPTED.search(entry.message) is not None

    def _isr(self, entry: LogEntry, _place: SourceLine) -> None:
        if line := _ISR.search(entry.message):
            self.isrs.append(LoggedIsr(entry.ts_us, partition_name(line["tp"]), line["way"] == "Shrinking"))

    def _serving(self, entry: LogEntry, _place: SourceLine) -> None:
        for pattern, serves in _BROKERS:
            if line := pattern.search(entry.message):
                self.servings.append(LoggedServing(entry.ts_us, whole(line[1]), serves))
                return
        if line := _MEMBERS.search(entry.message):
            added, deleted, bounced = (broker_ids(each or "") for each in line.groups())
            self.servings += [LoggedServing(entry.ts_us, each, False) for each in (*deleted, *bounced)]
            self.servings += [LoggedServing(entry.ts_us, each, True) for each in (*added, *bounced)]
        elif line := _CONNECTED.search(entry.message):
            self.racks[whole(line[1])] = None if line[2] == "null" else line[2]
        elif line := _REGISTERED.search(entry.message):
            broker, rack = whole(line["broker"]), _RACK.search(line["rest"])
            if rack or " rack=null" in line["rest"]:
                self.racks[broker] = rack[1] if rack else None
            # A broker that was killed and is back before its session ends: only its new registration says so.
            if line["which"] == "establishing" and " fenced=true" in line["rest"]:
                self.servings.append(LoggedServing(entry.ts_us, broker, False))

    def moves(self) -> list[LoggedMove]:
        """Return the reassignments in the order of their beginnings.

        A change that says the same as the one before it, from another host, is no other reassignment. Neither is one
        that a controller with KRaft logs once more when it starts and reads its metadata log.
        """
        partitions: dict[TopicPartition, _Partition] = {}
        for change in sorted(self.assignments, key=lambda each: each.at_us):
            now = partitions.setdefault(change.tp, _Partition())
            if change.replicas is None and change.adding is None and change.removing is None:
                continue
            after = now.changed(change)
            following = _move(change, after)
            before = now.replicas if now.open is None else now.open.before
            if now.repeating or _repeated(following, before, now.ended):
                now.repeating = following is not None
                continue
            now.replicas, now.adding, now.removing = after.replicas, after.adding, after.removing
            if now.open is not None and following is not None and _same(now.open, following):
                fuller = now.open if now.open.target is not None else following
                now.open = replace(fuller, began_us=now.open.began_us, place=now.open.place)
                continue
            if now.open is not None:
                completed = following is None and _reached(now.open, change.replicas)
                cancelled = following is None and not completed
                now.ended.append(replace(now.open, ended_us=change.at_us, completed=completed, cancelled=cancelled))
            now.open = following
        found = [move for each in partitions.values() for move in (*each.ended, each.open) if move is not None]
        return sorted(found, key=lambda each: (each.began_us, each.tp))

    def outages(self) -> list[LoggedOutage]:
        """Return the outages in the order of their beginnings. Two lines about one stop are one outage."""
        stopped: dict[int, LoggedServing] = {}
        outages: list[LoggedOutage] = []
        for each in sorted(self.servings, key=lambda serving: serving.at_us):
            if not each.serves:
                stopped.setdefault(each.broker, each)
            elif begun := stopped.pop(each.broker, None):
                outages.append(LoggedOutage(each.broker, begun.at_us, each.at_us))
        outages += [LoggedOutage(broker, each.at_us, None) for broker, each in stopped.items()]
        return sorted(outages, key=lambda outage: (outage.stopped_us, outage.broker))


def _assignment(line: re.Match[str], at_us: int, place: SourceLine) -> LoggedAssignment:
    """Return the assignment of a line. A field that is not there, or null, is None. Raise ValueError."""
    given = line.groupdict()
    if "tp" in given:
        tp = partition_name(given["tp"])
    else:
        tp = TopicPartition(topic_name(given["topic"]), whole(given["partition"]))
    for key, pattern in _FIELDS.items():
        if value := pattern.search(given.get("fields", "")):
            given[key] = value[1]
    ids = (given.get(key, "null") for key in _FIELDS)
    replicas, adding, removing = (None if text == "null" else broker_ids(text) for text in ids)
    return LoggedAssignment(at_us, tp, replicas, adding, removing, place)


@dataclass(slots=True)
class _Partition:
    """What is known of a partition at one time, its running reassignment, and its ended ones.

    `repeating` while a controller logs an ended one once more.
    """

    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    open: LoggedMove | None = None
    ended: list[LoggedMove] = field(default_factory=list)
    repeating: bool = False

    def changed(self, change: LoggedAssignment) -> "_Partition":
        adding = self.adding if change.adding is None else change.adding
        removing = self.removing if change.removing is None else change.removing
        # A line without all replicas is about others, once these change.
        fits = self.replicas is not None and {*adding, *removing} <= {*self.replicas}
        return _Partition(change.replicas or (self.replicas if fits else None), adding, removing)


def _repeated(move: LoggedMove | None, before: tuple[int, ...] | None, ended: Iterable[LoggedMove]) -> bool:
    """Return whether a move is logged once more: it begins from other replicas than `before`, and has ended already.

    A move that is made again begins from these, as another one led back to them.
    """
    if move is None or move.before is None or before is None or {*move.before} == {*before}:
        return False
    return any((each.before, each.target) == (move.before, move.target) for each in ended)


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
