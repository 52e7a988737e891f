"""The replication factor goes up, [1, 2] to [1, 2, 3], and down, to [3] alone: what only loses is done at once."""

from results.contract.steps import Wanted
from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import LET_GO, Step, ask, before, end, moving, never, still

_UP = moving(adding=(3,), removing=(), staying=(1, 2))
_THREE = still((1, 2, 3), ordered=True, leaders=(1,))

EXPERIMENT = experiment(
    "kip455-replication-factor",
    "the replication factor goes up, and down",
    brokers=3,
    partitions=[(1, 2)],
    steps=[
        Step("up", ask(1, 2, 3), (before(still((1, 2), leaders=(1,))), end("moving", _UP))),
        Step("let-go", LET_GO, (before(_UP), end("done", _THREE))),
        Step(
            "down",
            ask(3),
            (
                before(_THREE),
                never("removing", Wanted(removing=(1, 2)), kip="a step of its own: AR [], RR [1, 2]"),
                end("done", still((3,), leaders=(3,))),
            ),
        ),
    ],
)
