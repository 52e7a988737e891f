"""A second operator in the middle of a move: reassignments are cancelled, or given another target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from testbed.errors import TestbedError
from testbed.faults.fault import Fault, parameter
from testbed.faults.parameters import joined, known_brokers, names, whole_number
from testbed.faults.quotas import second_client
from testbed.kafka.cancellation import cancel_running
from testbed.kafka.types import Reassignment, TopicPartition
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology

CANCELLED = ("nowhere",)


def _target(found: Reassignment) -> list[int]:
    return sorted(found.target)


@dataclass(frozen=True)
class ReassignmentAlter(Fault):
    """A second Admin client cancels running reassignments, or requests other replicas for their partitions."""

    kind: ClassVar[str] = "reassignment-alter"
    summary: ClassVar[str] = "a second admin client cancels running reassignments, or changes their target"
    asks_brokers: ClassVar[bool] = True

    partitions: int = parameter(
        "how many of the running reassignments, the first by name", whole_number(1, 1000), default=1
    )
    to: tuple[str, ...] = parameter(
        "brokers, the new replicas, such as b1,b2; nowhere cancels", names, joined, default=CANCELLED
    )
    chosen: Mapping[str, Sequence[int]] = field(default_factory=dict, hash=False, metadata={"noted": True})
    """`topic/partition` → the replicas that the fault requests; empty: cancelled."""

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        if self.to != CANCELLED:
            known_brokers(topology, self.to)

    def prepare(self, testbed: Testbed) -> Self:
        """See `Fault.prepare`: remembers the partitions. Raise `TestbedError` when nothing moves that would change."""
        ids = self._ids(testbed)
        with second_client(testbed) as admin:
            running = admin.reassignments()
        chosen = [tp for tp, found in sorted(running.items()) if not ids or _target(found) != sorted(ids)]
        if not chosen:
            why = (
                f"no running reassignment has another target than {', '.join(self.to)}" if running else "nothing moves"
            )
            raise TestbedError(f"{why} now: {self.kind} has nothing to change")
        return replace(self, chosen={f"{tp.topic}/{tp.partition}": ids for tp in chosen[: self.partitions]})

    def apply(self, testbed: Testbed) -> None:
        """See `Fault.apply`."""
        with second_client(testbed) as admin:
            if self.to == CANCELLED:
                cancel_running(admin, self._targets())
            else:
                admin.alter_reassignments(self._targets())

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: the controller lists the partitions with the new target, or no longer."""
        targets = self._targets()
        with second_client(testbed) as admin:
            running = admin.reassignments(sorted({tp.topic for tp in targets}))
            states = admin.partitions(sorted({tp.topic for tp in targets}))
        for tp, ids in targets.items():
            found = running.get(tp)
            if not ids and found is not None:
                return f"{tp} is still being reassigned"
            seen = _target(found) if found else sorted(states[tp].replicas)
            if ids and seen != sorted(ids):
                return f"the target of {tp} is {seen}"
        return None

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`. To request a cancelled reassignment again is up to the operator of the move."""
        targets = {tp: ids for tp, ids in self._targets().items() if ids}
        if not targets:
            return
        with second_client(testbed) as admin:
            running = admin.reassignments()
            cancel_running(
                admin, [tp for tp, ids in targets.items() if tp in running and _target(running[tp]) == sorted(ids)]
            )

    def _ids(self, testbed: Testbed) -> list[int]:
        if self.to == CANCELLED:
            return []
        ids = (testbed.topology.host(host).node_id for host in self.to)
        return [node_id for node_id in ids if node_id is not None]

    def _targets(self) -> dict[TopicPartition, list[int]]:
        found = {}
        for text, ids in self.chosen.items():
            topic, _, number = text.rpartition("/")
            found[TopicPartition(topic, int(number))] = list(ids)
        return found


FAULT = ReassignmentAlter
