"""The bytes that a running move still has to copy, and the bytes that pass through each broker for it.

The Admin API has no broker metrics. But a leader's log grows by exactly the bytes that producers write to its
partition. So a rate follows from several readings of the log sizes (DescribeLogDirs), some seconds apart.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError, LogDirError, UnreachableError
from testbed.kafka.types import PartitionState, Reassignment, TopicPartition
from testbed.throttle.duration import Copy, Direction


class LagReading(NamedTuple):
    """The lag at one time (seconds of a monotonic clock): what all adding replicas lack, in bytes or in records.

    A replica that does not exist yet lacks everything, so the lag does not begin at zero.
    """

    at_s: float
    lag: float


class LogSizes(NamedTuple):
    """The log sizes of some brokers: bytes of each replica, and when each broker reported them (monotonic seconds)."""

    logs: Mapping[int, Mapping[TopicPartition, int]]
    at_s: Mapping[int, float]

    @property
    def largest(self) -> dict[TopicPartition, int]:
        """Return the bytes of each partition's largest replica."""
        found: dict[TopicPartition, int] = {}
        for sizes in self.logs.values():
            for tp, size in sizes.items():
                found[tp] = max(size, found.get(tp, 0))
        return found


@dataclass(frozen=True, slots=True)
class PollClock:
    """The clock and the sleep of a monitor; tests pass another one."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


MONOTONIC = PollClock()


def read_sizes(
    admin: Admin,
    brokers: Iterable[int],
    topics: Sequence[str] | None = None,
    pauses: PollClock = MONOTONIC,
    problems: dict[int, KafkaError] | None = None,
) -> LogSizes:
    """Return the log sizes of each broker, of these topics or of all (None). Raise `KafkaError`.

    With `problems`, a broker that does not answer is left out and not asked again, and a log dir with an error is left
    out. Its error is noted there.
    """
    logs: dict[int, dict[TopicPartition, int]] = {}
    at_s: dict[int, float] = {}
    for broker in brokers:
        if problems and isinstance(problems.get(broker), UnreachableError):
            continue
        begun_s = pauses.clock()
        try:
            found = admin.log_dirs([broker], topics)[broker]
        except (LogDirError, UnreachableError) as error:
            if problems is None:
                raise
            problems[broker] = error
            if not isinstance(error, LogDirError):
                continue
            found = error.found[broker]
        logs[broker] = {tp: log.size_bytes for tp, log in found.items() if not log.is_future}
        at_s[broker] = (begun_s + pauses.clock()) / 2
    return LogSizes(logs, at_s)


def growth(readings: Sequence[LogSizes], broker: int, tp: TopicPartition) -> float:
    """Return the growth of one replica's log in B/s.

    An interval in which the log shrank, because old segments were deleted, does not count. Without other intervals the
    rate is 0.
    """
    grown, spent_s = 0.0, 0.0
    for before, after in itertools.pairwise(readings):
        if tp not in before.logs.get(broker, {}) or tp not in after.logs.get(broker, {}):
            continue
        change = after.logs[broker][tp] - before.logs[broker][tp]
        if change >= 0:
            grown += change
            spent_s += after.at_s[broker] - before.at_s[broker]
    return grown / spent_s if spent_s > 0 else 0.0


def measure(
    admin: Admin,
    brokers: Sequence[int],
    seconds: float,
    readings: int = 5,
    topics: Sequence[str] | None = None,
    pauses: PollClock = MONOTONIC,
    problems: dict[int, KafkaError] | None = None,
) -> tuple[LogSizes, ...]:
    """Return ``readings`` readings of the log sizes, spread evenly over ``seconds``; see `read_sizes`."""
    begun_s = pauses.clock()
    found = [read_sizes(admin, brokers, topics, pauses, problems)]
    for number in range(1, readings):
        pauses.sleep(max(0.0, begun_s + seconds * number / (readings - 1) - pauses.clock()))
        found.append(read_sizes(admin, brokers, topics, pauses, problems))
    return tuple(found)


BrokerDirection = tuple[int, Direction]
"""One broker in one direction."""


@dataclass(frozen=True, slots=True)
class MovingPartition:
    """One partition in reassignment. ``lacking`` are the adding replicas that are not in sync yet."""

    tp: TopicPartition
    leader: int | None
    in_sync: tuple[int, ...]
    lacking: tuple[int, ...]


def moving(
    listed: Mapping[TopicPartition, Reassignment], states: Mapping[TopicPartition, PartitionState]
) -> tuple[MovingPartition, ...]:
    """Return the partitions in reassignment, in order, except partitions that no longer exist."""
    return tuple(
        MovingPartition(
            tp,
            states[tp].leader,
            tuple(broker for broker in states[tp].isr if broker != states[tp].leader),
            tuple(broker for broker in running.adding if broker not in states[tp].isr),
        )
        for tp, running in sorted(listed.items())
        if tp in states
    )


def leader_sizes(moves: Iterable[MovingPartition], sizes: LogSizes) -> dict[TopicPartition, int]:
    """Return the bytes of each leader's log, of the partitions whose leader has reported it."""
    logs = {move.tp: sizes.logs.get(move.leader, {}) for move in moves if move.leader is not None}
    return {tp: log[tp] for tp, log in logs.items() if tp in log}


def lag_bytes(moves: Iterable[MovingPartition], sizes: LogSizes, whole: Mapping[TopicPartition, int]) -> int:
    """Return the bytes that all adding replicas lack; one that does not exist yet lacks its leader's whole log.

    `whole` has the bytes of the leaders' logs as they are known.
    """
    total = 0
    for move in moves:
        total += sum(max(0, whole.get(move.tp, 0) - _size(sizes, broker, move.tp)) for broker in move.lacking)
    return total


def passed(moves: Iterable[MovingPartition], before: LogSizes, after: LogSizes) -> dict[BrokerDirection, float]:
    """Return the bytes that the quotas count between two readings, by broker direction.

    ``moves`` are the moves of the earlier reading, so the bytes of a replica that has caught up since count too. The
    leader's quota also counts in-sync replication traffic: each follower fetches as much as the leader's log grows by.
    """
    found: dict[BrokerDirection, float] = {}

    def add(broker: int, direction: Direction, grown: float) -> None:
        found[broker, direction] = found.get((broker, direction), 0.0) + grown

    for move in moves:
        if move.leader is not None:
            written = _grown(before, after, move.leader, move.tp)
            add(move.leader, "transmit", written * len(move.in_sync))
        for broker in move.lacking:
            copied = _grown(before, after, broker, move.tp)
            add(broker, "receive", copied)
            if move.leader is not None:
                add(move.leader, "transmit", copied)
    return found


def copies(
    moves: Iterable[MovingPartition], sizes: LogSizes, inbound: Mapping[TopicPartition, float]
) -> tuple[Copy, ...]:
    """Return the remaining copies for the model: one for each lacking replica; ``inbound`` in B/s."""
    found = []
    for move in moves:
        if move.leader is None:
            continue
        whole = _size(sizes, move.leader, move.tp)
        in_sync = move.in_sync
        for broker in move.lacking:
            left = max(0, whole - _size(sizes, broker, move.tp))
            found.append(Copy(move.tp, move.leader, in_sync, (broker,), left, inbound.get(move.tp, 0.0)))
            in_sync = ()  # counted once
    return tuple(found)


def _size(sizes: LogSizes, broker: int | None, tp: TopicPartition) -> int:
    return 0 if broker is None else sizes.logs.get(broker, {}).get(tp, 0)


def _grown(before: LogSizes, after: LogSizes, broker: int, tp: TopicPartition) -> float:
    if broker not in before.logs:  # it was silent: what its log had then is not known
        return 0.0
    return max(0.0, _size(after, broker, tp) - _size(before, broker, tp))
