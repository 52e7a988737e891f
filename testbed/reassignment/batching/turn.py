"""One turn of a batched move: steps, elections, and why the other partitions wait. Pure, except `read_state`.

The cluster holds the state: the controller lists the steps in flight, and a partition's next step follows from its
replicas. So the next turn also continues after a kill, and no partition moves twice.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from results.contract.texts import counted
from testbed.kafka.admin import Admin
from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from testbed.kafka.partitions import existing_partitions
from testbed.kafka.types import PartitionState, Reassignment, TopicPartition
from testbed.reassignment.batching.batch import Batch, BatchLimits, choose_batch
from testbed.reassignment.batching.step import NoStep, PartitionView, Replicas, Step, leaves_enough, next_step
from testbed.reassignment.plan import Plan
from testbed.reassignment.progress import is_recreated

Mode = Literal["unbatched", "batched", "incremental"]
PartitionPhase = Literal["done", "moving", "electing", "deferred", "waiting", "gone"]
_BEHIND = "the metadata asked is behind the controller"
_OFFLINE = "the partition is offline: it has no leader"


@dataclass(frozen=True, slots=True)
class ReassignmentState:
    """The state of a move: listed reassignments, all partitions of the plan's topics, live brokers.

    `min_insync` is each topic's `min.insync.replicas`. `behind` are partitions whose metadata still shows a list from
    within an ended step. `refused` are partitions whose step the controller refused, with its reason.
    """

    listed: Mapping[TopicPartition, Reassignment]
    states: Mapping[TopicPartition, PartitionState]
    live: Collection[int]
    min_insync: Mapping[str, int] = field(default_factory=dict)
    behind: Collection[TopicPartition] = ()
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)

    def existing(self, tp: TopicPartition) -> Replicas:
        """Return a partition's replicas, without those that a step in flight adds."""
        running = self.listed.get(tp)
        return self.states[tp].replicas if running is None else running.existing

    def is_foreign(self, tp: TopicPartition, target: Replicas) -> bool:
        """Return whether another client's reassignment is listed: it adds a broker that the target does not have."""
        running = self.listed.get(tp)
        return running is not None and not set(running.adding) <= set(target)


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """The status of one partition: its target, its step in flight or None, and why it has none."""

    tp: TopicPartition
    state: PartitionPhase
    current: Replicas
    target: Replicas
    step: Replicas | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """The requests of one turn, and the status of every partition."""

    start: Mapping[TopicPartition, Replicas]
    elect: tuple[TopicPartition, ...]
    partitions: tuple[PartitionStatus, ...]

    @property
    def ended(self) -> bool:
        """Return whether every partition has reached its target or was deleted."""
        return all(status.state in ("done", "gone") for status in self.partitions)


def take_turn(plan: Plan, seen: ReassignmentState, limits: BatchLimits, mode: Mode, *, held: str = "") -> Turn:
    """Return the turn for a state.

    `held` is the reason why no step starts, such as "paused"; steps in flight continue, and elections still happen.

    `batched` starts the next batch when the previous one has ended. `incremental` starts a step as soon as a limit
    permits. Both let another client's reassignment of a partition end first. `unbatched` requests every target at once,
    without limits, also in place of another one.
    """
    found: dict[TopicPartition, PartitionStatus] = {}
    running: dict[TopicPartition, Step] = {}
    wanted: list[tuple[TopicPartition, Step | NoStep]] = []
    elections: dict[TopicPartition, Step] = {}
    mended: dict[TopicPartition, Replicas] = {}
    for tp, target in sorted(plan.targets.items()):
        state = seen.states.get(tp)
        if state is None and tp in seen.listed:
            replicas = tuple(seen.listed[tp].replicas)
            running[tp] = Step(replicas, replicas)
            found[tp] = PartitionStatus(tp, "moving", replicas, target, why=_BEHIND)
        elif state is None:
            found[tp] = PartitionStatus(tp, "gone", (), target, why="the partition no longer exists")
        elif tp in seen.listed:
            listed = _listed_step(state, seen.listed[tp])
            step = listed
            if mode == "unbatched":
                step = listed if held or not _replaces(target, seen.listed[tp]) else listed._replace(replicas=target)
            elif not seen.is_foreign(tp, target):
                step = _without_dead(listed, target, state, seen)
            if step.replicas != listed.replicas:
                mended[tp] = step.replicas
            running[tp] = step
            why = _held_up(step, target, seen)
            found[tp] = PartitionStatus(tp, "moving", listed.current, target, step.replicas, why)
        elif tp in seen.behind:
            running[tp] = Step(state.replicas, state.replicas)
            found[tp] = PartitionStatus(tp, "moving", state.replicas, target, why=_BEHIND)
        elif state.leader is not None and _to_elect(state, target, mode):
            # The partition counts as a leader movement until the leader has moved.
            elections[tp] = Step((state.leader, *state.replicas), state.replicas)
            found[tp] = PartitionStatus(tp, "electing", state.replicas, target, why=f"leader is {state.leader}")
        elif state.replicas == target:
            missing = sorted(set(target) - set(state.isr))
            why = f"brokers {missing} are not in sync" if missing else _OFFLINE if state.leader is None else ""
            found[tp] = PartitionStatus(tp, "waiting" if why else "done", state.replicas, target, why=why)
        else:
            wanted.append((tp, _step(state, target, seen, limits, mode)))
            found[tp] = PartitionStatus(tp, "deferred", state.replicas, target)
    limits = _of_turn(limits, mode)
    elect = _elected_now(list(elections), limits, running)
    running |= {tp: elections[tp] for tp in elect}
    why = f"{counted(limits.leaders or 0, 'leader movement', 'is')} in flight"
    found |= {tp: replace(found[tp], state="deferred", why=why) for tp in elections if tp not in running}
    hold = held or ("the batch before has not ended" if mode == "batched" and running else "")
    fresh = [] if hold else [(tp, step) for tp, step in wanted if tp not in seen.refused]
    batch = choose_batch(fresh, limits, running)
    # A refused step, which may be refused for ever, takes the place of no other step.
    if seen.refused and not batch.steps and not hold:
        batch = choose_batch(wanted, limits, running)
    found |= {tp: _asked_for(found[tp], step, batch, seen, hold) for tp, step in wanted}
    start = {**mended, **{tp: step.replicas for tp, step in batch.steps.items()}}
    return Turn(start, tuple(elect), tuple(found.values()))


def _elected_now(
    due: list[TopicPartition], limits: BatchLimits, running: Mapping[TopicPartition, Step]
) -> list[TopicPartition]:
    """Return the due elections that L permits now; after a restart of a broker many may be due at once."""
    if limits.leaders is None:
        return due
    return due[: max(0, limits.leaders - sum(step.moves_leader for step in running.values()))]


def _of_turn(limits: BatchLimits, mode: Mode) -> BatchLimits:
    """Return the limits that a mode obeys: none at once; in batches, a whole batch begins in one turn."""
    return BatchLimits() if mode == "unbatched" else replace(limits, starts=None) if mode == "batched" else limits


def _asked_for(
    before: PartitionStatus, step: Step | NoStep, batch: Batch, seen: ReassignmentState, hold: str
) -> PartitionStatus:
    """Return the status of a partition that needs a step: the step starts, the controller refused it, or it waits."""
    tp = before.tp
    if isinstance(step, NoStep):
        return replace(before, state="waiting", why=step.reason)
    if tp in seen.refused:
        return replace(before, state="waiting", why=f"the controller refused {list(step.replicas)}: {seen.refused[tp]}")
    if tp in batch.steps:
        return replace(before, state="moving", step=batch.steps[tp].replicas)
    return replace(before, why=hold or batch.deferred[tp])


def _step(
    state: PartitionState, target: Replicas, seen: ReassignmentState, limits: BatchLimits, mode: Mode
) -> Step | NoStep:
    if mode == "unbatched":
        return Step(state.replicas, target)
    if not state.isr or state.leader is None:
        return NoStep(_OFFLINE)
    view = PartitionView(state.replicas, target, state.isr, seen.min_insync.get(state.tp.topic, 1))
    step = next_step(view, seen.live, limits.replicas)
    assert step is not None  # replicas differ from the target
    if isinstance(step, NoStep):
        return step
    step = _without_dead(step, target, state, seen)
    if leaves_enough(view, step):
        return step
    # Dead replicas, which no step has, may have counted as those that stay.
    alive = _without_dead(Step(state.replicas, state.replicas), target, state, seen).replicas
    other = next_step(view._replace(current=alive), seen.live, limits.replicas)
    if isinstance(other, Step) and leaves_enough(view, instead := Step(state.replicas, other.replicas)):
        return instead
    lagging = [broker for broker in step.replicas if broker not in state.isr and broker not in step.adding]
    if not lagging:
        return step
    return NoStep(f"brokers {lagging} are not in sync: the step would leave fewer than min.insync.replicas")


def _without_dead(step: Step, target: Replicas, state: PartitionState, seen: ReassignmentState) -> Step:
    """Return the step without old replicas on dead brokers: else it would not complete before they are in sync.

    KIP-435's steps keep such replicas until a later step drops them; a dead one serves no client meanwhile. A listed
    step of another plan may have no other replicas: it stays.
    """
    dead = {b for b in step.replicas if b not in seen.live and b not in target and b not in state.isr}
    return Step(step.current, tuple(b for b in step.replicas if b not in dead) or step.replicas)


def _replaces(target: Replicas, running: Reassignment) -> bool:
    """Return whether a request of the target replaces a listed reassignment to other replicas.

    KRaft keeps the adding replicas when a request adds none. If the request removes one of these, Kafka 4.3.1 does not
    end the reassignment (docs/kip455.md): a user must cancel it first.
    """
    other = set(running.target) != set(target)
    return other and (set(running.adding) <= set(target) or not set(target) <= set(running.replicas))


def _held_up(step: Step, target: Replicas, seen: ReassignmentState) -> str:
    """Return why a step in flight may take long, or leads elsewhere; empty without a reason."""
    foreign = not set(step.adding) <= set(target)
    whys = [f"another client reassigns it to {list(step.replicas)}"] if foreign else []
    dead = [broker for broker in step.replicas if broker not in seen.live]
    return "; ".join([*whys, f"brokers {dead} are offline"] if dead else whys)


def _listed_step(state: PartitionState, listed: Reassignment) -> Step:
    """Return the step that the controller lists: its merged replicas begin with the target's, in their order."""
    before, after = listed.existing, listed.target
    old_leader = state.leader if state.leader is not None else before[0] if before else after[0]
    return Step((old_leader, *(broker for broker in before if broker != old_leader)), after)


def _to_elect(state: PartitionState, target: Replicas, mode: Mode) -> bool:
    """Return whether the target's leader is in front and in sync, but does not lead: an election is due.

    The driver elects no other broker: a partition that has not begun may be led by any replica until it moves.
    """
    in_front = state.replicas == target if mode == "unbatched" else state.replicas[:1] == target[:1]
    return in_front and state.leader != target[0] and target[0] in state.isr


def remaining(plan: Plan, seen: ReassignmentState) -> Plan:
    """Return the plan of the remaining moves, as a cancelled move leaves it."""
    return Plan(
        {
            tp: target
            for tp, target in plan.targets.items()
            if tp in seen.states and (tp in seen.listed or seen.states[tp].replicas != target)
        }
    )


def read_state(
    admin: Admin, topics: Sequence[str], minimum: Mapping[str, int], topic_ids: Mapping[str, str] | None = None
) -> ReassignmentState:
    """Return the listed reassignments, the partitions and the live brokers. Raise `KafkaError`.

    The result excludes deleted topics, and topics with another id than in `topic_ids`: these were created again.
    """
    listed, states = admin.reassignments(topics), existing_partitions(admin, topics)
    known = topic_ids or {}
    again = {tp.topic for tp, state in states.items() if is_recreated(known.get(tp.topic), state.topic_id)}
    states = {tp: state for tp, state in states.items() if tp.topic not in again}
    listed = {tp: running for tp, running in listed.items() if tp.topic not in again}
    live = frozenset(broker.id for broker in admin.cluster().brokers)
    return ReassignmentState(listed, states, live, minimum)


def min_insync(admin: Admin, topics: Sequence[str]) -> dict[str, int]:
    """Return `min.insync.replicas` of each topic; 1 for a deleted one, which has nothing to move."""
    return {topic: _minimum(admin, topic) for topic in topics}


def _minimum(admin: Admin, topic: str) -> int:
    try:
        return int(admin.topic_setting(topic, "min.insync.replicas") or 1)
    except KafkaError as error:
        if error.name != UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return 1
