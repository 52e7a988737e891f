"""KIP-455's scenarios of moves that the user cancels or gives another target: a table, as in `kip455.py`."""

from results.contract.steps import RequiredState
from testbed.experiments.kip455_actions import (
    KILL_CONTROLLER,
    START_BROKERS,
    cancel,
    end,
    kill_broker,
    let_go,
    moving,
    never,
    reassign,
    seen,
    step,
    still,
)
from testbed.experiments.kip455_executor import DEDICATED, kip455_experiment

_EXCHANGE = moving(adding=(4,), removing=(1,), staying=(2, 3))
_STILL_123 = still((1, 2, 3), ordered=True, leaders=(1,))
_OVERRIDDEN = moving(adding=(5,), removing=(1, 4), staying=(2, 3), isr=(1, 2, 3))
_ADDED, _REMOVED, _STAYS = (4, 5), (1, 2), (3,)
_FOUR_IN_SYNC = moving(_ADDED, _REMOVED, _STAYS, isr=(1, 2, 3, 4))
_OVERLAPPING_FIRST = moving(adding=(4, 5), removing=(1, 2), staying=(3,))
_OVERLAPPING_SECOND = moving(adding=(6,), removing=(1, 2, 5), staying=(3, 4), isr=(1, 2, 3))
_FOUR_ADDED = RequiredState(replicas=(1, 2, 3, 4), adding=(), removing=(), isr=(1, 2, 3))
_ADDING_AND_REMOVING = RequiredState(replicas=(1, 2, 3, 4), adding=(4,), removing=(4,), isr=(1, 2, 3))
_FAILOVER_FIRST = moving(adding=(2,), removing=(1,))
_FAILOVER_SECOND = moving(adding=(3,), removing=(1, 2), isr=(1,))

EXPERIMENTS = (
    # KIP-455's example of a cancellation: [1, 2, 3] to [3, 4, 5], cancelled when 4 is in sync and 5 is not. Broker 5 is
    # down until a poll has shown this state. A second cancellation finds no move.
    kip455_experiment(
        "kip455-cancel",
        "KIP-455's example of a cancellation, with one of two adding replicas in sync",
        order=2,
        smoke=True,
        brief=8,
        hold_bytes_per_s=None,
        steps=[
            step("five-down", kill_broker(5)),
            step(
                "asked",
                reassign(3, 4, 5).copying(),
                still((1, 2, 3), ordered=True, leaders=(1,)),
                seen("moving", moving(_ADDED, _REMOVED, _STAYS), kip="I: [1, 2, 3], AR: [4, 5], RR: [1, 2]"),
                end("four-in-sync", _FOUR_IN_SYNC, kip="I: [1, 2, 3, 4], AR: [4, 5], RR: [1, 2]"),
            ),
            step(
                "cancelled",
                cancel(),
                _FOUR_IN_SYNC,
                end("back", still((1, 2, 3), leaders=(1,)), kip="R: [1, 2, 3], I: [1, 2, 3], AR: [], RR: []"),
                end("order", RequiredState(order=(3, 1, 2)), kip="R: [1, 2, 3]; the order is not guaranteed"),
            ),
            step("again", cancel(), answer="NO_REASSIGNMENT_IN_PROGRESS for 0"),
            step("five-back", START_BROKERS),
        ],
    ),
    # The user overrides a move before its adding replica is in sync: [1, 2, 3] to [4, 2, 3], then to [5, 2, 3].
    kip455_experiment(
        "kip455-override",
        "another target before the adding replica is in sync",
        order=4,
        steps=[
            step("asked", reassign(4, 2, 3), still((1, 2, 3), leaders=(1,)), end("moving", _EXCHANGE)),
            step(
                "overridden",
                reassign(5, 2, 3),
                _EXCHANGE,
                end("moving", _OVERRIDDEN, kip="4 leaves R at once: R {1, 2, 3, 5}, AR {5}, RR {1}"),
            ),
            let_go(_OVERRIDDEN, end("done", still((5, 2, 3), ordered=True, leaders=(5,)))),
        ],
    ),
    # The second target shares an adding replica with the first: [1, 2, 3] to [4, 5, 3], then to [4, 6, 3].
    kip455_experiment(
        "kip455-override-overlapping",
        "another target that shares an adding replica with the first",
        order=5,
        steps=[
            step("asked", reassign(4, 5, 3), still((1, 2, 3), leaders=(1,)), end("moving", _OVERLAPPING_FIRST)),
            step(
                "overridden",
                reassign(4, 6, 3),
                _OVERLAPPING_FIRST,
                end("moving", _OVERLAPPING_SECOND, kip="4 is adding still, 5 leaves at once: AR {4, 6}, RR {1, 2}"),
            ),
            let_go(_OVERLAPPING_SECOND, end("done", still((4, 6, 3), ordered=True, leaders=(4,)))),
        ],
    ),
    # The user cancels an overridden move: [1, 2, 3] to [4, 2, 3], then to [5, 2, 3]. The KIP restores the original
    # replicas. In KRaft the first move's replica, 4, has become an existing replica and stays. The user removes 4 with
    # a reassignment to the original replicas.
    kip455_experiment(
        "kip455-override-cancelled",
        "a move is overridden, then cancelled",
        order=6,
        steps=[
            step("asked", reassign(4, 2, 3), still((1, 2, 3), leaders=(1,)), end("moving", _EXCHANGE)),
            step("overridden", reassign(5, 2, 3), _EXCHANGE, end("moving", _OVERRIDDEN)),
            step(
                "cancelled",
                cancel(),
                _OVERRIDDEN,
                end("four-stays", _FOUR_ADDED, kip="the replica set prior to the reassignment, {1, 2, 3}"),
            ),
            let_go(_FOUR_ADDED, end("four-in-sync", still((1, 2, 3, 4)))),
            step("back", reassign(1, 2, 3), still((1, 2, 3, 4)), end("done", still((1, 2, 3), ordered=True))),
        ],
    ),
    # The user gives a move its original replicas as target. KRaft does not treat this as a cancellation: the new
    # replica is both adding and removing. Adding replicas stay when the new target adds none, and must come into sync
    # before a move ends. Only a cancellation ends this move.
    kip455_experiment(
        "kip455-override-back",
        "a move is overridden with the replicas it came from",
        order=7,
        steps=[
            step("asked", reassign(4, 2, 3), still((1, 2, 3), leaders=(1,)), end("moving", _EXCHANGE)),
            step(
                "back",
                reassign(1, 2, 3),
                _EXCHANGE,
                never("done", _STILL_123, kip="a new move, with AR [] and RR []: done at once"),
                end("adding-and-removing", _ADDING_AND_REMOVING),
                settle_s=2.0,
            ),
            step("cancelled", cancel(), _ADDING_AND_REMOVING, end("done", _STILL_123)),
            step("nothing-left", cancel(), answer="NO_REASSIGNMENT_IN_PROGRESS for 0"),
        ],
    ),
    # The user requests the same target again during the move. Nothing changes, and the copy goes on: the first step
    # lasts until broker 4 has the first response.
    kip455_experiment(
        "kip455-override-same",
        "the same target again",
        order=8,
        steps=[
            step("asked", reassign(4, 2, 3), still((1, 2, 3), leaders=(1,)), end("moving", _EXCHANGE), settle_s=1.5),
            step(
                "again",
                reassign(4, 2, 3),
                _EXCHANGE,
                never("not-moving", RequiredState(adding=()), kip="the move is cancelled, and begins again"),
                end("moving", _EXCHANGE),
                settle_s=1.0,
            ),
            let_go(_EXCHANGE, end("done", still((4, 2, 3), ordered=True, leaders=(4,)))),
        ],
    ),
    # The user overrides a move while no controller is active. The next active controller accepts the request. The
    # controllers are dedicated nodes: the killed controller takes no replica down.
    kip455_experiment(
        "kip455-override-failover",
        "another target during a failover of the controller",
        order=17,
        brokers=3,
        dedicated=True,
        topology=DEDICATED,
        partitions=[(1,)],
        bytes=8_000_000,
        steps=[
            step("asked", reassign(2), still((1,)), end("moving", _FAILOVER_FIRST)),
            step("controller-down", KILL_CONTROLLER),
            step(
                "overridden",
                reassign(3).untimed(),
                _FAILOVER_FIRST,
                end("moving", _FAILOVER_SECOND, kip="2 leaves R at once: R {1, 3}, AR {3}, RR {1}"),
                timeout_s=40.0,
            ),
            step("controller-back", START_BROKERS),
            let_go(_FAILOVER_SECOND, end("done", still((3,), leaders=(3,)))),
        ],
    ),
)
