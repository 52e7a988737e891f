"""KIP-455's example of a cancellation: [1, 2, 3] to [3, 4, 5], cancelled when 4 is in sync and 5 is not.

Broker 5 is down meanwhile, so that this state lasts until it has been seen. A second cancellation finds nothing.
"""

from results.contract.steps import Wanted
from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import Kill, Start, Step, ask, before, cancel, end, moving, seen, still

_ADDED, _REMOVED, _STAYS = (4, 5), (1, 2), (3,)
_FOUR_IN_SYNC = moving(_ADDED, _REMOVED, _STAYS, isr=(1, 2, 3, 4))

EXPERIMENT = experiment(
    "kip455-cancel",
    "KIP-455's example of a cancellation, with one of two adding replicas in sync",
    partitions=[(1, 2, 3)],
    hold_bytes_per_s=None,
    steps=[
        Step("five-down", Kill(5)),
        Step(
            "asked",
            ask(3, 4, 5),
            (
                before(still((1, 2, 3), ordered=True, leaders=(1,))),
                seen("moving", moving(_ADDED, _REMOVED, _STAYS), kip="I: [1, 2, 3], AR: [4, 5], RR: [1, 2]"),
                end("four-in-sync", _FOUR_IN_SYNC, kip="I: [1, 2, 3, 4], AR: [4, 5], RR: [1, 2]"),
            ),
        ),
        Step(
            "cancelled",
            cancel(),
            (
                before(_FOUR_IN_SYNC),
                end("back", still((1, 2, 3), leaders=(1,)), kip="R: [1, 2, 3], I: [1, 2, 3], AR: [], RR: []"),
                end("order", Wanted(order=(3, 1, 2)), kip="R: [1, 2, 3]; the order is not guaranteed"),
            ),
        ),
        Step("again", cancel(), answer="NO_REASSIGNMENT_IN_PROGRESS for 0"),
        Step("five-back", Start()),
    ],
)
