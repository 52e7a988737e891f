"""The steps of a move (KIP-435) in the metadata log, compared with the steps that the plan and R give. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from results.contract.steps import State
from results.criteria.sample_series import RunSeries
from results.criteria.step_measures import LOG, StateSpan, timelines

PLANNED = "steps.planned"
"""The event of one partition: `topic`, `partition`, and `replicas`, a list before the move and after each step."""
RETURNS, LEFT = "return.started", "broker.leaving"

Replicas = tuple[int, ...]
Sequences = Mapping[tuple[str, int], tuple[Replicas, ...]]


@dataclass(frozen=True, slots=True)
class PlannedSteps:
    """Each partition's replicas before the move and after each step: planned, and as the controller logged them.

    `shrunk` has the partitions of which a replica left the ISR during the move and stayed a replica, with the number of
    logged states until then. The plan has all replicas in sync. With fewer in sync a step may add replicas sooner, or
    leave out a dead one (KIP-435's rules 1 and 5).
    """

    planned: Sequences
    logged: Sequences
    shrunk: Mapping[tuple[str, int], int] = field(default_factory=dict)

    @property
    def unknown(self) -> list[tuple[str, int]]:
        """Return the planned partitions of which the log has nothing."""
        return sorted(self.planned.keys() - self.logged.keys())

    @property
    def different(self) -> list[tuple[str, int]]:
        """Return the partitions that went another way than planned while all replicas were in sync."""
        return [tp for tp in self._otherwise() if not self._explained(tp)]

    @property
    def open(self) -> list[tuple[str, int]]:
        """Return the partitions that went another way than planned after a replica had left the ISR."""
        return [tp for tp in self._otherwise() if self._explained(tp)]

    def _otherwise(self) -> list[tuple[str, int]]:
        return sorted(tp for tp, steps in self.planned.items() if self.logged.get(tp, steps) != steps)

    def _explained(self, tp: tuple[str, int]) -> bool:
        until = self.shrunk.get(tp)
        return until is not None and self.logged[tp][:until] == self.planned[tp][:until]


def measure_steps_taken(run: RunSeries) -> PlannedSteps:
    """Return the planned and the logged steps of a run.

    Both are empty for a run without planned steps, and for a run whose brokers left: then a step goes without them.
    """
    if run.events_of((LEFT,)):
        return PlannedSteps({}, {})
    planned = {
        (event.detail["topic"], event.detail["partition"]): _sequence(event.detail["replicas"])
        for event in run.events_of((PLANNED,))
    }
    until = min((event.us for event in run.events_of((RETURNS,))), default=None)
    started_us = run.event_us("move.started") or 0
    spans = timelines(run.events_of((LOG,)))
    logged: dict[tuple[str, int], tuple[Replicas, ...]] = {}
    shrunk: dict[tuple[str, int], int] = {}
    for tp, found in spans.items():
        if tp in planned:
            within = [span for span in found if until is None or span.begin < until]
            states = [span.state for span in within]
            logged[tp] = _taken(states)
            if (first := _first_shrunk(within, started_us)) is not None:
                shrunk[tp] = len(_taken(states[:first]))
    return PlannedSteps(planned, logged, shrunk)


def _first_shrunk(spans: Sequence[StateSpan], started_us: int) -> int | None:
    """Return the index of the first state of a move without a replica in the ISR that was in it; None without one."""
    for index, (before, after) in enumerate(pairwise(spans), 1):
        left = {*before.state.isr} - {*after.state.isr}
        if after.begin >= started_us and left & {*after.state.replicas}:
            return index
    return None


def _taken(states: Sequence[State]) -> tuple[Replicas, ...]:
    return _sequence([_target(state.replicas, state.removing) for state in states])


def _target(replicas: Sequence[int], removing: Sequence[int]) -> Replicas:
    """Return the replicas that a step ends with: a listed partition has those of the target first, in order."""
    return tuple(broker for broker in replicas if broker not in removing)


def _sequence(states: Sequence[Sequence[int]]) -> tuple[Replicas, ...]:
    """Return the states without repetitions: a change of the ISR or of the leader is no step."""
    return tuple(state for state, _same in groupby(tuple(each) for each in states))
