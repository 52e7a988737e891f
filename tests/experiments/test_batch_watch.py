"""What is seen of a move from outside: an honest one keeps every promise, and each broken one is noticed."""

import random

import pytest

from results.contract.move import Limits
from testbed.experiments.batch_monitor import BatchAccount
from testbed.kafka.types import PartitionState, Reassignment, TopicPartition
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.turn import ReassignmentState, take_turn
from testbed.reassignment.plan import Plan
from tests.fakes.kraft import Controller

TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def state(tp, replicas, leader=None, isr=None):
    return PartitionState(tp, leader or replicas[0], 0, tuple(replicas), tuple(isr or replicas))


def listing(target, adding=(), removing=()):
    return Reassignment((*target, *removing), tuple(adding), tuple(removing))


def watch(plan, replicas=1, partitions=1, leaders=None, min_insync=1):
    return BatchAccount(Plan(plan), "batched", Limits(replicas, partitions, leaders), {"t": min_insync})


@pytest.mark.parametrize("mode", ["batched", "incremental"])
@pytest.mark.parametrize("seed", range(8))
def test_an_honest_move_keeps_every_promise_whenever_it_is_looked_at(mode, seed):
    rng = random.Random(seed)
    limits = BatchLimits(rng.choice([1, 2, None]), rng.choice([1, 3, 8]), rng.choice([1, 2, None]))
    current = {TopicPartition("t", n): tuple(rng.sample(range(1, 9), 3)) for n in range(12)}
    plan = {tp: tuple(rng.sample(range(1, 9), rng.choice([2, 3, 4]))) for tp in current}
    controller = Controller.of(current, range(1, 9), seed)
    seen = BatchAccount(
        Plan(plan), mode, Limits(limits.replicas, limits.partitions, limits.leaders), {"t": controller.min_insync}
    )

    def look(us: int) -> None:
        now: ReassignmentState = controller.seen()
        seen.look(us, now.listed, now.states)

    look(0)
    for second in range(1, 2000):
        turn = take_turn(Plan(plan), controller.seen(), limits, mode)
        if turn.ended:
            break
        controller.alter(turn.start)
        controller.elect(turn.elect)
        look(second * 300_000)
        controller.tick()
        if rng.random() < 0.5:  # some of what happens is never seen
            look(second * 300_000 + 100_000)
    look(10**9)
    found = seen.summary()
    assert (found.astray, found.again, found.added_over) == ((), (), ())
    assert found.most_in_flight <= (limits.partitions or 99)
    assert found.most_leaders <= (limits.leaders or 99)
    assert found.steps > 0
    assert found.partitions == 12


def test_partitions_and_leader_movements_are_counted_as_they_are_listed():
    seen = watch({TP: (2, 3), OTHER: (1, 3)})
    states = {TP: state(TP, (1, 2)), OTHER: state(OTHER, (1, 2))}
    seen.look(0, {}, states)
    both = {TP: listing((2, 3), [3], [1]), OTHER: listing((1, 3), [3], [2])}
    seen.look(1_000_000, both, states)
    assert seen.leaders == 1
    seen.look(1_500_000, {}, {TP: state(TP, (2, 3)), OTHER: state(OTHER, (1, 3))})
    found = seen.summary()
    assert (found.most_in_flight, found.most_leaders, found.most_added, found.fetching) == (2, 1, 1, 2)
    assert (found.steps, found.polls, found.gap_s) == (2, 3, 1.0)
    assert found.astray == ()


def test_more_replicas_than_r_are_told_unless_min_insync_replicas_wants_them():
    adding = {TP: listing((1, 2, 3, 4), [3, 4])}
    seen = watch({TP: (1, 2, 3, 4)})
    seen.look(0, adding, {TP: state(TP, (1, 2, 3, 4), isr=(1, 2))})
    assert seen.summary().added_over == ("t-0: [3, 4]",)
    needed = watch({TP: (1, 2, 3, 4)}, min_insync=3)
    needed.look(0, adding, {TP: state(TP, (1, 2, 3, 4), isr=(1,))})
    assert needed.summary().added_over == ()


def test_a_replica_that_was_dropped_and_comes_again_is_told():
    seen = watch({TP: (3,)})
    seen.look(0, {}, {TP: state(TP, (1, 2))})
    seen.look(1, {TP: listing((3,), [3], [1, 2])}, {TP: state(TP, (3, 1, 2))})
    seen.look(2, {}, {TP: state(TP, (3,))})
    seen.look(3, {TP: listing((3, 2), [2])}, {TP: state(TP, (3, 2), isr=(3,))})
    seen.look(4, {}, {TP: state(TP, (3,))})
    assert seen.summary().again == ("t-0: broker 2",)


def test_a_replica_that_is_still_being_copied_in_a_mended_step_is_copied_once():
    seen = watch({TP: (4, 5)})
    seen.look(0, {TP: listing((4, 1, 2), [4])}, {TP: state(TP, (4, 1, 2), 1, (1, 2))})
    seen.look(1, {TP: listing((4, 1), [4], [2])}, {TP: state(TP, (4, 1, 2), 1, (1,))})
    seen.look(2, {TP: listing((4, 5), [5], [1])}, {TP: state(TP, (4, 5, 1), 4, (4, 1))})
    assert seen.summary().again == ()


@pytest.mark.parametrize("end", [(3, 2), (2,), (2, 3, 1)])
def test_another_end_than_the_plan_has_is_told_and_so_is_none(end):
    seen = watch({TP: (2, 3), OTHER: (1,)})
    seen.look(0, {}, {TP: state(TP, end)})
    assert seen.summary().astray == (f"t-0: {list(end)}, not [2, 3]", "t-1: never seen")


def test_what_is_still_listed_has_not_ended():
    seen = watch({TP: (2, 3)})
    seen.look(0, {TP: listing((2, 3), [3])}, {TP: state(TP, (2, 3))})
    assert seen.summary().astray == ("t-0: [2, 3], not [2, 3]",)


def test_only_changes_are_told_and_what_is_not_of_the_plan_is_not():
    seen = watch({TP: (2,)})
    states = {TP: state(TP, (1,)), OTHER: state(OTHER, (1,))}
    assert [entry.tp for entry in seen.look(0, {}, states)] == [TP]
    assert seen.look(1, {OTHER: listing((2,), [2], [1])}, states) == []
    assert seen.summary().most_in_flight == 0
    changed = seen.look(2, {TP: listing((2,), [2], [1])}, states)
    assert [(entry.adding, entry.removing) for entry in changed] == [((2,), (1,))]
