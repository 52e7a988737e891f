"""After a move that its leader survives the old leader still leads; the preferred one does once it is elected."""

from results.contract.steps import Wanted
from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import LET_GO, Elect, Step, ask, before, end, moving, still

_UNDER_WAY = moving(adding=(4,), removing=(3,), staying=(1, 2))
_DONE = still((4, 1, 2), ordered=True, leaders=(1,))

EXPERIMENT = experiment(
    "kip455-preferred-leader",
    "the preferred leader is elected after a move",
    partitions=[(1, 2, 3)],
    steps=[
        Step("asked", ask(4, 1, 2), (before(still((1, 2, 3), leaders=(1,))), end("moving", _UNDER_WAY))),
        Step("let-go", LET_GO, (before(_UNDER_WAY), end("done", _DONE))),
        Step("elected", Elect(), (before(_DONE), end("leads", Wanted(order=(4, 1, 2), leaders=(4,))))),
    ],
)
