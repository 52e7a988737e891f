"""The monitor of running reassignments: progress, rates and stalls."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError, LogDirError, UnreachableError
from testbed.kafka.partitions import existing_partitions
from testbed.kafka.types import TopicPartition
from testbed.reassignment.lag import (
    MONOTONIC,
    BrokerDirection,
    LogSizes,
    MovingPartition,
    PollClock,
    copies,
    growth,
    lag_bytes,
    leader_sizes,
    moving,
    passed,
    read_sizes,
)
from testbed.reassignment.remaining_time import BLOCK_S, Pace, RemainingTime
from testbed.reassignment.stall import Stall, StallDetector
from testbed.throttle.configs import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LISTS,
    ListedReplicas,
    unthrottled_partitions,
)
from testbed.throttle.duration import Direction, Share, shares


@dataclass(frozen=True, slots=True)
class BrokerRate:
    """The traffic of one broker direction that its quota counts, as a mean over 11 s; and the quota in force.

    A rate that is set limits nothing, and is no quota, where the topics' lists name no replica that moves there.
    """

    broker: int
    direction: Direction
    bytes_per_s: float
    quota_bytes_per_s: int | None


@dataclass(frozen=True, slots=True)
class MonitorReading:
    """One reading of all running reassignments. ``copied_bytes`` since the first reading; rates need a second one."""

    at_s: float
    partitions: int
    partitions_done: int
    lag_bytes: int
    copied_bytes: int
    rates: tuple[BrokerRate, ...]
    remaining: RemainingTime | None
    stall: Stall | None
    too_low: tuple[Share, ...]
    """Broker directions where inbound traffic takes the whole quota: there the move never makes progress."""
    unthrottled: tuple[TopicPartition, ...]
    silent: tuple[int, ...]
    """Brokers that did not answer: the reading uses their last known log sizes, and their quotas are not known."""

    @property
    def done(self) -> bool:
        """Return whether the controller lists no reassignment any more."""
        return self.partitions == self.partitions_done

    @property
    def lowest_quota(self) -> int | None:
        """Return the lowest quota in force on broker directions with traffic; None if there is no quota."""
        return min((rate.quota_bytes_per_s for rate in self.rates if rate.quota_bytes_per_s is not None), default=None)


class Monitor:
    """A monitor of all running reassignments of a cluster. Not thread-safe."""

    def __init__(self, admin: Admin, patience_s: float, pauses: PollClock = MONOTONIC) -> None:
        self._admin = admin
        self._pauses = pauses
        self._detector = StallDetector(patience_s)
        self._pace = Pace()
        self._seen: set[TopicPartition] = set()
        self._asked: set[tuple[TopicPartition, tuple[int, ...]]] = set()
        """The reassignments of the last reading: each partition with its adding replicas."""
        self._moves: tuple[MovingPartition, ...] = ()
        self._whole: dict[TopicPartition, int] = {}
        """The last known bytes of each leader's log: the lag counts these also while a leader is missing or silent."""
        self._unknown: set[TopicPartition] = set()
        self._history: deque[tuple[LogSizes, dict[BrokerDirection, float]]] = deque()
        self._copied = 0.0
        self._limited: dict[BrokerDirection, bool] = {}
        """Whether the list of a broker direction's side names a replica that moves: its quota counts nothing else."""
        self.offline: dict[int, LogDirError] = {}
        """Broker → the error of its log directories in the last reading. What is in them counts as missing."""

    def read(self) -> MonitorReading:
        """Return one reading. Raise `UnreachableError` when no broker answers, and `KafkaError`."""
        listed = self._admin.reassignments()
        topics = sorted({tp.topic for tp in listed} | {move.tp.topic for move in self._moves})
        moves = moving(listed, existing_partitions(self._admin, topics))
        asked = {(tp, running.adding) for tp, running in listed.items()}
        if not asked <= self._asked:  # a new request: earlier readings do not apply to it
            self.restart()
        self._asked = asked
        self._seen |= set(listed)
        live = {broker.id for broker in self._admin.cluster().brokers}
        sizes, silent = self._sizes(_brokers((*moves, *self._moves)), live, topics)
        self._remember(sizes)
        self._whole |= leader_sizes(moves, sizes)
        unknown = {move.tp for move in moves if move.lacking} - self._whole.keys()
        if self._unknown - unknown:  # the lag counts them from now on: without them it was too low
            self.restart()
        self._unknown = unknown
        lag = lag_bytes(moves, sizes, self._whole)
        self._moves = moves
        at_s = self._pauses.clock()
        self._pace.add(at_s, lag)
        replicas = ListedReplicas(self._admin.topics_configs(topics, LISTS))
        self._limit(moves, replicas)
        rates, unanswered = self._rates(moves, live - set(silent))
        return MonitorReading(
            at_s,
            len(self._seen),
            len(self._seen) - len(listed),
            lag,
            round(self._copied),
            rates,
            self._pace.remaining(),
            self._detector.look(at_s, lag, done=not listed),
            self._too_low(moves, sizes, rates, replicas),
            unthrottled_partitions(listed, replicas),
            tuple(sorted({*silent, *unanswered})),
        )

    def restart(self) -> None:
        """Discard the earlier readings: the throttle was changed, or another move was started."""
        self._detector.restart()
        self._pace.restart()

    def _sizes(self, brokers: Iterable[int], live: set[int], topics: Sequence[str]) -> tuple[LogSizes, tuple[int, ...]]:
        problems: dict[int, KafkaError] = {}
        found = read_sizes(self._admin, sorted(live.intersection(brokers)), topics, self._pauses, problems)
        self.offline = {broker: error for broker, error in problems.items() if isinstance(error, LogDirError)}
        silent = tuple(sorted(set(brokers) - found.logs.keys()))
        if self._history:
            before = self._history[-1][0]
            known = [broker for broker in silent if broker in before.logs]
            logs = {**found.logs, **{broker: before.logs[broker] for broker in known}}
            found = LogSizes(logs, {**found.at_s, **{broker: before.at_s[broker] for broker in known}})
        return found, silent

    def _remember(self, sizes: LogSizes) -> None:
        """Store the log sizes; the rates over the quota window follow from them."""
        between = passed(self._moves, self._history[-1][0], sizes) if self._history else {}
        self._copied += sum(grown for (_broker, direction), grown in between.items() if direction == "receive")
        self._history.append((sizes, between))
        now_s = self._pauses.clock()
        while len(self._history) > 2 and now_s - max(self._history[1][0].at_s.values(), default=now_s) >= BLOCK_S:
            self._history.popleft()

    def _limit(self, moves: Sequence[MovingPartition], listed: ListedReplicas) -> None:
        """Note of each broker direction of these moves whether its quota counts any of them."""
        now: dict[BrokerDirection, bool] = {}
        for move in moves:
            if move.leader is not None and not now.get((move.leader, "transmit")):
                now[move.leader, "transmit"] = listed.names(LEADER_REPLICAS, move.tp, move.leader)
            for broker in move.lacking:
                if not now.get((broker, "receive")):
                    now[broker, "receive"] = listed.names(FOLLOWER_REPLICAS, move.tp, broker)
        # A broker whose last replica has arrived has a rate for some seconds more.
        self._limited |= now

    def _rates(self, moves: Sequence[MovingPartition], answering: set[int]) -> tuple[tuple[BrokerRate, ...], set[int]]:
        """Return the rates with their quotas, and the brokers that did not answer for their quota."""
        sums: dict[BrokerDirection, float] = {}
        for _sizes, between in list(self._history)[1:]:
            for way, grown in between.items():
                sums[way] = sums.get(way, 0.0) + grown
        for move in moves:
            if move.leader is not None and move.lacking:
                sums.setdefault((move.leader, "transmit"), 0.0)
            for broker in move.lacking:
                sums.setdefault((broker, "receive"), 0.0)
        last = self._history[-1][0]
        found: list[BrokerRate] = []
        unanswered: set[int] = set()
        for broker, direction in sorted(sums):
            # A broker that was silent at first has a rate since its first reading.
            began_s = next((sizes.at_s[broker] for sizes, _ in self._history if broker in sizes.at_s), None)
            spent_s = 0.0 if began_s is None else last.at_s.get(broker, began_s) - began_s
            rate = sums[broker, direction] / spent_s if spent_s > 0 else 0.0
            counts = broker in answering and self._limited.get((broker, direction), False)
            quota = None
            if counts and broker not in unanswered:
                try:
                    quota = self._quota(broker, direction)
                except UnreachableError:
                    unanswered.add(broker)
            found.append(BrokerRate(broker, direction, rate, quota))
        return tuple(found), unanswered

    def _quota(self, broker: int, direction: Direction) -> int | None:
        key = LEADER_RATE if direction == "transmit" else FOLLOWER_RATE
        quota = self._admin.broker_configs(broker, [key]).in_force(key)
        return None if quota is None else int(quota)

    def _too_low(
        self, moves: Sequence[MovingPartition], sizes: LogSizes, rates: Sequence[BrokerRate], listed: ListedReplicas
    ) -> tuple[Share, ...]:
        readings = [reading for reading, _between in self._history]
        inbound = {move.tp: growth(readings, move.leader, move.tp) for move in moves if move.leader is not None}
        left = copies(moves, sizes, inbound)
        quotas = {(rate.broker, rate.direction): rate.quota_bytes_per_s for rate in rates}
        # A quota counts only what its own side's list names.
        counted = (
            ("receive", [each for each in left if listed.names(FOLLOWER_REPLICAS, each.tp, *each.adding)]),
            ("transmit", [each for each in left if listed.names(LEADER_REPLICAS, each.tp, each.leader)]),
        )
        found = []
        for direction, named in counted:
            for share in shares(named):
                quota = quotas.get((share.broker, share.direction)) if share.direction == direction else None
                if quota is not None and share.bytes and share.inbound_bytes_per_s >= quota:
                    found.append(share)
        return tuple(found)


def _brokers(moves: Iterable[MovingPartition]) -> set[int]:
    return {broker for move in moves for broker in (*move.lacking, move.leader) if broker is not None}
