"""An overridden move is cancelled: [1, 2, 3] to [4, 2, 3], to [5, 2, 3], and back to where it came from.

That is what the KIP says. In KRaft the first move's replica, 4, has become one of those that there were. To be rid of
it the original replicas are asked for.
"""

from results.contract.steps import Wanted
from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import LET_GO, Step, ask, before, cancel, end, moving, still

_FIRST = moving(adding=(4,), removing=(1,), staying=(2, 3))
_SECOND = moving(adding=(5,), removing=(1, 4), staying=(2, 3), isr=(1, 2, 3))
_CANCELLED = Wanted(replicas=(1, 2, 3, 4), adding=(), removing=(), isr=(1, 2, 3))

EXPERIMENT = experiment(
    "kip455-override-cancelled",
    "a move is overridden, then cancelled",
    partitions=[(1, 2, 3)],
    steps=[
        Step("asked", ask(4, 2, 3), (before(still((1, 2, 3), leaders=(1,))), end("moving", _FIRST))),
        Step("overridden", ask(5, 2, 3), (before(_FIRST), end("moving", _SECOND))),
        Step(
            "cancelled",
            cancel(),
            (
                before(_SECOND),
                end("four-stays", _CANCELLED, kip="the replica set prior to the reassignment, {1, 2, 3}"),
            ),
        ),
        Step("let-go", LET_GO, (before(_CANCELLED), end("four-in-sync", still((1, 2, 3, 4))))),
        Step("back", ask(1, 2, 3), (before(still((1, 2, 3, 4))), end("done", still((1, 2, 3), ordered=True)))),
    ],
)
