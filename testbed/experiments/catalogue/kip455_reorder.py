"""A reassignment that only reorders the replicas: no data moves, and the leader stays until an election."""

from results.contract.steps import RequiredState
from testbed.experiments.kip455_actions import ELECT_PREFERRED_LEADER, end, never, reassign, step, still
from testbed.experiments.kip455_executor import kip455_experiment

_BEFORE = still((1, 2, 3), ordered=True, leaders=(1,))
_REORDERED = still((3, 2, 1), ordered=True, leaders=(1,))

EXPERIMENT = kip455_experiment(
    "kip455-reorder",
    "only the order of the replicas changes",
    order=16,
    steps=[
        step(
            "asked",
            reassign(3, 2, 1),
            _BEFORE,
            never("adding", RequiredState(adding=(3,)), kip="AR: [], RR: []"),
            end("reordered", _REORDERED),
        ),
        step("elected", ELECT_PREFERRED_LEADER, _REORDERED, end("leads", RequiredState(order=(3, 2, 1), leaders=(3,)))),
    ],
)
