"""A reassignment in steps, watched from outside: what the controller lists, compared with what was promised. Pure.

It knows the plan and the limits, and nothing of who carries them out or what was asked for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from results.contract.batching import BatchingSeen, Limits
from testbed.kafka.types import PartitionState, Reassignment, TopicPartition
from testbed.reassignment.plan import Plan
from testbed.reassignment.progress import TraceEntry

Replicas = tuple[int, ...]
Listed = Mapping[TopicPartition, Reassignment]
States = Mapping[TopicPartition, PartitionState]
_SHOWN = 10


@dataclass
class _Partition:
    """What is remembered of one partition: its list before the step under way, and who has been a replica of it."""

    before: Replicas
    members: set[int]
    step: Reassignment | None = None
    moves_leader: bool = False
    adding: set[int] = field(default_factory=set)
    last: tuple[object, ...] | None = None
    replicas: Replicas = ()


class BatchWatch:
    """Told of every poll; `seen` says what all of them came to."""

    def __init__(self, plan: Plan, mode: str, limits: Limits, min_insync: Mapping[str, int]) -> None:
        self._plan, self._mode, self._limits, self._min_insync = plan, mode, limits, min_insync
        self._known: dict[TopicPartition, _Partition] = {}
        self._polls = self._steps = 0
        self._last_us: int | None = None
        self._gap_us: int | None = None
        self._most_in_flight = self._most_leaders = self._most_added = self._fetching = 0
        self._added_over: list[str] = []
        self._again: list[str] = []

    def look(self, ts_us: int, listed: Listed, states: States) -> list[TraceEntry]:
        """One poll: what is listed, and then the partitions. Returns those that are not as at the poll before."""
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
        """How many steps under way at the last poll move the preferred leader."""
        return sum(known.moves_leader for known in self._known.values() if known.step is not None)

    def seen(self) -> BatchingSeen:
        """What all polls came to; the last one is taken for the end."""
        wrong = [
            f"{tp}: {list(known.replicas)}, not {list(target)}"
            for tp, target in sorted(self._plan.targets.items())
            if (known := self._known.get(tp)) is not None and (known.step is not None or known.replicas != target)
        ]
        wrong += [f"{tp}: never seen" for tp in sorted(self._plan.targets) if tp not in self._known]
        return BatchingSeen(
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
            added_over=tuple(self._added_over[:_SHOWN]),
            astray=tuple(wrong[:_SHOWN]),
            again=tuple(self._again[:_SHOWN]),
        )

    def _partition(self, tp: TopicPartition, listed: Reassignment | None, state: PartitionState) -> None:
        known = self._known.get(tp)
        if known is None:
            adding = set(listed.adding) if listed else set()
            before = tuple(broker for broker in state.replicas if broker not in adding)
            known = self._known[tp] = _Partition(before, set(before))
        known.replicas = state.replicas
        if listed is None:
            # The partition was looked at after the list: it may be in a step that the list did not have yet.
            if known.step is not None:
                known.before = _target(known.step)
                known.members |= set(known.before)
            known.step, known.moves_leader, known.adding = None, False, set()
            return
        self._fetching = max(self._fetching, len(listed.replicas) - 1)
        if listed != known.step:
            self._new_step(tp, known, listed, state)
        known.step = listed

    def _new_step(self, tp: TopicPartition, known: _Partition, listed: Reassignment, state: PartitionState) -> None:
        """A step that was not listed at the poll before: the one before that, if there was one, has ended."""
        if known.step is not None and set(known.step.adding) & set(listed.adding) != set(known.step.adding):
            known.before = _target(known.step)
            known.members |= set(known.before)
        target, old = _target(listed), set(listed.replicas) - set(listed.adding)
        self._steps += 1
        # A step may have come and gone between two polls: then who was first before is told by who leads.
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


def _target(listed: Reassignment) -> Replicas:
    """What a listed step comes to: its merged replicas name the target's first, in their order."""
    return tuple(broker for broker in listed.replicas if broker not in listed.removing)
