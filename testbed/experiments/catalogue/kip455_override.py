"""A move is given another target before its adding replica is in sync: [1, 2, 3] to [4, 2, 3], then to [5, 2, 3]."""

from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import LET_GO, Step, ask, before, end, moving, still

_FIRST = moving(adding=(4,), removing=(1,), staying=(2, 3))
_SECOND = moving(adding=(5,), removing=(1, 4), staying=(2, 3), isr=(1, 2, 3))

EXPERIMENT = experiment(
    "kip455-override",
    "another target before the adding replica is in sync",
    partitions=[(1, 2, 3)],
    steps=[
        Step("asked", ask(4, 2, 3), (before(still((1, 2, 3), leaders=(1,))), end("moving", _FIRST))),
        Step(
            "overridden",
            ask(5, 2, 3),
            (
                before(_FIRST),
                end("moving", _SECOND, kip="4 leaves R at once: R {1, 2, 3, 5}, AR {5}, RR {1}"),
            ),
        ),
        Step("let-go", LET_GO, (before(_SECOND), end("done", still((5, 2, 3), ordered=True, leaders=(5,))))),
    ],
)
