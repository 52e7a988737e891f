"""The leader, which is to leave, dies while its partition moves: another leads, and the move ends without it."""

from results.contract.steps import Wanted
from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import LET_GO, Kill, Start, Step, ask, before, end, moving, still

_UNDER_WAY = moving(adding=(1,), removing=(4,), staying=(5, 6))
_WITHOUT = moving(adding=(1,), removing=(4,), staying=(5, 6), isr=(5, 6))

EXPERIMENT = experiment(
    "kip455-leader-dies",
    "the leader dies while its partition moves",
    partitions=[(4, 5, 6)],
    bytes=6_000_000,
    doomed=(4,),
    steps=[
        Step("asked", ask(1, 5, 6), (before(still((4, 5, 6), leaders=(4,))), end("moving", _UNDER_WAY))),
        Step(
            "leader-down",
            Kill(4),
            (before(_UNDER_WAY), end("moving-on", _WITHOUT), end("another-leads", Wanted(leaders=(5, 6)))),
            timeout_s=40.0,
        ),
        Step(
            "let-go",
            LET_GO,
            (before(_WITHOUT), end("done", still((1, 5, 6), ordered=True, leaders=(5, 6)))),
        ),
        Step("leader-back", Start()),
    ],
)
