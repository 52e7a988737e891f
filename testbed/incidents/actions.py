"""The actions of a timeline: one class for each action, and one for each fault of `testbed.faults`.

`ACTIONS` has every action class of this module by its key in an incident's file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, WithJsonSchema, create_model

from results.criteria.timeline_expectation import Reference
from testbed.faults.fault import Fault
from testbed.faults.parse import as_text, kinds, parameters
from testbed.incidents.forms import (
    Duration,
    IncidentModel,
    Placement,
    ThrottleRate,
    TopicNames,
    format_seconds,
    parsed,
    scalar,
)
from testbed.kafka.capabilities import Capability
from testbed.suggestions import choices, did_you_mean, show
from testbed.topology.model import Topology
from testbed.units import format_byte_rate

if TYPE_CHECKING:
    from testbed.incidents.operator import ClusterOperator

_ALL_TOPICS = "Topics; all of the incident's unless given."


class Action(IncidentModel):
    """One thing that an operator does to the cluster, or that happens to it."""

    key: ClassVar[str]

    capabilities: ClassVar[tuple[Capability, ...]] = ()

    def needs(self) -> Sequence[Capability]:
        """Return the capabilities that the action needs of the software."""
        return self.capabilities

    def check(self, topology: Topology) -> None:
        """Raise `UsageError` when the topology cannot have the action."""

    def perform(self, operator: "ClusterOperator") -> None:
        """Perform the action. Raise `TestbedError` when it fails."""
        raise NotImplementedError


class MoveTopics(Action):
    """Give every partition of the topics these replicas; a throttle is in force on every broker before the move."""

    key = "move"

    topics: Annotated[TopicNames, Field(min_length=1, description="The topics to move.")]
    hosts: Annotated[
        Placement,
        Field(description="Brokers, the preferred leader first; or a list of such lists, for the partitions in turn."),
    ]
    throttle: Annotated[ThrottleRate | None, Field(description="No throttle unless given.")] = None

    def needs(self) -> Sequence[Capability]:
        """See `Action.needs`."""
        throttled = [Capability.THROTTLES_REPLICATION] if self.throttle is not None else []
        return throttled + ([Capability.REPLICATES] if max(map(len, self.hosts)) > 1 else [])

    def perform(self, operator: "ClusterOperator") -> None:
        """See `Action.perform`."""
        operator.move(tuple(self.topics), tuple(tuple(hosts) for hosts in self.hosts), self.throttle)

    def __str__(self) -> str:
        throttled = f" throttled at {format_byte_rate(self.throttle)}" if self.throttle else ""
        where = " / ".join(dict.fromkeys(", ".join(hosts) for hosts in self.hosts))
        return f"move {', '.join(self.topics)} to {where}{throttled}"


class SetThrottle(Action):
    """Set rates on every live broker and lists on the topics, and wait until every live broker shows them.

    Entries do not wait for each other: a move that another entry requests meanwhile begins without the quota.
    """

    key = "set_throttle"
    capabilities = (Capability.THROTTLES_REPLICATION,)

    rate: Annotated[ThrottleRate, Field(description="Of every live broker, as leader and as follower.")]
    topics: Annotated[TopicNames, Field(default_factory=list, description=_ALL_TOPICS)]

    def perform(self, operator: "ClusterOperator") -> None:
        """See `Action.perform`."""
        operator.set_throttle(self.rate, tuple(self.topics))

    def __str__(self) -> str:
        return f"set throttle {format_byte_rate(self.rate)}" + _listed(" for ", self.topics)


class ChangeThrottleRate(Action):
    """Set another rate, up or down, on every live broker; the lists stay."""

    key = "change_throttle"
    capabilities = (Capability.THROTTLES_REPLICATION,)

    rate: Annotated[ThrottleRate, Field(description="The new rate.")]

    def perform(self, operator: "ClusterOperator") -> None:
        """See `Action.perform`."""
        operator.change_throttle(self.rate)

    def __str__(self) -> str:
        return f"change throttle to {format_byte_rate(self.rate)}"


class RemoveThrottle(Action):
    """Remove rates and lists everywhere."""

    key = "remove_throttle"

    def perform(self, operator: "ClusterOperator") -> None:
        """See `Action.perform`."""
        operator.remove_throttle()

    def __str__(self) -> str:
        return "remove throttle"


class RestartBroker(Action):
    """Stop Kafka on the host if it runs, start it, and wait until the broker is unfenced."""

    key = "restart"

    host: Annotated[str, Reference("broker"), Field(description="The broker.")]

    def perform(self, operator: "ClusterOperator") -> None:
        """See `Action.perform`."""
        operator.restart(self.host)

    def __str__(self) -> str:
        return f"restart {self.host}"


class ElectPreferred(Action):
    """Make the first replica of each partition its leader."""

    key = "elect_preferred"

    topics: Annotated[TopicNames, Field(default_factory=list, description=_ALL_TOPICS)]

    def perform(self, operator: "ClusterOperator") -> None:
        """See `Action.perform`."""
        operator.elect_preferred(tuple(self.topics))

    def __str__(self) -> str:
        return "elect preferred leaders" + _listed(" of ", self.topics)


class CancelMoves(Action):
    """Cancel every reassignment of the topics that is not complete."""

    key = "cancel"

    topics: Annotated[TopicNames, Field(default_factory=list, description=_ALL_TOPICS)]

    def perform(self, operator: "ClusterOperator") -> None:
        """See `Action.perform`."""
        operator.cancel(tuple(self.topics))

    def __str__(self) -> str:
        return "cancel moves" + _listed(" of ", self.topics)


class Converge(Action):
    """Wait until no other action and no reassignment runs and every replica is in sync; elect the preferred leaders.

    The action succeeds also when that does not come: expectations judge the state at the end. After it the replay waits
    for no move any more.
    """

    key = "converge"

    within: Annotated[Duration, Field(description="The longest wait.")]

    def perform(self, operator: "ClusterOperator") -> None:
        """See `Action.perform`."""
        operator.converge(self.within)

    def __str__(self) -> str:
        return f"converge within {format_seconds(self.within)}"


def _listed(word: str, topics: list[str]) -> str:
    return word + ", ".join(topics) if topics else ""


def _fault_kind(value: Any) -> str:
    known = [_key(kind) for kind in sorted(kinds())]
    if value not in known:
        raise ValueError(f"{show(value)} is not a fault; allowed: {choices(known)}{did_you_mean(value, known)}")
    return str(value)


class HealFaults(Action):
    """Heal all faults of the replay, or those of one kind: back to what the topology declares."""

    key = "heal"

    fault: Annotated[str | None, parsed(_fault_kind), Field(description="One kind; all unless given.")] = None

    def perform(self, operator: "ClusterOperator") -> None:
        """See `Action.perform`."""
        operator.heal(self.fault and self.fault.replace("_", "-"))

    def __str__(self) -> str:
        return f"heal {self.fault}" if self.fault else "heal"


class InjectFault(Action):
    """Inject a fault, and wait until it is measured to have taken effect."""

    kind: ClassVar[type[Fault]]

    def fault(self) -> Fault:
        """Return the fault."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return self.kind(**given)

    def check(self, topology: Topology) -> None:
        """See `Action.check`."""
        self.fault().check(topology)

    def perform(self, operator: "ClusterOperator") -> None:
        """See `Action.perform`."""
        operator.inject(self.fault())

    def __str__(self) -> str:
        return as_text(self.fault())


def _key(kind: str) -> str:
    return kind.replace("-", "_")


def _injection(fault: type[Fault]) -> type[InjectFault]:
    """Return the action of one kind of fault. Its fields are the fault's parameters."""
    fields: dict[str, Any] = {}
    for each in parameters(fault):
        described = Field(default=... if each.default is MISSING else each.default, description=each.metadata["help"])
        value = Annotated[
            Any, parsed(each.metadata["parse"]), parsed(scalar), WithJsonSchema({"type": ["string", "number"]})
        ]
        fields[each.name] = (value, described)
    made = create_model(f"Inject{fault.__name__}", __base__=InjectFault, __doc__=fault.summary, **fields)
    made.key, made.kind = _key(fault.kind), fault
    return made


ACTIONS: Mapping[str, type[Action]] = {
    each.key: each for each in (*Action.__subclasses__(), *map(_injection, kinds().values())) if each is not InjectFault
}
"""Every action by its key in a file: first the operator's actions, then the faults."""
