"""Polls of a cluster during a replay: in-sync replicas, moves, quotas, uplinks."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from results.contract.schema import Sample
from results.criteria.quantities import DRIVER
from testbed.hosts.host import Shell
from testbed.incidents.triggers import Observations
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import PartitionMove, PartitionState, Reassignment, TopicPartition
from testbed.probes.brokers import quota_samples
from testbed.probes.recorder import Recorder, now_us
from testbed.reassignment.progress import left_behind, not_placed

POLL_S = 0.25


@dataclass(frozen=True, slots=True)
class RequestedMove:
    """A requested move: its partitions, and their sizes at the request."""

    moves: tuple[PartitionMove, ...]
    bytes: Mapping[TopicPartition, float] = field(default_factory=dict)


def moved_share(
    move: RequestedMove,
    states: Mapping[TopicPartition, PartitionState],
    size: Callable[[int, TopicPartition], float | None],
) -> float:
    """Return the share of a move's bytes that has arrived, 0 to 1; `size` returns the bytes of a replica. Pure.

    A partition at its target has arrived. An empty partition counts as one byte.
    """
    total = arrived = 0.0
    for one in move.moves:
        each = max(1.0, move.bytes.get(one.tp, 0.0))
        state = states.get(one.tp)
        for broker in one.adding or one.target[:1]:
            total += each
            if state is not None and (state.replicas == one.target or broker in state.isr):
                arrived += each
            else:
                arrived += min(each, size(broker, one.tp) or 0.0)
    return arrived / total if total else 1.0


def observations(
    states: Mapping[TopicPartition, PartitionState],
    listed: Mapping[TopicPartition, Reassignment],
    requested: Mapping[str, RequestedMove],
    size: Callable[[int, TopicPartition], float | None],
    done: Collection[str] = (),
) -> Observations:
    """Return the signals that a timeline's conditions compare; `done` are the topics of completed moves. Pure."""
    topics = sorted({tp.topic for tp in states})
    of = {topic: [state for tp, state in states.items() if tp.topic == topic] for topic in topics}
    return Observations(
        isr={topic: min(len(s.isr) for s in found) for topic, found in of.items()},
        # An adding replica does not count as missing.
        under_replicated={t: sum(_missing(s, listed) > 0 for s in found) for t, found in of.items()},
        leaderless={topic: sum(s.leader is None for s in found) for topic, found in of.items()},
        in_flight={topic: sum(tp.topic == topic for tp in listed) for topic in topics},
        moved={topic: moved_share(each, states, size) for topic, each in requested.items()},
        done=frozenset(done),
    )


def _missing(state: PartitionState, listed: Mapping[TopicPartition, Reassignment]) -> int:
    running = listed.get(state.tp)
    adding = set(running.adding) if running else set()
    return len(set(state.replicas) - adding - set(state.isr))


def as_samples(ts_us: int, seen: Observations) -> Iterable[Sample]:
    """Return the observations as samples."""
    for metric, by_topic in (
        ("topic.isr", seen.isr),
        ("topic.under_replicated", seen.under_replicated),
        ("topic.leaderless", seen.leaderless),
        ("move.in_flight", seen.in_flight),
        ("move.moved", seen.moved),
    ):
        for topic, value in by_topic.items():
            yield Sample(ts_us, DRIVER, metric, float(value), topic)


class ClusterPoll:
    """The newest observations of the cluster. The newer of two moves of a topic replaces the older."""

    def __init__(self, admin: Admin, topics: Sequence[str], hosts: Mapping[int, str], recorder: Recorder) -> None:
        self._admin, self._topics, self._hosts, self._recorder = admin, list(topics), hosts, recorder
        self._lock = threading.Lock()
        self._requested: dict[str, RequestedMove] = {}
        self._done: set[str] = set()
        self._newest = Observations()

    def newest(self) -> Observations:
        """Return the newest observations."""
        with self._lock:
            return self._newest

    def moving(self) -> bool:
        """Return whether a requested move is not done at the last poll."""
        with self._lock:
            return bool(self._requested.keys() - self._done)

    def follow(self, moves: Mapping[str, tuple[PartitionMove, ...]]) -> None:
        """Follow these moves, by topic, from now on. Call this immediately before the request."""
        sized = {
            topic: RequestedMove(each, {move.tp: self.size(move.current[0], move.tp) or 0.0 for move in each})
            for topic, each in moves.items()
        }
        with self._lock:
            self._requested |= sized
            self._done -= sized.keys()
            self._newest = Observations()  # the last poll is older than the move: a trigger on its end must not use it

    def forget(self, topics: Collection[str] | None = None) -> None:
        """Follow the moves of these topics no more, or (None) no move: it was cancelled, or refused."""
        with self._lock:
            for topic in list(self._requested) if topics is None else topics:
                self._requested.pop(topic, None)

    def requested(self) -> dict[str, tuple[PartitionMove, ...]]:
        """Return the followed moves by topic."""
        with self._lock:
            return {topic: each.moves for topic, each in self._requested.items()}

    def size(self, broker: int, tp: TopicPartition) -> float | None:
        """Return the bytes of a replica's log, from the last sample of its host's probe."""
        host = self._hosts.get(broker)
        return None if host is None else self._recorder.latest(host, "log.bytes", tp.topic, tp.partition)

    def poll(self) -> Iterable[Sample]:
        """Poll once and return the samples, for `Recorder.poll`. Raise `KafkaError` when no broker answers."""
        with self._lock:
            requested = dict(self._requested)
            known = set(self._done)
        listed = self._admin.reassignments(self._topics)
        states = self._admin.partitions(self._topics)
        placed = {t: each.moves for t, each in requested.items() if not not_placed(each.moves, listed, states)}
        # The request that checks whether old logs are gone is expensive: it comes last, once for each topic.
        done = {t for t, moves in placed.items() if t in known or not left_behind(self._admin, moves)}
        seen = observations(states, listed, requested, self.size, done)
        ts_us = now_us()
        with self._lock:
            if requested != self._requested:
                return ()  # a move was requested during this poll: the poll describes the time before
            self._newest = seen
            new = sorted(seen.done - self._done)
            self._done |= seen.done
        for topic in new:
            self._recorder.event("move.done", topic)
        return list(as_samples(ts_us, seen))


def quota_poll(admin: Admin, host: str, broker: int) -> Iterable[Sample]:
    """Return the quota in force on a broker; no samples while the broker does not answer."""
    try:
        return quota_samples(admin, host, broker)
    except KafkaError:
        return ()


def uplink_poll(fabric: Shell, rack: str, sends: str, receives: str) -> Iterable[Sample]:
    """Return the bytes on a rack's uplink, by the devices that send out of the rack and into it."""
    devices = {"tx": sends, "rx": receives}
    ts_us = now_us()
    files = [f"/sys/class/net/{device}/statistics/tx_bytes" for device in devices.values()]
    values = fabric.run(["cat", *files], timeout_s=5.0).stdout.split()
    return [
        Sample(ts_us, rack, f"uplink.{way}.bytes", float(value), label=device)
        for (way, device), value in zip(devices.items(), values, strict=True)
    ]
