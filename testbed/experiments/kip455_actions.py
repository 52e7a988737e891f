"""The steps of a KIP-455 scenario as data: actions on a cluster, and the states of partitions that each must cause.

`kip455_executor.py` executes the steps. A step names brokers by id, and partitions by their number in the scenario's
one topic. Partition 0 is the default.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from results.contract.steps import ACCEPTED, Expectation, RequiredState, When, numbers
from results.criteria.catalogue.isr_expansion import CONTROLLER_S, FETCH_S, POLL_S
from testbed.faults import Faults
from testbed.faults.catalogue.broker_kill import BrokerKill
from testbed.faults.catalogue.controller_failover import active_controller
from testbed.faults.fault import Fault
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError, PartitionErrors
from testbed.kafka.types import TopicPartition
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed
from testbed.throttle.journal import JournalFolder
from testbed.throttle.throttle import Throttle
from testbed.topology.host import names_by_id
from testbed.units import format_byte_rate

Replicas = tuple[int, ...]
LogSizes = dict[int, dict[int, int]]
"""Broker → partition → bytes."""
_RELEASED_BYTES_PER_S = 200_000_000
DECIDED_S = CONTROLLER_S + POLL_S
"""Seconds until every client knows what the controller decides by itself: two requests to it, and one poll."""
COPIED_S = DECIDED_S + FETCH_S + CONTROLLER_S
"""Seconds beyond the copying until a move that nothing holds back is known to be complete: its request, or that of
another throttle, one fetch and one poll, and the leader's request to the controller."""


class ScenarioCluster:
    """The cluster of the actions: one topic, the throttle of its replicas, and faults that are healed together."""

    def __init__(self, testbed: Testbed, admin: Admin, recorder: Recorder, topic: str) -> None:
        self.testbed, self.admin, self.recorder, self.topic = testbed, admin, recorder, topic
        self.hosts = names_by_id(testbed.topology.brokers)
        self.throttle = Throttle(admin, JournalFolder(), recorder.event)
        self.kinds: set[str] = set()
        """The kinds of the injected faults."""
        self._faults: list[int] = []

    def tp(self, partition: int) -> TopicPartition:
        """Return a partition of the topic."""
        return TopicPartition(self.topic, partition)

    def fault(self, fault: Fault) -> None:
        """Inject a fault; it stays until `heal`."""
        self.kinds.add(fault.kind)
        self._faults.append(Faults(self.testbed).add(fault))

    @property
    def whole(self) -> bool:
        """Return whether no injected fault is left."""
        return not self._faults

    def log_sizes(self) -> LogSizes:
        """Return the bytes of each of the topic's logs on each broker. Raise `KafkaError`."""
        found = self.admin.log_dirs(list(self.hosts), [self.topic])
        return {broker: {tp.partition: log.size_bytes for tp, log in logs.items()} for broker, logs in found.items()}

    def heal(self) -> None:
        """Heal all injected faults and wait until every broker serves."""
        while self._faults:
            Faults(self.testbed).clear(self._faults[-1])
            self._faults.pop()


@dataclass(frozen=True, slots=True)
class ScenarioAction:
    """One action on the cluster, described in a few words. `do` raises `KafkaError` when the cluster refuses it.

    `within_s` is the time in which a healthy cluster carries it out, in seconds; None: no time is known. What it
    `copies` takes its time on the NICs in addition.
    """

    text: str
    do: Callable[[ScenarioCluster], object]
    within_s: float | None = None
    copies: bool = False

    def untimed(self) -> "ScenarioAction":
        """Return the action without a time: a fault, or thousands of partitions, decide how long it takes."""
        return replace(self, within_s=None)

    def copying(self) -> "ScenarioAction":
        """Return the action with the time of a move that nothing holds back."""
        return replace(self, within_s=COPIED_S, copies=True)


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """An action, its expected answer, and the expected states. The step ends when every `end` state is reported.

    The step lasts `settle_s` at least, so that a state that must `never` occur has time to occur. The executor adds the
    name of the topic to the states.
    """

    name: str
    action: ScenarioAction
    expect: tuple[Expectation, ...]
    answer: str
    timeout_s: float
    settle_s: float


def step(
    name: str,
    action: ScenarioAction,
    begins: RequiredState | None = None,
    *expect: Expectation,
    answer: str = ACCEPTED,
    timeout_s: float = 30.0,
    settle_s: float = 0.0,
) -> ScenarioStep:
    """Return a step. `begins` is its precondition for partition 0: without this state the step proves nothing."""
    before = () if begins is None else (_state("before", "before", begins),)
    return ScenarioStep(name, action, (*before, *expect), answer, timeout_s, settle_s)


def let_go(begins: RequiredState, *expect: Expectation) -> ScenarioStep:
    """Return the step that releases the throttle, so that the running moves complete."""
    return step("let-go", RELEASE_THROTTLE, begins, *expect)


def seen(name: str, wanted: RequiredState, *, kip: str = "") -> Expectation:
    """Return a state that must occur during the step."""
    return _state(name, "seen", wanted, kip=kip)


def never(name: str, wanted: RequiredState, partition: int = 0, *, kip: str = "") -> Expectation:
    """Return a state that must not occur during the step."""
    return _state(name, "never", wanted, partition, kip)


def end(name: str, wanted: RequiredState, partition: int = 0, *, kip: str = "") -> Expectation:
    """Return a state that must hold when the step ends."""
    return _state(name, "end", wanted, partition, kip)


def _state(name: str, when: When, wanted: RequiredState, partition: int = 0, kip: str = "") -> Expectation:
    return Expectation(name, when, "", partition, wanted, kip)


def moving(
    adding: Replicas, removing: Replicas, staying: Replicas = (), *, isr: Replicas | None = None
) -> RequiredState:
    """Return the state of a running move. Without `isr`, all but the adding replicas are in sync."""
    in_sync = (*removing, *staying) if isr is None else isr
    return RequiredState(replicas=(*adding, *removing, *staying), adding=adding, removing=removing, isr=in_sync)


def still(replicas: Replicas, *, ordered: bool = False, leaders: Replicas | None = None) -> RequiredState:
    """Return the state without a move: these replicas, all in sync."""
    order = replicas if ordered else None
    return RequiredState(replicas=replicas, order=order, adding=(), removing=(), isr=replicas, leaders=leaders)


# ---- actions


def reassign_all(targets: Mapping[int, Replicas | None]) -> ScenarioAction:
    """Return the request for the reassignment of several partitions. None as a target cancels one."""
    partitions: dict[Replicas | None, list[int]] = {}
    for p, target in targets.items():
        partitions.setdefault(target, []).append(p)
    parts = []
    for target, these in partitions.items():
        which = f"partition {these[0]}" if len(these) == 1 else f"{len(these)} partitions"
        parts.append(f"{which}: " + ("cancel" if target is None else f"to {numbers(target)}"))
    return ScenarioAction(
        "; ".join(parts),
        lambda on: on.admin.alter_reassignments({on.tp(p): target for p, target in targets.items()}),
        DECIDED_S,
    )


def reassign(*target: int) -> ScenarioAction:
    """Return the request for the reassignment of partition 0 to these replicas."""
    return reassign_all({0: target})


def cancel(*partitions: int) -> ScenarioAction:
    """Return the request that cancels the moves of these partitions; without any, of partition 0."""
    return reassign_all(dict.fromkeys(partitions or (0,)))


def kill_broker(broker: int) -> ScenarioAction:
    """Return the kill of a broker, which stays down until `START_BROKERS`."""
    return ScenarioAction(f"kill broker {broker}", lambda on: _kill(on, "broker.killed", on.hosts[broker]))


def add_partitions(*replicas: Replicas) -> ScenarioAction:
    """Return the addition of partitions to the topic, each with its replicas."""
    return ScenarioAction(
        f"add partitions {', '.join(map(numbers, replicas))}",
        lambda on: on.admin.add_partitions(on.topic, replicas),
        DECIDED_S,
    )


def _kill(on: ScenarioCluster, kind: str, host: str) -> None:
    """Kill Kafka on a host. The event says that the scenario itself did it."""
    on.recorder.event(kind, "the scenario", host=host)
    on.fault(BrokerKill(host=host))


def _kill_controller(on: ScenarioCluster) -> None:
    leader = active_controller(on.testbed)
    if leader is None:
        raise KafkaError("look for the active controller", "NOT_CONTROLLER", "there is none")
    _kill(on, "controller.killed", leader)


REASSIGN_UNKNOWN_TOPIC = ScenarioAction(
    "partition 0 of a topic that does not exist: to [1]",
    lambda on: on.admin.alter_reassignments({TopicPartition(f"{on.topic}-unknown", 0): [1]}),
    DECIDED_S,
)
RELEASE_THROTTLE = ScenarioAction(
    f"throttle {format_byte_rate(_RELEASED_BYTES_PER_S)}",
    lambda on: on.throttle.change_rate(_RELEASED_BYTES_PER_S, timeout_s=30.0),
).copying()
KILL_CONTROLLER = ScenarioAction("kill the active controller", _kill_controller)
"""The kill of the active controller's node, without a wait. No controller is active afterwards."""
START_BROKERS = ScenarioAction("start what was killed", ScenarioCluster.heal)
DELETE_TOPIC = ScenarioAction("delete the topic", lambda on: on.admin.delete_topic(on.topic), DECIDED_S)
ELECT_PREFERRED_LEADER = ScenarioAction(
    "elect the preferred leader", lambda on: on.admin.elect_preferred([on.tp(0)]), DECIDED_S
)
NO_ACTION = ScenarioAction("look", lambda _on: None)
"""No action: the step only observes."""


def answer_of(error: KafkaError) -> str:
    """Return an error as an answer: the protocol's name, with the partitions where each has its own error."""
    if not isinstance(error, PartitionErrors):
        return error.name
    by_name: dict[str, list[str]] = {}
    for tp, name in error.errors.items():
        by_name.setdefault(name, []).append(str(tp.partition))
    return "; ".join(f"{name} for {', '.join(partitions)}" for name, partitions in sorted(by_name.items()))
