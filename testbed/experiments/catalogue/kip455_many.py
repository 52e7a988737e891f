"""2,000 partitions at once: asked for, listed and cancelled while their target is down, and moved when it is back.

A request has 1,000 at most. The first and the last of each are looked at; that all of them were taken is the answer.
"""

from results.contract.steps import Wanted
from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import Ask, DeleteTopic, Expect, Kill, Start, Step, before, cancel, end, moving, still

_COUNT = 2000
_LOOKED_AT = (0, 999, 1000, 1999)
_WAITS = moving(adding=(4,), removing=(1,))
_TO_FOUR = Ask(dict.fromkeys(range(_COUNT), (4,)))


def _all(name: str, wanted: Wanted) -> tuple[Expect, ...]:
    return tuple(end(f"{name}-{partition}", wanted, partition) for partition in _LOOKED_AT)


EXPERIMENT = experiment(
    "kip455-many",
    "2,000 partitions at once: asked for, listed, cancelled, moved",
    partitions=[(1,)] * _COUNT,
    bytes=0,
    hold_bytes_per_s=None,
    steps=[
        Step("four-down", Kill(4)),
        Step("asked", _TO_FOUR, (before(still((1,))), *_all("waits", _WAITS)), timeout_s=60.0),
        Step("cancelled", cancel(*range(_COUNT)), (before(_WAITS), *_all("back", still((1,)))), timeout_s=60.0),
        Step("four-back", Start()),
        Step("asked-again", _TO_FOUR, (before(still((1,))), *_all("moved", still((4,)))), timeout_s=120.0),
        Step("deleted", DeleteTopic(), (end("gone", Wanted(gone=True)),)),
    ],
)
