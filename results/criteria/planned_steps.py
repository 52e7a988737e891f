"""The steps of a move (KIP-435) in the metadata log, beside the steps that the plan and the limit R give. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from results.criteria.series import RunSeries
from results.criteria.step_measures import LOG, timelines

PLANNED = "steps.planned"
"""The event of one partition: `topic`, `partition`, and `replicas`, a list before the move and after each step."""
RETURNS, LEFT = "return.started", "broker.leaving"

Replicas = tuple[int, ...]
Sequences = Mapping[tuple[str, int], tuple[Replicas, ...]]


@dataclass(frozen=True, slots=True)
class PlannedSteps:
    """Each partition's replicas before the move and after each step: planned, and as the controller logged them."""

    planned: Sequences
    logged: Sequences

    @property
    def unknown(self) -> list[tuple[str, int]]:
        """Return the planned partitions of which the log has nothing."""
        return sorted(self.planned.keys() - self.logged.keys())

    @property
    def different(self) -> list[tuple[str, int]]:
        """Return the partitions that went another way than planned."""
        return sorted(tp for tp, steps in self.planned.items() if self.logged.get(tp, steps) != steps)


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
    spans = timelines(run.events_of((LOG,)))
    logged = {}
    for tp, found in spans.items():
        if tp in planned:
            states = [span.state for span in found if until is None or span.begin < until]
            logged[tp] = _sequence([_target(state.replicas, state.removing) for state in states])
    return PlannedSteps(planned, logged)


def _target(replicas: Sequence[int], removing: Sequence[int]) -> Replicas:
    """Return the replicas that a step ends with: a listed partition has those of the target first, in order."""
    return tuple(broker for broker in replicas if broker not in removing)


def _sequence(states: Sequence[Sequence[int]]) -> tuple[Replicas, ...]:
    """Return the states without repetitions: a change of the ISR or of the leader is no step."""
    return tuple(state for state, _same in groupby(tuple(each) for each in states))
