"""Another target that shares an adding replica with the first: [1, 2, 3] to [4, 5, 3], then to [4, 6, 3]."""

from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import LET_GO, Step, ask, before, end, moving, still

_FIRST = moving(adding=(4, 5), removing=(1, 2), staying=(3,))
_SECOND = moving(adding=(6,), removing=(1, 2, 5), staying=(3, 4), isr=(1, 2, 3))

EXPERIMENT = experiment(
    "kip455-override-overlapping",
    "another target that shares an adding replica with the first",
    partitions=[(1, 2, 3)],
    steps=[
        Step("asked", ask(4, 5, 3), (before(still((1, 2, 3), leaders=(1,))), end("moving", _FIRST))),
        Step(
            "overridden",
            ask(4, 6, 3),
            (
                before(_FIRST),
                end("moving", _SECOND, kip="4 is adding still, 5 leaves at once: AR {4, 6}, RR {1, 2}"),
            ),
        ),
        Step("let-go", LET_GO, (before(_SECOND), end("done", still((4, 6, 3), ordered=True, leaders=(4,))))),
    ],
)
