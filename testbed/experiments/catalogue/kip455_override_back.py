"""A move is given its own origin as its target. That is no cancellation: its new replica is adding and removing then.

What was adding stays so when the new target adds nothing, and what is adding must come into sync before a move ends. It
takes a cancellation to end it.
"""

from results.contract.steps import Wanted
from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import Step, ask, before, cancel, end, moving, never, still

_UNDER_WAY = moving(adding=(4,), removing=(1,), staying=(2, 3))
_BOTH = Wanted(replicas=(1, 2, 3, 4), adding=(4,), removing=(4,), isr=(1, 2, 3))
_BACK = still((1, 2, 3), ordered=True, leaders=(1,))

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
                never("done", _BACK, kip="a new move, with AR [] and RR []: done at once"),
                end("adding-and-removing", _BOTH),
            ),
            settle_s=2.0,
        ),
        Step("cancelled", cancel(), (before(_BOTH), end("done", _BACK))),
        Step("nothing-left", cancel(), answer="NO_REASSIGNMENT_IN_PROGRESS for 0"),
    ],
)
