"""A move is overridden while no controller is active: the next one to be elected takes it.

The controllers are nodes of their own: no replica goes down with the one that is killed.
"""

from testbed.experiments.kip455 import DEDICATED, experiment
from testbed.experiments.steps import LET_GO, KillController, Start, Step, ask, before, end, moving, still

_FIRST = moving(adding=(2,), removing=(1,))
_SECOND = moving(adding=(3,), removing=(1, 2), isr=(1,))

EXPERIMENT = experiment(
    "kip455-override-failover",
    "another target during a failover of the controller",
    brokers=3,
    dedicated=True,
    topology=DEDICATED,
    partitions=[(1,)],
    bytes=8_000_000,
    steps=[
        Step("asked", ask(2), (before(still((1,))), end("moving", _FIRST))),
        Step("controller-down", KillController()),
        Step(
            "overridden",
            ask(3),
            (before(_FIRST), end("moving", _SECOND, kip="2 leaves R at once: R {1, 3}, AR {3}, RR {1}")),
            timeout_s=40.0,
        ),
        Step("controller-back", Start()),
        Step("let-go", LET_GO, (before(_SECOND), end("done", still((3,), leaders=(3,))))),
    ],
)
