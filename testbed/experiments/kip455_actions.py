"""The steps of a KIP-455 scenario as data: actions on a cluster, and the states of partitions that each must cause.

`kip455_executor.py` executes the steps. A step names brokers by id, and partitions by their number in the scenario's
one topic. Partition 0 is the default.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from results.contract.steps import ACCEPTED, RequiredState, When, numbers
from testbed.faults.catalogue.broker_kill import BrokerKill
from testbed.faults.catalogue.controller_failover import active_controller
from testbed.faults.fault import Fault
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError, PartitionErrors
from testbed.kafka.types import TopicPartition
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed
from testbed.throttle.throttle import Throttle
from testbed.units import format_byte_rate

Replicas = Sequence[int]


class ScenarioCluster(Protocol):
    """The cluster of the actions: one topic, its throttle, and faults that are healed together."""

    @property
    def admin(self) -> Admin:
        """Return the Admin client."""

    @property
    def testbed(self) -> Testbed:
        """Return the testbed."""

    @property
    def recorder(self) -> Recorder:
        """Return the recorder of the run."""

    @property
    def topic(self) -> str:
        """Return the scenario's topic."""

    @property
    def throttle(self) -> Throttle:
        """Return the throttle of the topic's replicas."""

    def tp(self, partition: int) -> TopicPartition:
        """Return a partition of the topic."""

    def host(self, broker: int) -> str:
        """Return the host of a broker."""

    def fault(self, fault: Fault) -> None:
        """Inject a fault; it stays until `heal`."""

    def heal(self) -> None:
        """Heal all faults and wait until every broker serves."""


class ScenarioAction(Protocol):
    """One action on the cluster. An error of Kafka is the action's answer. Other errors are raised."""

    def __str__(self) -> str:
        """Describe the action in a few words."""

    def do(self, on: ScenarioCluster) -> None:
        """Execute the action. Raise `KafkaError` when the cluster refuses it."""


@dataclass(frozen=True, slots=True)
class ExpectedState:
    """One expected state of one partition; see `results.contract.steps.Expectation`."""

    name: str
    when: When
    wanted: RequiredState
    partition: int = 0
    kip: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """An action, its expected answer, and the expected states. The step ends when every `end` state is reported.

    The step lasts `settle_s` at least, so that a state that must `never` occur has time to occur.
    """

    name: str
    action: ScenarioAction
    expect: tuple[ExpectedState, ...] = ()
    answer: str = ACCEPTED
    timeout_s: float = 30.0
    settle_s: float = 0.0


def before(wanted: RequiredState, partition: int = 0) -> ExpectedState:
    """Return the precondition of a step: without this state the step proves nothing."""
    return ExpectedState("before", "before", wanted, partition)


def seen(name: str, wanted: RequiredState, partition: int = 0, *, kip: str = "") -> ExpectedState:
    """Return a state that must occur during the step."""
    return ExpectedState(name, "seen", wanted, partition, kip)


def never(name: str, wanted: RequiredState, partition: int = 0, *, kip: str = "") -> ExpectedState:
    """Return a state that must not occur during the step."""
    return ExpectedState(name, "never", wanted, partition, kip)


def end(name: str, wanted: RequiredState, partition: int = 0, *, kip: str = "") -> ExpectedState:
    """Return a state that must hold when the step ends."""
    return ExpectedState(name, "end", wanted, partition, kip)


def moving(
    adding: Replicas, removing: Replicas, staying: Replicas = (), *, isr: Replicas | None = None
) -> RequiredState:
    """Return the state of a running move. Without `isr`, all but the adding replicas are in sync."""
    return RequiredState(
        replicas=(*adding, *removing, *staying),
        adding=tuple(adding),
        removing=tuple(removing),
        isr=(*removing, *staying) if isr is None else tuple(isr),
    )


def still(replicas: Replicas, *, ordered: bool = False, leaders: Replicas | None = None) -> RequiredState:
    """Return the state without a move: these replicas, all in sync."""
    there = tuple(replicas)
    return RequiredState(
        replicas=there,
        order=there if ordered else None,
        adding=(),
        removing=(),
        isr=there,
        leaders=None if leaders is None else tuple(leaders),
    )


# ---- actions


@dataclass(frozen=True, slots=True)
class Reassign:
    """A request for reassignments. None as a target cancels one."""

    targets: Mapping[int, Replicas | None]

    def __str__(self) -> str:
        partitions: dict[Replicas | None, list[int]] = {}
        for p, target in self.targets.items():
            partitions.setdefault(None if target is None else tuple(target), []).append(p)
        parts = []
        for target, these in partitions.items():
            which = f"partition {these[0]}" if len(these) == 1 else f"{len(these)} partitions"
            parts.append(f"{which}: " + ("cancel" if target is None else f"to {numbers(target)}"))
        return "; ".join(parts)

    def do(self, on: ScenarioCluster) -> None:
        """Execute the action."""
        on.admin.alter_reassignments({on.tp(p): target for p, target in self.targets.items()})


def reassign(*target: int, partition: int = 0) -> Reassign:
    """Return the request for one partition's reassignment to these replicas."""
    return Reassign({partition: target})


def cancel(*partitions: int) -> Reassign:
    """Return the request that cancels the moves of these partitions; without any, of partition 0."""
    return Reassign(dict.fromkeys(partitions or (0,)))


@dataclass(frozen=True, slots=True)
class ReassignUnknownTopic:
    """A request for the reassignment of a topic that does not exist."""

    def __str__(self) -> str:
        return "partition 0 of a topic that does not exist: to [1]"

    def do(self, on: ScenarioCluster) -> None:
        """Execute the action."""
        on.admin.alter_reassignments({TopicPartition(f"{on.topic}-unknown", 0): [1]})


@dataclass(frozen=True, slots=True)
class ChangeThrottle:
    """A change of the throttle. A low rate keeps moves running, a high rate lets them complete."""

    rate_bytes_per_s: int

    def __str__(self) -> str:
        return f"throttle {format_byte_rate(self.rate_bytes_per_s)}"

    def do(self, on: ScenarioCluster) -> None:
        """Execute the action."""
        on.throttle.change_rate(self.rate_bytes_per_s, timeout_s=30.0)


RELEASE_THROTTLE = ChangeThrottle(200_000_000)


@dataclass(frozen=True, slots=True)
class KillBroker:
    """The kill of a broker, which stays down until `StartBrokers`."""

    broker: int

    def __str__(self) -> str:
        return f"kill broker {self.broker}"

    def do(self, on: ScenarioCluster) -> None:
        """Execute the action."""
        on.fault(BrokerKill(host=on.host(self.broker)))


@dataclass(frozen=True, slots=True)
class KillController:
    """The kill of the active controller's node, without a wait. No controller is active afterwards."""

    def __str__(self) -> str:
        return "kill the active controller"

    def do(self, on: ScenarioCluster) -> None:
        """Execute the action."""
        leader = active_controller(on.testbed)
        if leader is None:
            raise KafkaError("look for the active controller", "NOT_CONTROLLER", "there is none")
        on.recorder.event("controller.killed", "controller", host=leader)
        on.fault(BrokerKill(host=leader))


@dataclass(frozen=True, slots=True)
class StartBrokers:
    """The start of all killed nodes, with a wait until every broker serves."""

    def __str__(self) -> str:
        return "start what was killed"

    def do(self, on: ScenarioCluster) -> None:
        """Execute the action."""
        on.heal()


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """The deletion of the topic."""

    def __str__(self) -> str:
        return "delete the topic"

    def do(self, on: ScenarioCluster) -> None:
        """Execute the action."""
        on.admin.delete_topic(on.topic)


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """The addition of partitions to the topic, each with its replicas. Numbers follow the existing partitions."""

    replicas: Sequence[Replicas]

    def __str__(self) -> str:
        return f"add partitions {', '.join(map(numbers, self.replicas))}"

    def do(self, on: ScenarioCluster) -> None:
        """Execute the action."""
        on.admin.add_partitions(on.topic, self.replicas)


@dataclass(frozen=True, slots=True)
class ElectPreferredLeader:
    """The election of partition 0's preferred leader."""

    def __str__(self) -> str:
        return "elect the preferred leader"

    def do(self, on: ScenarioCluster) -> None:
        """Execute the action."""
        on.admin.elect_preferred([on.tp(0)])


@dataclass(frozen=True, slots=True)
class NoAction:
    """No action: the step only observes."""

    def __str__(self) -> str:
        return "look"

    def do(self, on: ScenarioCluster) -> None:
        """Execute the action."""


def answer_of(error: KafkaError) -> str:
    """Return an error as an answer: the protocol's name, with the partitions where each has its own error."""
    if not isinstance(error, PartitionErrors):
        return error.name
    by_name: dict[str, list[str]] = {}
    for tp, name in error.errors.items():
        by_name.setdefault(name, []).append(str(tp.partition))
    return "; ".join(f"{name} for {', '.join(partitions)}" for name, partitions in sorted(by_name.items()))
