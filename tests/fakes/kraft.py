"""A controller's way with reassignments, in memory: what is asked for, what is listed, when it completes."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from testbed.kafka.errors import KafkaError, ReassignmentError
from testbed.kafka.types import BrokerInfo, ClusterInfo, PartitionState, Reassignment, ReplicaLog, TopicPartition
from testbed.reassignment.batching.turn import ReassignmentState
from tests.fakes.admin import FakeAdmin

Replicas = tuple[int, ...]


@dataclass
class Partition:
    """As `PartitionRegistration` has it."""

    replicas: Replicas
    isr: set[int]
    leader: int | None
    adding: Replicas = ()
    removing: Replicas = ()


@dataclass
class Controller:
    """Partitions over brokers; `tick` lets replicas come into sync, one by one at random."""

    partitions: dict[TopicPartition, Partition]
    live: set[int]
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    copied: list[tuple[TopicPartition, int]] = field(default_factory=list)
    topic_ids: dict[str, str] = field(default_factory=dict)
    min_insync: int = 1

    @classmethod
    def of(cls, assignment: Mapping[TopicPartition, Replicas], live: Iterable[int], seed: int = 1) -> "Controller":
        """Everything in sync and led by its first replica."""
        brokers = set(live)
        partitions = {}
        for tp, replicas in assignment.items():
            isr = [b for b in replicas if b in brokers]
            partitions[tp] = Partition(replicas, set(isr), isr[0] if isr else None)
        return cls(partitions, brokers, random.Random(seed))

    def alter(self, targets: Mapping[TopicPartition, Replicas]) -> None:
        """KIP-455's alter."""
        for tp, target in targets.items():
            p = self.partitions[tp]
            original = [b for b in p.replicas if b not in p.adding]
            p.adding = tuple(b for b in target if b not in original)
            p.removing = tuple(b for b in original if b not in target)
            p.replicas = (*target, *p.removing)
            if not p.adding and not p.removing:
                p.replicas = target
            self._complete(tp)

    def cancel(self, tps: Iterable[TopicPartition]) -> None:
        """Back to what was there."""
        for tp in tps:
            p = self.partitions[tp]
            p.replicas = tuple(b for b in p.replicas if b not in p.adding)
            p.isr &= set(p.replicas)
            p.adding = p.removing = ()

    def elect(self, tps: Iterable[TopicPartition]) -> None:
        """Preferred leaders, where they are in sync."""
        for tp in tps:
            p = self.partitions[tp]
            if p.replicas[0] in p.isr:
                p.leader = p.replicas[0]

    def tick(self) -> None:
        """Some of the replicas that are behind catch up."""
        for tp, p in self.partitions.items():
            behind = [b for b in p.replicas if b not in p.isr and b in self.live]
            if behind and p.leader is not None and self.rng.random() < 0.6:
                came = self.rng.choice(behind)
                p.isr.add(came)
                self.copied.append((tp, came))
                self._complete(tp)

    def seen(self) -> ReassignmentState:
        """What an Admin client would be told."""
        return ReassignmentState(
            {
                tp: Reassignment(p.replicas, p.adding, p.removing)
                for tp, p in self.partitions.items()
                if p.adding or p.removing
            },
            {
                tp: PartitionState(tp, p.leader, 0, p.replicas, tuple(sorted(p.isr)), self.topic_ids.get(tp.topic, ""))
                for tp, p in self.partitions.items()
            },
            frozenset(self.live),
            {tp.topic: self.min_insync for tp in self.partitions},
        )

    def _complete(self, tp: TopicPartition) -> None:
        p = self.partitions[tp]
        target = [b for b in p.replicas if b not in p.removing]
        if (p.adding or p.removing) and set(target) <= p.isr:
            p.replicas, p.adding, p.removing = tuple(target), (), ()
            p.isr &= set(target)
            if p.leader not in target:
                p.leader = target[0]


class KraftAdmin(FakeAdmin):
    """A `Controller` behind the Admin interface: every listing lets some time pass there."""

    def __init__(self, controller: Controller) -> None:
        super().__init__({tp: p.replicas for tp, p in controller.partitions.items()})
        self.controller = controller

    def cluster(self) -> ClusterInfo:
        self._note("cluster")
        return ClusterInfo(self.cluster_id, 1, tuple(BrokerInfo(b, None) for b in sorted(self.controller.live)))

    def partitions(self, topics: Sequence[str]) -> dict[TopicPartition, PartitionState]:
        self._note("partitions", tuple(topics))
        if {*topics} - {tp.topic for tp in self.controller.partitions}:
            raise KafkaError("describe topics", "UNKNOWN_TOPIC_OR_PARTITION")
        return {tp: state for tp, state in self.controller.seen().states.items() if tp.topic in topics}

    def reassignments(self, topics: Sequence[str] | None = None) -> dict[TopicPartition, Reassignment]:
        self._note("reassignments", topics)
        self.controller.tick()
        listed = self.controller.seen().listed
        return {tp: found for tp, found in listed.items() if topics is None or tp.topic in topics}

    def alter_reassignments(self, targets: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        self._note("alter_reassignments", dict(targets))
        self.controller.cancel([tp for tp, target in targets.items() if target is None])
        wanted = {tp: tuple(target) for tp, target in targets.items() if target is not None}
        errors = {tp: name for tp, name in self.refused.items() if tp in wanted}
        errors |= {tp: "UNKNOWN_TOPIC_OR_PARTITION" for tp in wanted if tp not in self.controller.partitions}
        self.controller.alter({tp: target for tp, target in wanted.items() if tp not in errors})
        if errors:
            raise ReassignmentError("alter reassignments", errors, len(targets))

    def topics(self) -> tuple[str, ...]:
        return tuple(sorted({tp.topic for tp in self.controller.partitions}))

    def elect_preferred(self, tps: Sequence[TopicPartition]) -> None:
        self._note("elect_preferred", tuple(tps))
        self.controller.elect(tps)

    def topic_setting(self, _topic: str, _key: str) -> str:
        return str(self.controller.min_insync)

    def log_dirs(
        self, brokers: Sequence[int], topics: Sequence[str] | None = None
    ) -> dict[int, dict[TopicPartition, ReplicaLog]]:
        self._note("log_dirs", tuple(brokers))
        return {
            broker: {
                tp: ReplicaLog(1, False)
                for tp, p in self.controller.partitions.items()
                if broker in p.replicas and (topics is None or tp.topic in topics)
            }
            for broker in brokers
        }
