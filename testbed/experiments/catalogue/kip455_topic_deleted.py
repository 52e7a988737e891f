"""A topic is deleted while one of its partitions moves: the move is gone with it."""

from results.contract.steps import Wanted
from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import DeleteTopic, Step, ask, before, cancel, end, moving, still

_UNDER_WAY = moving(adding=(4,), removing=(1,), staying=(2, 3))

EXPERIMENT = experiment(
    "kip455-topic-deleted",
    "a topic is deleted while it moves",
    partitions=[(1, 2, 3)],
    steps=[
        Step("asked", ask(4, 2, 3), (before(still((1, 2, 3), leaders=(1,))), end("moving", _UNDER_WAY))),
        Step("deleted", DeleteTopic(), (before(_UNDER_WAY), end("gone", Wanted(gone=True)))),
        Step("nothing-left", cancel(), answer="UNKNOWN_TOPIC_OR_PARTITION for 0"),
    ],
)
