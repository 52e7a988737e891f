"""Partitions are added to a topic while one of its partitions moves: neither disturbs the other.

But the moving partition counts for as many replicas as it has in between: new ones must have as many.
"""

from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import LET_GO, AddPartitions, Step, ask, before, end, moving, still

_UNDER_WAY = moving(adding=(4,), removing=(1,), staying=(2, 3))
_NEW = still((4, 5, 6, 1), ordered=True, leaders=(4,))

EXPERIMENT = experiment(
    "kip455-partitions-added",
    "partitions are added to a topic while it moves",
    partitions=[(1, 2, 3)],
    steps=[
        Step("asked", ask(4, 2, 3), (before(still((1, 2, 3), leaders=(1,))), end("moving", _UNDER_WAY))),
        Step(
            "as-many-as-before",
            AddPartitions([(4, 5, 6)]),
            (before(_UNDER_WAY), end("moving-on", _UNDER_WAY)),
            "INVALID_REPLICA_ASSIGNMENT",
        ),
        Step(
            "as-many-as-now",
            AddPartitions([(4, 5, 6, 1)]),
            (before(_UNDER_WAY), end("moving-on", _UNDER_WAY), end("new", _NEW, 1)),
        ),
        Step(
            "let-go",
            LET_GO,
            (
                before(_UNDER_WAY),
                end("done", still((4, 2, 3), ordered=True, leaders=(4,))),
                end("new", _NEW, 1),
            ),
        ),
    ],
)
