"""KIP-455's own example: [1, 2, 3] to [4, 3, 2], replicas, ISR, adding and removing ones at each step."""

from results.contract.steps import Wanted
from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import LET_GO, Step, ask, before, end, moving, never, still

_UNDER_WAY = moving(adding=(4,), removing=(1,), staying=(2, 3))

EXPERIMENT = experiment(
    "kip455-example",
    "KIP-455's own example: one replica is exchanged",
    partitions=[(1, 2, 3)],
    steps=[
        Step(
            "asked",
            ask(4, 3, 2),
            (
                before(still((1, 2, 3), ordered=True, leaders=(1,))),
                end("moving", _UNDER_WAY, kip="R: [1, 4, 3, 2], I: [1, 2, 3], AR: [4], RR: [1]"),
                end("merged", Wanted(order=(4, 3, 2, 1), leaders=(1,)), kip="R: [1, 4, 3, 2]"),
            ),
        ),
        Step(
            "let-go",
            LET_GO,
            (
                before(_UNDER_WAY),
                never(
                    "in-sync-and-listed",
                    Wanted(adding=(4,), in_sync=(4,)),
                    kip="a state of its own: R: [1, 4, 3, 2], I: [1, 2, 3, 4], AR: [4], RR: [1]",
                ),
                end("done", still((4, 3, 2), ordered=True, leaders=(4,)), kip="R: [4, 3, 2], I: [2, 3, 4]"),
            ),
        ),
    ],
)
