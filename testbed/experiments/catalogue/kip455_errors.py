"""What is refused, partition by partition, by the protocol's names; what is not refused is taken all the same."""

from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import Ask, AskUnknown, Step, ask, before, cancel, end, moving, never, still

_REFUSED = "INVALID_REPLICA_ASSIGNMENT for 0"
_STILL = still((1, 2, 3), ordered=True, leaders=(1,))
_UNDER_WAY = moving(adding=(4,), removing=(1,), staying=(2, 3))
_UNTOUCHED = (before(_STILL), end("untouched", _STILL))

EXPERIMENT = experiment(
    "kip455-errors",
    "what is refused, partition by partition",
    partitions=[(1, 2, 3), (1, 2, 3)],
    steps=[
        Step("nothing-to-cancel", cancel(), _UNTOUCHED, "NO_REASSIGNMENT_IN_PROGRESS for 0"),
        Step("no-such-broker", ask(99, 2, 3), _UNTOUCHED, _REFUSED),
        Step("negative", ask(-1, 2, 3), _UNTOUCHED, _REFUSED),
        Step("twice-the-same", ask(2, 2, 3), _UNTOUCHED, _REFUSED),
        Step("no-such-topic", AskUnknown(), _UNTOUCHED, "UNKNOWN_TOPIC_OR_PARTITION for 0"),
        Step(
            "one-of-three",
            Ask({0: (4, 2, 3), 1: (99,), 7: (1,)}),
            (
                before(_STILL),
                end("moving", _UNDER_WAY),
                never("one-not-moving", _UNDER_WAY, 1),
                end("one-untouched", _STILL, 1),
            ),
            "INVALID_REPLICA_ASSIGNMENT for 1; UNKNOWN_TOPIC_OR_PARTITION for 7",
        ),
    ],
)
