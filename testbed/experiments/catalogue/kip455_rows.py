"""The six rows of ZooKeeper's controller for {1, 2, 3} to {4, 5, 6}: which of them KRaft still shows.

There each row was written by itself: all in sync, a leader of the target, the old replicas out of the ISR, the end. In
KRaft the change of the ISR that brings in the last adding replica is the end as well, in one record.
"""

from results.contract.steps import Wanted
from testbed.experiments.kip455 import experiment
from testbed.experiments.steps import LET_GO, Step, ask, before, end, moving, never, still

_OLD, _NEW = (1, 2, 3), (4, 5, 6)
_SECOND = moving(_NEW, _OLD)

EXPERIMENT = experiment(
    "kip455-rows",
    "the six rows of {1, 2, 3} to {4, 5, 6}: which of them are still seen",
    partitions=[_OLD],
    steps=[
        Step(
            "asked",
            ask(*_NEW),
            (
                before(still(_OLD, ordered=True, leaders=(1,))),
                end("row-2", _SECOND),
                end("row-2-order", Wanted(order=(*_NEW, *_OLD), leaders=(1,))),
            ),
        ),
        Step(
            "let-go",
            LET_GO,
            (
                before(_SECOND),
                never("row-3", Wanted(adding=_NEW, isr=(*_OLD, *_NEW)), kip="all six in sync, AR and RR still listed"),
                never("row-4", Wanted(adding=_NEW, leaders=(4,)), kip="4 leads, AR and RR still listed"),
                never(
                    "row-5", Wanted(adding=_NEW, isr=_NEW), kip="the old ones out of the ISR, AR and RR still listed"
                ),
                end("row-6", still(_NEW, ordered=True, leaders=(4,))),
            ),
        ),
    ],
)
