"""Steps as data: what is done to a cluster, and what is to be seen of it. `stepping.py` takes them.

Brokers are their ids, and partitions those of the scenario's one topic. Partition 0 is meant where none is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from results.contract.steps import ACCEPTED, Wanted, When, numbers
from testbed.faults.catalogue.broker_kill import BrokerKill
from testbed.faults.catalogue.controller_failover import active_controller
from testbed.kafka.errors import KafkaError, PartitionErrors
from testbed.kafka.types import TopicPartition
from testbed.units import format_byte_rate

if TYPE_CHECKING:
    from testbed.experiments.stepping import Stepping

Replicas = Sequence[int]


class Act(Protocol):
    """One thing that is done. Errors of Kafka's are its answer, others are raised."""

    def __str__(self) -> str:
        """What is done, for people."""

    def do(self, on: "Stepping") -> None:
        """Do it. Raises `KafkaError` for what the cluster refuses."""


@dataclass(frozen=True, slots=True)
class Expect:
    """One state of one partition; see `results.contract.steps.Expectation`."""

    name: str
    when: When
    wanted: Wanted
    partition: int = 0
    kip: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """An act, its answer, and what is to be seen. The step ends when all that is to be so *at the end* is told to be.

    `settle_s` is how long it lasts at the least, for what is *never* to be seen to have its time.
    """

    name: str
    act: Act
    expect: tuple[Expect, ...] = ()
    answer: str = ACCEPTED
    timeout_s: float = 30.0
    settle_s: float = 0.0


def before(wanted: Wanted, partition: int = 0) -> Expect:
    """What the step needs: without it the step proves nothing."""
    return Expect("before", "before", wanted, partition)


def seen(name: str, wanted: Wanted, partition: int = 0, *, kip: str = "") -> Expect:
    """What is in force at some time of the step."""
    return Expect(name, "seen", wanted, partition, kip)


def never(name: str, wanted: Wanted, partition: int = 0, *, kip: str = "") -> Expect:
    """What is never in force in the step's time."""
    return Expect(name, "never", wanted, partition, kip)


def end(name: str, wanted: Wanted, partition: int = 0, *, kip: str = "") -> Expect:
    """What is in force when the step ends."""
    return Expect(name, "end", wanted, partition, kip)


def moving(adding: Replicas, removing: Replicas, staying: Replicas = (), *, isr: Replicas | None = None) -> Wanted:
    """A move under way, as sets; in sync are those of `isr`, without one all but the adding replicas."""
    return Wanted(
        replicas=(*adding, *removing, *staying),
        adding=tuple(adding),
        removing=tuple(removing),
        isr=(*removing, *staying) if isr is None else tuple(isr),
    )


def still(replicas: Replicas, *, ordered: bool = False, leaders: Replicas | None = None) -> Wanted:
    """No move under way: these replicas, all in sync."""
    there = tuple(replicas)
    return Wanted(
        replicas=there,
        order=there if ordered else None,
        adding=(),
        removing=(),
        isr=there,
        leaders=None if leaders is None else tuple(leaders),
    )


# ---- acts


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for reassignments; None cancels one."""

    targets: Mapping[int, Replicas | None]

    def __str__(self) -> str:
        partitions: dict[Replicas | None, list[int]] = {}
        for p, target in self.targets.items():
            partitions.setdefault(None if target is None else tuple(target), []).append(p)
        told = []
        for target, these in partitions.items():
            which = f"partition {these[0]}" if len(these) == 1 else f"{len(these)} partitions"
            told.append(f"{which}: " + ("cancel" if target is None else f"to {numbers(target)}"))
        return "; ".join(told)

    def do(self, on: "Stepping") -> None:
        """See `Act`."""
        on.admin.alter_reassignments({on.tp(p): target for p, target in self.targets.items()})


def ask(*target: int, partition: int = 0) -> Ask:
    """Ask for one partition's replicas to be these."""
    return Ask({partition: target})


def cancel(*partitions: int) -> Ask:
    """Cancel the moves of these partitions; of partition 0 when none is given."""
    return Ask(dict.fromkeys(partitions or (0,)))


@dataclass(frozen=True, slots=True)
class AskUnknown:
    """Ask for a reassignment of a topic that does not exist."""

    def __str__(self) -> str:
        return "partition 0 of a topic that does not exist: to [1]"

    def do(self, on: "Stepping") -> None:
        """See `Act`."""
        on.admin.alter_reassignments({TopicPartition(f"{on.topic}-unknown", 0): [1]})


@dataclass(frozen=True, slots=True)
class Throttle:
    """Give the throttle another rate: a low one holds moves open, a high one lets them end."""

    rate_bytes_per_s: int

    def __str__(self) -> str:
        return f"throttle {format_byte_rate(self.rate_bytes_per_s)}"

    def do(self, on: "Stepping") -> None:
        """See `Act`."""
        on.throttle.change_rate(self.rate_bytes_per_s, timeout_s=30.0)


LET_GO = Throttle(200_000_000)


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill a broker; it stays down until `Start`."""

    broker: int

    def __str__(self) -> str:
        return f"kill broker {self.broker}"

    def do(self, on: "Stepping") -> None:
        """See `Act`."""
        on.fault(BrokerKill(host=on.host(self.broker)))


@dataclass(frozen=True, slots=True)
class KillController:
    """Kill the node of the active controller, and wait for nothing: no controller is active then."""

    def __str__(self) -> str:
        return "kill the active controller"

    def do(self, on: "Stepping") -> None:
        """See `Act`."""
        leader = active_controller(on.testbed)
        if leader is None:
            raise KafkaError("look for the active controller", "NOT_CONTROLLER", "there is none")
        on.recorder.event("controller.killed", "controller", host=leader)
        on.fault(BrokerKill(host=leader))


@dataclass(frozen=True, slots=True)
class Start:
    """Start whatever was killed, and wait until all brokers serve."""

    def __str__(self) -> str:
        return "start what was killed"

    def do(self, on: "Stepping") -> None:
        """See `Act`."""
        on.heal()


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Delete the topic."""

    def __str__(self) -> str:
        return "delete the topic"

    def do(self, on: "Stepping") -> None:
        """See `Act`."""
        on.admin.delete_topic(on.topic)


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Add partitions to the topic, each with its replicas; they are numbered on from those there are."""

    replicas: Sequence[Replicas]

    def __str__(self) -> str:
        return f"add partitions {', '.join(map(numbers, self.replicas))}"

    def do(self, on: "Stepping") -> None:
        """See `Act`."""
        on.admin.add_partitions(on.topic, self.replicas)


@dataclass(frozen=True, slots=True)
class Elect:
    """Elect the preferred leader of partition 0."""

    def __str__(self) -> str:
        return "elect the preferred leader"

    def do(self, on: "Stepping") -> None:
        """See `Act`."""
        on.admin.elect_preferred([on.tp(0)])


@dataclass(frozen=True, slots=True)
class Look:
    """Do nothing but look."""

    def __str__(self) -> str:
        return "look"

    def do(self, on: "Stepping") -> None:
        """See `Act`."""


def answer_of(error: KafkaError) -> str:
    """An error as an answer: the protocol's name, with the partitions of each where they have their own."""
    if not isinstance(error, PartitionErrors):
        return error.name
    by_name: dict[str, list[str]] = {}
    for tp, name in error.errors.items():
        by_name.setdefault(name, []).append(str(tp.partition))
    return "; ".join(f"{name} for {', '.join(partitions)}" for name, partitions in sorted(by_name.items()))
