"""The monitor of a batched move's steps. It compares the controller's list with the plan and the limits.

`BatchAccount` is pure. `BatchMonitor` polls the controller for it, whatever drives the move.
"""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from operator import not_

from results.contract.move import BatchingPolls, Limits
from results.contract.schema import Sample
from results.criteria.planned_steps import PLANNED
from results.criteria.quantities import DRIVER
from testbed.experiments.kip455_trace import Trace, readable
from testbed.experiments.layout import PartitionGroup
from testbed.experiments.move_driver import TransferResult
from testbed.experiments.move_environment import SHOWN, MoveEnvironment
from testbed.kafka.types import PartitionState, Reassignment, TopicPartition
from testbed.probes.recorder import Poller, now_us
from testbed.reassignment.batching.step import PartitionView, steps_to_target
from testbed.reassignment.batching.turn import min_insync
from testbed.reassignment.plan import Plan
from testbed.reassignment.progress import TraceEntry
from testbed.wait import WaitTimeout, wait_for

Replicas = tuple[int, ...]
Listed = Mapping[TopicPartition, Reassignment]
States = Mapping[TopicPartition, PartitionState]
STEP_POLL_S = 0.3
"""Seconds between polls of the controller's list. A step that only removes replicas is shorter."""
SETTLED_S = 10.0


@dataclass
class _PartitionSteps:
    """One partition: its replicas before the running step, and all brokers that have been its replicas."""

    before: Replicas
    members: set[int]
    step: Reassignment | None = None
    moves_leader: bool = False
    adding: set[int] = field(default_factory=set)
    last: tuple[object, ...] | None = None
    replicas: Replicas = ()

    def end_step(self) -> None:
        """Note that the running step, if any, has ended."""
        if self.step is not None:
            self.before = self.step.target
            self.members |= set(self.before)


class BatchAccount:
    """The account of all polls of a move. `summary` returns the result."""

    def __init__(self, plan: Plan, mode: str, limits: Limits, min_insync: Mapping[str, int]) -> None:
        self._plan, self._mode, self._limits, self._min_insync = plan, mode, limits, min_insync
        self._known: dict[TopicPartition, _PartitionSteps] = {}
        self._polls = self._steps = 0
        self._last_us: int | None = None
        self._gap_us: int | None = None
        self._most_in_flight = self._most_leaders = self._most_added = self._fetching = 0
        self._added_over: list[str] = []
        self._again: list[str] = []

    def look(self, ts_us: int, listed: Listed, states: States) -> list[TraceEntry]:
        """Add one poll: the controller's list, then the partitions. Return the changed partitions."""
        self._polls += 1
        if self._last_us is not None:
            self._gap_us = max(self._gap_us or 0, ts_us - self._last_us)
        self._last_us = ts_us
        mine = {tp: found for tp, found in listed.items() if tp in self._plan.targets}
        for tp in self._plan.targets:
            state = states.get(tp)
            if state is not None:
                self._partition(tp, mine.get(tp), state)
        self._most_in_flight = max(self._most_in_flight, len(mine))
        self._most_leaders = max(self._most_leaders, sum(self._known[tp].moves_leader for tp in mine if tp in states))
        return list(self._changed(ts_us, mine, states))

    @property
    def leaders(self) -> int:
        """Number of steps, at the last poll, that move the preferred leader."""
        return sum(known.moves_leader for known in self._known.values() if known.step is not None)

    def summary(self) -> BatchingPolls:
        """Return the summary of all polls; the last poll counts as the end."""
        wrong = [
            f"{tp}: {list(known.replicas)}, not {list(target)}"
            for tp, target in sorted(self._plan.targets.items())
            if (known := self._known.get(tp)) is not None and (known.step is not None or known.replicas != target)
        ]
        wrong += [f"{tp}: never seen" for tp in sorted(self._plan.targets) if tp not in self._known]
        return BatchingPolls(
            mode=self._mode,
            limits=self._limits,
            polls=self._polls,
            gap_s=None if self._gap_us is None else self._gap_us / 1e6,
            partitions=len(self._known),
            steps=self._steps,
            most_in_flight=self._most_in_flight,
            most_leaders=self._most_leaders,
            most_added=self._most_added,
            fetching=self._fetching,
            added_over=tuple(self._added_over[:SHOWN]),
            astray=tuple(wrong[:SHOWN]),
            again=tuple(self._again[:SHOWN]),
        )

    def _partition(self, tp: TopicPartition, listed: Reassignment | None, state: PartitionState) -> None:
        known = self._known.get(tp)
        if known is None:
            adding = set(listed.adding) if listed else set()
            before = tuple(broker for broker in state.replicas if broker not in adding)
            known = self._known[tp] = _PartitionSteps(before, set(before))
        known.replicas = state.replicas
        if listed is None:
            # The poll reads the partition after the list: the partition may be in a step that the list does not show.
            known.end_step()
            known.step, known.moves_leader, known.adding = None, False, set()
            return
        self._fetching = max(self._fetching, len(listed.replicas) - 1)
        if listed != known.step:
            self._new_step(tp, known, listed, state)
        known.step = listed

    def _new_step(
        self, tp: TopicPartition, known: _PartitionSteps, listed: Reassignment, state: PartitionState
    ) -> None:
        """Count a step that the last poll did not list. A step listed then has ended."""
        if known.step is not None and not set(known.step.adding) <= set(listed.adding):
            known.end_step()
        target, old = listed.target, set(listed.existing)
        self._steps += 1
        # A whole step may occur between two polls: then the leader is the first replica before this step.
        first = known.before[0] if set(known.before) == old else state.leader
        known.moves_leader = first is not None and target[0] != first
        known.members |= old
        twice = (set(listed.adding) - known.adding) & known.members
        self._again += [f"{tp}: broker {broker}" for broker in sorted(twice)]
        known.adding = set(listed.adding)
        self._most_added = max(self._most_added, len(listed.adding))
        short = self._min_insync.get(tp.topic, 1) - len(old & set(state.isr))
        most = self._limits.replicas
        if most is not None and len(listed.adding) > max(most, short):
            self._added_over.append(f"{tp}: {sorted(listed.adding)}")

    def _changed(self, ts_us: int, listed: Listed, states: States) -> Iterator[TraceEntry]:
        for tp in sorted(self._plan.targets):
            state = states.get(tp)
            if state is None:
                continue
            step = listed.get(tp)
            adding, removing = (step.adding, step.removing) if step else ((), ())
            now = (state.replicas, adding, removing, state.isr, state.leader)
            if now != self._known[tp].last:
                self._known[tp].last = now
                yield TraceEntry(ts_us, tp, state.replicas, adding, removing, state.isr, state.leader)


def view(group: PartitionGroup, ids: Mapping[str, int], min_insync: int) -> PartitionView:
    """Return a group's partitions before the first step: all replicas are in sync."""
    current, target = (tuple(ids[host] for host in hosts) for hosts in (group.current, group.target))
    return PartitionView(current, target, current, min_insync)


class BatchMonitor:
    """A poller of the controller's list while a move runs. It records every change of a partition."""

    def __init__(self, environment: MoveEnvironment) -> None:
        self._environment = environment
        self._account: BatchAccount | None = None
        self._poller: Poller | None = None
        self._end_seen = False

    def start(self) -> None:
        """Begin to poll the controller's list."""
        setup, plan = self._environment.setup, self._environment.throttled_plan()
        asked = Limits(setup.limits.replicas, setup.limits.partitions, setup.limits.leaders)
        self._account = BatchAccount(plan, setup.mode, asked, min_insync(self._environment.admin, plan.topics()))
        self._poller = self._environment.recorder.poll("steps", STEP_POLL_S, self._look)
        self._record_plan()

    def _record_plan(self) -> None:
        """Record each partition's replicas before the move and after each step."""
        environment, setup = self._environment, self._environment.setup
        for group in environment.throttled_groups():
            before = view(group, environment.ids, environment.layout.min_insync)
            steps = steps_to_target(before, environment.ids.values(), setup.limits.replicas)
            then = [before.target] if setup.mode == "unbatched" else [step.replicas for step in steps]
            for tp in group.tps():
                detail = {"topic": tp.topic, "partition": tp.partition, "replicas": [before.current, *then]}
                environment.recorder.event(PLANNED, str(tp), detail)

    def read_log(self) -> None:
        """Record each change of the moving partitions from the metadata log. A failure is an event."""
        environment = self._environment
        trace = Trace(environment.recorder, environment.admin, environment.throttled_plan().topics())
        compared = trace.finish(readable(environment.testbed))
        if compared.problem:
            environment.recorder.event("note", "the metadata log was not read", {"error": compared.problem})

    def stop(self) -> None:
        """End the polls."""
        if self._poller is not None:
            self._poller.stop()
            self._poller = None

    def await_end(self) -> None:
        """Poll, after `stop`, until the last step has the target's replicas. Raise `WaitTimeout` when it does not.

        The metadata of a broker may be older than the controller's.
        """
        wait_for(self._astray, not_, SETTLED_S, STEP_POLL_S, "the last step")
        self._end_seen = True

    def summary(self) -> BatchingPolls | None:
        """Return the summary of all polls; None without a poll."""
        return None if self._account is None else self._account.summary()

    def complete(self, result: TransferResult) -> TransferResult:
        """End the polls of a transfer and return its result with the summary."""
        self.stop()
        if result.done.ok and not self._end_seen:
            try:
                self.await_end()
            except WaitTimeout as error:
                self._environment.recorder.event("note", "another end than the plan has", {"error": str(error)})
        return replace(result, batching=self.summary())

    def _astray(self) -> tuple[str, ...]:
        self._environment.recorder.add(self._look())
        found = self.summary()
        return () if found is None else found.astray

    def _look(self) -> list[Sample]:
        """Poll once; return the samples. Every change of a partition is an event."""
        if self._account is None:
            return []
        environment = self._environment
        topics = environment.throttled_plan().topics()
        hosts = {broker: host for host, broker in environment.ids.items()}
        asked, listed = now_us(), environment.admin.reassignments(topics)
        samples = []
        for entry in self._account.look(asked, listed, environment.admin.partitions(topics)):
            detail = {name: getattr(entry, name) for name in ("replicas", "adding", "removing", "isr", "leader")}
            environment.recorder.event("partition.seen", str(entry.tp), detail)
            if entry.leader in hosts:
                samples.append(Sample(asked, hosts[entry.leader], "partition.led", 1.0, *astuple(entry.tp)))
        values = {"move.listed": float(len(listed)), "move.leaders": float(self._account.leaders)}
        return [*samples, *(Sample(asked, DRIVER, metric, value) for metric, value in values.items())]
