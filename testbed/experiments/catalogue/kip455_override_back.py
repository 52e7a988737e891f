"""A move is given its own origin as its target: the same as a cancellation, but for the order."""

from results.steps import Wanted
from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import Step, ask, before, cancel, end, moving, never, still

_UNDER_WAY = moving(adding=(4,), removing=(1,), staying=(2, 3))

EXPERIMENT = experiment(
    "kip455-override-back",
    "a move is overridden with the replicas it came from",
    partitions=[(1, 2, 3)],
    steps=[
        Step("asked", ask(4, 2, 3), (before(still((1, 2, 3), leaders=(1,))), end("moving", _UNDER_WAY))),
        Step(
            "back",
            ask(1, 2, 3),
            (
                before(_UNDER_WAY),
                never("removing-four", Wanted(removing=(4,)), kip="a new move, with AR [] and RR []"),
                end("done", still((1, 2, 3), ordered=True, leaders=(1,))),
            ),
        ),
        Step("nothing-left", cancel(), answer="NO_REASSIGNMENT_IN_PROGRESS for 0"),
    ],
)
