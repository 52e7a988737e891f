"""KIP-455's scenarios of single moves: a table of experiments on one topic each, step by step.

Each step expects the behavior of KRaft. `kip` describes where the KIP's text differs. See docs/kip455.md.
"""

from results.contract.steps import Expectation, RequiredState
from testbed.experiments.kip455_actions import (
    DELETE_TOPIC,
    ELECT_PREFERRED_LEADER,
    NO_ACTION,
    REASSIGN_UNKNOWN_TOPIC,
    START_BROKERS,
    add_partitions,
    cancel,
    end,
    kill_broker,
    let_go,
    moving,
    never,
    reassign,
    reassign_all,
    step,
    still,
)
from testbed.experiments.kip455_executor import kip455_experiment

_EXCHANGE = moving(adding=(4,), removing=(1,), staying=(2, 3))
_STILL_123 = still((1, 2, 3), ordered=True, leaders=(1,))
_ROWS_OLD, _ROWS_NEW = (1, 2, 3), (4, 5, 6)
_ROWS_SECOND = moving(_ROWS_NEW, _ROWS_OLD)
_FACTOR_UP = moving(adding=(3,), removing=(), staying=(1, 2))
_PREFERRED_UNDER_WAY = moving(adding=(4,), removing=(3,), staying=(1, 2))
_PREFERRED_DONE = still((4, 1, 2), ordered=True, leaders=(1,))
_PARTITION_ADDED = still((4, 5, 6, 1), ordered=True, leaders=(4,))
_ERRORS_REFUSED = "INVALID_REPLICA_ASSIGNMENT for 0"
_ERRORS_UNTOUCHED = (_STILL_123, end("untouched", _STILL_123))
_TARGET_DEAD_WAITS = moving(adding=(6,), removing=(3,), staying=(1, 2))
_TARGET_DEAD_DONE = still((1, 2, 6), ordered=True, leaders=(1,))
_LEADER_DIES_UNDER_WAY = moving(adding=(1,), removing=(4,), staying=(5, 6))
_LEADER_DIES_WITHOUT = moving(adding=(1,), removing=(4,), staying=(5, 6), isr=(5, 6))
_MANY_COUNT = 2000
_MANY_CHECKED = (0, 999, 1000, 1999)
_MANY_WAITS = moving(adding=(4,), removing=(1,))
_MANY_TO_FOUR = reassign_all(dict.fromkeys(range(_MANY_COUNT), (4,))).untimed()
_MANY_CANCELLED = cancel(*range(_MANY_COUNT)).untimed()
_REORDERED = still((3, 2, 1), ordered=True, leaders=(1,))


def _many_all(name: str, wanted: RequiredState) -> tuple[Expectation, ...]:
    return tuple(end(f"{name}-{partition}", wanted, partition) for partition in _MANY_CHECKED)


EXPERIMENTS = (
    # KIP-455's own example, [1, 2, 3] to [4, 3, 2]: replicas, ISR, adding and removing replicas at each step.
    kip455_experiment(
        "kip455-example",
        "KIP-455's own example: one replica is exchanged",
        order=1,
        smoke=True,
        brief=7,
        steps=[
            step(
                "asked",
                reassign(4, 3, 2),
                still((1, 2, 3), ordered=True, leaders=(1,)),
                end("moving", _EXCHANGE, kip="R: [1, 4, 3, 2], I: [1, 2, 3], AR: [4], RR: [1]"),
                end("merged", RequiredState(order=(4, 3, 2, 1), leaders=(1,)), kip="R: [1, 4, 3, 2]"),
            ),
            let_go(
                _EXCHANGE,
                never(
                    "in-sync-and-listed",
                    RequiredState(adding=(4,), in_sync=(4,)),
                    kip="a state of its own: R: [1, 4, 3, 2], I: [1, 2, 3, 4], AR: [4], RR: [1]",
                ),
                end("done", still((4, 3, 2), ordered=True, leaders=(4,)), kip="R: [4, 3, 2], I: [2, 3, 4]"),
            ),
        ],
    ),
    # ZooKeeper's controller has a table of six rows for {1, 2, 3} to {4, 5, 6}. This scenario shows which rows KRaft
    # still has. ZooKeeper wrote each row separately: all in sync, a leader of the target, the old replicas out of the
    # ISR, the end. KRaft ends the move in the same record that adds the last adding replica to the ISR.
    kip455_experiment(
        "kip455-rows",
        "the six rows of {1, 2, 3} to {4, 5, 6}: which of them are still seen",
        order=3,
        smoke=True,
        partitions=[_ROWS_OLD],
        steps=[
            step(
                "asked",
                reassign(*_ROWS_NEW),
                still(_ROWS_OLD, ordered=True, leaders=(1,)),
                end("row-2", _ROWS_SECOND),
                end("row-2-order", RequiredState(order=(*_ROWS_NEW, *_ROWS_OLD), leaders=(1,))),
            ),
            let_go(
                _ROWS_SECOND,
                never(
                    "row-3",
                    RequiredState(adding=_ROWS_NEW, isr=(*_ROWS_OLD, *_ROWS_NEW)),
                    kip="all six in sync, AR and RR still listed",
                ),
                never("row-4", RequiredState(adding=_ROWS_NEW, leaders=(4,)), kip="4 leads, AR and RR still listed"),
                never(
                    "row-5",
                    RequiredState(adding=_ROWS_NEW, isr=_ROWS_NEW),
                    kip="the old ones out of the ISR, AR and RR still listed",
                ),
                end("row-6", still(_ROWS_NEW, ordered=True, leaders=(4,))),
            ),
        ],
    ),
    # The replication factor rises, [1, 2] to [1, 2, 3], and falls, to [3]. KRaft completes a pure removal at once.
    kip455_experiment(
        "kip455-replication-factor",
        "the replication factor goes up, and down",
        order=9,
        brokers=3,
        partitions=[(1, 2)],
        steps=[
            step("up", reassign(1, 2, 3), still((1, 2), leaders=(1,)), end("moving", _FACTOR_UP)),
            let_go(_FACTOR_UP, end("done", _STILL_123)),
            step(
                "down",
                reassign(3),
                _STILL_123,
                never("removing", RequiredState(removing=(1, 2)), kip="a step of its own: AR [], RR [1, 2]"),
                end("done", still((3,), leaders=(3,))),
            ),
        ],
    ),
    # If the old leader stays a replica, it still leads after the move. An election makes the preferred replica leader.
    kip455_experiment(
        "kip455-preferred-leader",
        "the preferred leader is elected after a move",
        order=10,
        brief=9,
        steps=[
            step("asked", reassign(4, 1, 2), still((1, 2, 3), leaders=(1,)), end("moving", _PREFERRED_UNDER_WAY)),
            let_go(_PREFERRED_UNDER_WAY, end("done", _PREFERRED_DONE)),
            step(
                "elected",
                ELECT_PREFERRED_LEADER,
                _PREFERRED_DONE,
                end("leads", RequiredState(order=(4, 1, 2), leaders=(4,))),
            ),
        ],
    ),
    # The user adds partitions to a topic while one of its partitions moves. Neither disturbs the other. The controller
    # counts adding and removing replicas of the moving partition: new partitions must have as many replicas.
    kip455_experiment(
        "kip455-partitions-added",
        "partitions are added to a topic while it moves",
        order=11,
        steps=[
            step("asked", reassign(4, 2, 3), still((1, 2, 3), leaders=(1,)), end("moving", _EXCHANGE)),
            step(
                "as-many-as-before",
                add_partitions((4, 5, 6)),
                _EXCHANGE,
                end("moving-on", _EXCHANGE),
                answer="INVALID_REPLICA_ASSIGNMENT",
            ),
            step(
                "as-many-as-now",
                add_partitions((4, 5, 6, 1)),
                _EXCHANGE,
                end("moving-on", _EXCHANGE),
                end("new", _PARTITION_ADDED, 1),
            ),
            let_go(
                _EXCHANGE, end("done", still((4, 2, 3), ordered=True, leaders=(4,))), end("new", _PARTITION_ADDED, 1)
            ),
        ],
    ),
    # The user deletes a topic while one of its partitions moves. The move ends with the topic.
    kip455_experiment(
        "kip455-topic-deleted",
        "a topic is deleted while it moves",
        order=12,
        steps=[
            step("asked", reassign(4, 2, 3), still((1, 2, 3), leaders=(1,)), end("moving", _EXCHANGE)),
            step("deleted", DELETE_TOPIC, _EXCHANGE, end("gone", RequiredState(gone=True))),
            step("nothing-left", cancel(), answer="UNKNOWN_TOPIC_OR_PARTITION for 0"),
        ],
    ),
    # The controller refuses some partitions by the protocol's error names, and accepts the others of the same request.
    kip455_experiment(
        "kip455-errors",
        "what is refused, partition by partition",
        order=13,
        partitions=[(1, 2, 3), (1, 2, 3)],
        steps=[
            step("nothing-to-cancel", cancel(), *_ERRORS_UNTOUCHED, answer="NO_REASSIGNMENT_IN_PROGRESS for 0"),
            step("no-such-broker", reassign(99, 2, 3), *_ERRORS_UNTOUCHED, answer=_ERRORS_REFUSED),
            step("negative", reassign(-1, 2, 3), *_ERRORS_UNTOUCHED, answer=_ERRORS_REFUSED),
            step("twice-the-same", reassign(2, 2, 3), *_ERRORS_UNTOUCHED, answer=_ERRORS_REFUSED),
            step(
                "no-such-topic", REASSIGN_UNKNOWN_TOPIC, *_ERRORS_UNTOUCHED, answer="UNKNOWN_TOPIC_OR_PARTITION for 0"
            ),
            step(
                "one-of-three",
                reassign_all({0: (4, 2, 3), 1: (99,), 7: (1,)}),
                _STILL_123,
                end("moving", _EXCHANGE),
                never("one-not-moving", _EXCHANGE, 1),
                end("one-untouched", _STILL_123, 1),
                answer="INVALID_REPLICA_ASSIGNMENT for 1; UNKNOWN_TOPIC_OR_PARTITION for 7",
            ),
        ],
    ),
    # A target broker is down at the request. The controller accepts the move. It ends after the broker's return.
    kip455_experiment(
        "kip455-target-dead",
        "a target broker is down, then back",
        order=14,
        hold_bytes_per_s=None,
        steps=[
            step("six-down", kill_broker(6)),
            step("asked", reassign(1, 2, 6), still((1, 2, 3), leaders=(1,)), end("waits", _TARGET_DEAD_WAITS)),
            step(
                "still-waits",
                NO_ACTION,
                _TARGET_DEAD_WAITS,
                never("done", _TARGET_DEAD_DONE),
                end("waits", _TARGET_DEAD_WAITS),
                settle_s=3.0,
            ),
            step("six-back", START_BROKERS, _TARGET_DEAD_WAITS, end("done", _TARGET_DEAD_DONE), timeout_s=60.0),
        ],
    ),
    # The leader, a removing replica, dies during the move. Another replica leads, and the move ends without it.
    kip455_experiment(
        "kip455-leader-dies",
        "the leader dies while its partition moves",
        order=15,
        partitions=[(4, 5, 6)],
        bytes=6_000_000,
        doomed=(4,),
        steps=[
            step("asked", reassign(1, 5, 6), still((4, 5, 6), leaders=(4,)), end("moving", _LEADER_DIES_UNDER_WAY)),
            step(
                "leader-down",
                kill_broker(4),
                _LEADER_DIES_UNDER_WAY,
                end("moving-on", _LEADER_DIES_WITHOUT),
                end("another-leads", RequiredState(leaders=(5, 6))),
                timeout_s=40.0,
            ),
            let_go(_LEADER_DIES_WITHOUT, end("done", still((1, 5, 6), ordered=True, leaders=(5, 6)))),
            step("leader-back", START_BROKERS),
        ],
    ),
    # The scenario requests, lists and cancels 2,000 moves while their target is down, and executes them after its
    # return. A request has at most 1,000 moves. The steps check the first and the last partition of each request. The
    # answer shows that the controller accepted all of them.
    kip455_experiment(
        "kip455-many",
        "2,000 partitions at once: asked for, listed, cancelled, moved",
        order=16,
        partitions=[(1,)] * _MANY_COUNT,
        bytes=0,
        hold_bytes_per_s=None,
        steps=[
            step("four-down", kill_broker(4)),
            step("asked", _MANY_TO_FOUR, still((1,)), *_many_all("waits", _MANY_WAITS), timeout_s=60.0),
            step("cancelled", _MANY_CANCELLED, _MANY_WAITS, *_many_all("back", still((1,))), timeout_s=60.0),
            step("four-back", START_BROKERS),
            step("asked-again", _MANY_TO_FOUR, still((1,)), *_many_all("moved", still((4,))), timeout_s=120.0),
            step("deleted", DELETE_TOPIC.untimed(), None, end("gone", RequiredState(gone=True))),
        ],
    ),
    # A reassignment that only reorders the replicas: no data moves, and the leader stays until an election.
    kip455_experiment(
        "kip455-reorder",
        "only the order of the replicas changes",
        order=16,
        steps=[
            step(
                "asked",
                reassign(3, 2, 1),
                _STILL_123,
                never("adding", RequiredState(adding=(3,)), kip="AR: [], RR: []"),
                end("reordered", _REORDERED),
            ),
            step(
                "elected",
                ELECT_PREFERRED_LEADER,
                _REORDERED,
                end("leads", RequiredState(order=(3, 2, 1), leaders=(3,))),
            ),
        ],
    ),
)
