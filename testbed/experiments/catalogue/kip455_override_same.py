"""The same target is asked for again while its move is under way: nothing changes."""

from results.contract.steps import Wanted
from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import LET_GO, Step, ask, before, end, moving, never, still

_UNDER_WAY = moving(adding=(4,), removing=(1,), staying=(2, 3))

EXPERIMENT = experiment(
    "kip455-override-same",
    "the same target again",
    partitions=[(1, 2, 3)],
    steps=[
        Step("asked", ask(4, 2, 3), (before(still((1, 2, 3), leaders=(1,))), end("moving", _UNDER_WAY))),
        Step(
            "again",
            ask(4, 2, 3),
            (
                before(_UNDER_WAY),
                never("not-moving", Wanted(adding=()), kip="the move is cancelled, and begun anew"),
                end("moving", _UNDER_WAY),
            ),
            settle_s=1.0,
        ),
        Step("let-go", LET_GO, (before(_UNDER_WAY), end("done", still((4, 2, 3), ordered=True, leaders=(4,))))),
    ],
)
