"""KRaft's controller with its log, in memory: what it answers, and every record that it writes of a partition.

Rules: `ReplicationControlManager`, `PartitionReassignmentReplicas`, `PartitionReassignmentRevert` and
`PartitionChangeBuilder` of Apache Kafka 4.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from testbed.kafka.errors import KafkaError, ReassignmentError
from testbed.kafka.types import (
    BrokerInfo,
    ClusterInfo,
    ConfigResource,
    PartitionState,
    Reassignment,
    ReplicaLog,
    TopicPartition,
)
from testbed.reassignment.metadata_log import MetadataHistory, Registration, Removal
from testbed.throttle.configs import EVERY_BROKER, FOLLOWER_RATE
from tests.fakes.admin import FakeAdmin

Replicas = tuple[int, ...]
HELD_BELOW = 1_000_000
"""B/s: a throttle below it lets nothing come into sync."""


class KraftLog(FakeAdmin):
    """Everything behind the Admin interface; each listing lets one replica of each partition come into sync."""

    def __init__(self, brokers: Sequence[int]) -> None:
        super().__init__({}, tuple(brokers))
        self.registered, self.live = set(brokers), set(brokers)
        self.now: dict[TopicPartition, Registration] = {}
        self.changes: list[Registration] = []
        self.removals: list[Removal] = []
        self._offset = 0

    def history(self) -> MetadataHistory:
        """The log, replayed."""
        return MetadataHistory(tuple(self.changes), dict(self.now), tuple(self.removals))

    # ---- the controller

    def _write(self, state: Registration) -> None:
        self._offset += 1
        written = replace(state, offset=self._offset, ts_us=time.time_ns() // 1_000_000 * 1000)
        self.now[state.tp] = written
        self.changes.append(written)

    def make(self, topic: str, assignment: Mapping[int, Sequence[int]]) -> None:
        for partition, given in assignment.items():
            tp, replicas = TopicPartition(topic, partition), tuple(given)
            self._write(Registration(0, 0, tp, replicas, (), (), replicas, replicas[0], 0, 0))
            self.assignment[tp] = replicas

    def _change(self, before: Registration, *, preferred: bool = False, **given: Replicas) -> None:
        after = replace(before, **given)
        target = tuple(b for b in after.replicas if b not in after.removing)
        isr = tuple(b for b in after.isr if b not in after.removing)
        if (after.adding or after.removing) and isr and {*target, *after.adding} <= set(after.isr):
            after = replace(after, replicas=target, isr=isr, adding=(), removing=())
        leader = self._leader(after, preferred)
        shrunk = not set(before.replicas) <= set(after.replicas)
        if (*_parts(after), leader) == (*_parts(before), before.leader) and not shrunk:
            return
        epoch = before.leader_epoch + (leader != before.leader or shrunk)
        self._write(replace(after, leader=leader, leader_epoch=epoch, partition_epoch=before.partition_epoch + 1))

    def _leader(self, state: Registration, preferred: bool) -> int | None:
        able = [b for b in state.replicas if b in state.isr and b in self.live]
        if preferred and state.replicas[0] in able:
            return state.replicas[0]
        return state.leader if state.leader in able else next(iter(able), None)

    def _alter(self, tp: TopicPartition, target: Sequence[int] | None) -> str | None:
        p = self.now.get(tp)
        if p is None:
            return "UNKNOWN_TOPIC_OR_PARTITION"
        if target is None:
            if not p.adding and not p.removing:
                return "NO_REASSIGNMENT_IN_PROGRESS"
            replicas, isr = (tuple(b for b in part if b not in p.adding) for part in (p.replicas, p.isr))
            self._change(p, replicas=replicas, isr=isr, adding=(), removing=())
            return None
        if not target or len(set(target)) < len(target) or not set(target) <= self.registered:
            return "INVALID_REPLICA_ASSIGNMENT"
        removing = tuple(sorted(set(p.replicas) - set(target)))
        adding = tuple(sorted(set(target) - set(p.replicas)))
        # What is empty is not set: then what was adding (removing) before remains.
        given = {name: value for name, value in (("adding", adding), ("removing", removing)) if value}
        self._change(p, replicas=(*target, *removing), **given)
        return None

    def kill(self, broker: int) -> None:
        self.live.discard(broker)
        for p in list(self.now.values()):
            if broker in p.isr and len(p.isr) > 1:
                self._change(p, isr=tuple(b for b in p.isr if b != broker))

    def tick(self) -> None:
        rate = int(self.configs.get(EVERY_BROKER, {}).get(FOLLOWER_RATE, HELD_BELOW))
        for p in list(self.now.values()):
            behind = [b for b in p.replicas if b not in p.isr and b in self.live]
            if behind and p.leader is not None and rate >= HELD_BELOW:
                self._change(p, isr=(*p.isr, behind[0]))

    # ---- as an Admin client

    def cluster(self) -> ClusterInfo:
        return ClusterInfo("fake", 1, tuple(BrokerInfo(b, None) for b in sorted(self.live)))

    def create_topic(self, name: str, assignment: Mapping[int, Sequence[int]]) -> None:
        self.make(name, assignment)

    def add_partitions(self, name: str, replicas: Sequence[Sequence[int]]) -> None:
        there = self.partitions([name])
        if {len(each) for each in replicas} != {len(there[TopicPartition(name, 0)].replicas)}:
            raise KafkaError("add partitions", "INVALID_REPLICA_ASSIGNMENT")
        self.make(name, dict(enumerate(replicas, len(there))))

    def delete_topic(self, name: str) -> None:
        for tp in [tp for tp in self.now if tp.topic == name]:
            del self.now[tp], self.assignment[tp]
            self._offset += 1
            self.configs.pop(ConfigResource.topic(name), None)
            self.removals.append(Removal(self._offset, time.time_ns() // 1_000_000 * 1000, tp))

    def partitions(self, topics: Sequence[str]) -> dict[TopicPartition, PartitionState]:
        if {*topics} - {tp.topic for tp in self.now}:
            raise KafkaError("describe topics", "UNKNOWN_TOPIC_OR_PARTITION")
        return {
            tp: PartitionState(tp, p.leader, p.leader_epoch, p.replicas, p.isr)
            for tp, p in list(self.now.items())  # a recorder's thread asks meanwhile
            if tp.topic in topics
        }

    def log_dirs(
        self, brokers: Sequence[int], topics: Sequence[str] | None = None
    ) -> dict[int, dict[TopicPartition, ReplicaLog]]:
        return {
            broker: {tp: ReplicaLog(self.size_of(broker, tp), False) for tp in self._logs(broker)} for broker in brokers
        }

    def _logs(self, broker: int) -> list[TopicPartition]:
        return [tp for tp, p in list(self.now.items()) if broker in p.replicas or broker in self.stale_logs.get(tp, ())]

    def reassignments(self, topics: Sequence[str] | None = None) -> dict[TopicPartition, Reassignment]:
        self.tick()
        return {
            tp: Reassignment(p.replicas, p.adding, p.removing)
            for tp, p in list(self.now.items())
            if (p.adding or p.removing) and (topics is None or tp.topic in topics)
        }

    def alter_reassignments(self, targets: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        errors = {tp: error for tp, target in targets.items() if (error := self._alter(tp, target)) is not None}
        if errors:
            raise ReassignmentError("alter reassignments", errors, len(targets))

    def elect_preferred(self, tps: Sequence[TopicPartition]) -> None:
        for tp in tps:
            self._change(self.now[tp], preferred=True)


def _parts(state: Registration) -> tuple[Any, ...]:
    return state.replicas, state.adding, state.removing, state.isr
