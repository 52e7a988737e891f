"""What a running move still has to copy, and what passes through each broker for it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from testbed.kafka.types import PartitionState, Reassignment, TopicPartition
from testbed.reassignment.changes import EVERY_REPLICA, FOLLOWER_REPLICAS, LEADER_REPLICAS
from testbed.reassignment.model import Copy, Direction
from testbed.reassignment.sizes import Sizes

Way = tuple[int, Direction]
"""One broker in one direction."""


@dataclass(frozen=True, slots=True)
class Moving:
    """One partition that is being reassigned. ``lacking`` are the adding replicas that are not in sync yet."""

    tp: TopicPartition
    leader: int | None
    in_sync: tuple[int, ...]
    lacking: tuple[int, ...]


def moving(
    listed: Mapping[TopicPartition, Reassignment], states: Mapping[TopicPartition, PartitionState]
) -> tuple[Moving, ...]:
    """Return what is being reassigned, in order; a partition that no longer exists is left out."""
    return tuple(
        Moving(
            tp,
            states[tp].leader,
            tuple(broker for broker in states[tp].isr if broker != states[tp].leader),
            tuple(broker for broker in running.adding if broker not in states[tp].isr),
        )
        for tp, running in sorted(listed.items())
        if tp in states
    )


def lag_bytes(moves: Iterable[Moving], sizes: Sizes) -> int:
    """Return what the adding replicas lack, summed; one that is not there yet lacks all that its leader has."""
    total = 0
    for move in moves:
        whole = _size(sizes, move.leader, move.tp)
        total += sum(max(0, whole - _size(sizes, broker, move.tp)) for broker in move.lacking)
    return total


def passed(moves: Iterable[Moving], before: Sizes, after: Sizes) -> dict[Way, float]:
    """Return the bytes between two readings that the quotas count, by broker and direction.

    ``moves`` are those of the earlier reading: a replica that has caught up since has received what it received. The
    leader's quota counts what its followers in sync fetch, too; these receive as much as the leader's log grows by.
    """
    found: dict[Way, float] = {}

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


def copies(moves: Iterable[Moving], sizes: Sizes, inbound: Mapping[TopicPartition, float]) -> tuple[Copy, ...]:
    """Return what is left as the model takes it: one copy for each replica that lacks something; ``inbound`` in B/s."""
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


def unlisted(
    listed: Mapping[TopicPartition, Reassignment], lists: Mapping[str, Mapping[str, str]]
) -> tuple[TopicPartition, ...]:
    """Return the partitions that move without a throttle: not every replica concerned is in its topic's lists.

    ``lists`` is what is set on each topic.
    """
    entries = {
        topic: (_entries(keys.get(LEADER_REPLICAS)), _entries(keys.get(FOLLOWER_REPLICAS)))
        for topic, keys in lists.items()
    }
    found = []
    for tp, running in sorted(listed.items()):
        leaders, followers = entries.get(tp.topic, (set(), set()))
        existing = [broker for broker in running.replicas if broker not in running.adding]
        if not (_has(leaders, tp, existing) and _has(followers, tp, running.adding)):
            found.append(tp)
    return tuple(found)


def unlisted_replicas(wanted: str | None, there: str | None) -> int:
    """Return how many entries of a topic's wanted list are not in the list that is there."""
    entries = _entries(there)
    return 0 if EVERY_REPLICA in entries else len(_entries(wanted) - entries)


def _entries(value: str | None) -> set[str]:
    return {entry.strip() for entry in (value or "").split(",")} - {""}


def _has(entries: set[str], tp: TopicPartition, brokers: Iterable[int]) -> bool:
    return EVERY_REPLICA in entries or {f"{tp.partition}:{broker}" for broker in brokers} <= entries


def _size(sizes: Sizes, broker: int | None, tp: TopicPartition) -> int:
    return 0 if broker is None else sizes.logs.get(broker, {}).get(tp, 0)


def _grown(before: Sizes, after: Sizes, broker: int, tp: TopicPartition) -> float:
    return max(0.0, _size(after, broker, tp) - _size(before, broker, tp))
