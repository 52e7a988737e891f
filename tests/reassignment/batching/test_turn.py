import random
from typing import get_args

import pytest

from testbed.cli.reassign_report import turn_text
from testbed.kafka.types import TopicPartition
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.turn import Mode, remaining, take_turn
from testbed.reassignment.plan import Plan
from tests.fakes.kraft import Controller


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def stalled(turn):
    """Return the partitions that wait for the cluster, if nothing is in flight."""
    if any(status.state in ("moving", "electing") for status in turn.partitions):
        return []
    return [status for status in turn.partitions if status.state == "waiting"]


def drive(controller, plan, limits, mode, turns=2000, each=lambda _turn, _number: None):
    """Turn after turn until the plan has ended or stalls; returns how many it took and the last."""
    for number in range(turns):
        turn = take_turn(plan, controller.seen(), limits, mode)
        each(turn, number)
        if turn.ended or stalled(turn):
            return number, turn
        controller.alter(turn.start)
        controller.elect(turn.elect)
        controller.tick()
    raise AssertionError(f"no end after {turns} turns: {turn.partitions}")


def random_move(rng, partitions=12, brokers=6, factor=3):
    current = {tp(n): tuple(rng.sample(range(brokers), factor)) for n in range(partitions)}
    target = {tp(n): tuple(rng.sample(range(brokers), rng.randint(1, factor))) for n in range(partitions)}
    return current, Plan(target)


@pytest.mark.parametrize("mode", get_args(Mode))
def test_every_mode_ends_at_the_targets_led_by_their_first_and_copies_nothing_twice(mode):
    rng = random.Random(5)
    for seed in range(60):
        current, plan = random_move(rng)
        controller = Controller.of(current, range(6), seed)
        limits = BatchLimits(
            rng.choice([1, 2, None]), rng.choice([1, 3, None]), rng.choice([1, 2]), rng.choice([2, None])
        )

        def check(turn, _number, limits=limits, controller=controller):
            moving = [s for s in turn.partitions if s.state in ("moving", "electing")]
            if mode == "unbatched":
                return
            assert limits.partitions is None or len(moving) <= limits.partitions
            assert limits.leaders is None or sum(s.tp in turn.elect for s in moving) <= limits.leaders
            listed = controller.seen().listed
            for broker in range(6):
                receiving = sum(broker in r.adding for r in listed.values())
                assert limits.per_broker is None or receiving <= limits.per_broker

        _, end = drive(controller, plan, limits, mode, each=check)
        assert end.ended
        assert {t: p.replicas for t, p in controller.partitions.items()} == plan.targets
        assert all(p.leader == p.replicas[0] for p in controller.partitions.values())
        assert len(set(controller.copied)) == len(controller.copied)


def test_a_driver_that_was_killed_goes_on_from_what_the_cluster_says():
    # Every turn is taken from a look alone, so a new driver at every turn is the same as one that was killed there.
    rng = random.Random(9)
    for seed in range(20):
        current, plan = random_move(rng)
        controller = Controller.of(current, range(6), seed)
        for _ in range(400):
            turn = take_turn(plan, controller.seen(), BatchLimits(1, 3, 1), "incremental")
            if turn.ended:
                break
            if rng.random() < 0.7:  # otherwise killed between the look and the asking
                controller.alter(turn.start)
            if rng.random() < 0.7:
                controller.elect(turn.elect)
            controller.tick()
        assert turn.ended
        assert len(set(controller.copied)) == len(controller.copied)


def test_batches_follow_one_another_and_slots_are_refilled_when_incremental():
    current = {tp(n): (1, 2) for n in range(6)}
    plan = Plan({tp(n): (1, 3) for n in range(6)})
    starts = {}
    for mode in ("batched", "incremental"):
        controller = Controller.of(current, {1, 2, 3}, 4)
        first = take_turn(plan, controller.seen(), BatchLimits(1, 2), mode)
        controller.alter(first.start)
        while len(controller.seen().listed) == 2:
            controller.tick()
        starts[mode] = take_turn(plan, controller.seen(), BatchLimits(1, 2), mode).start
        assert list(first.start) == [tp(0), tp(1)]
    assert not starts["batched"] or len(starts["batched"]) == 2
    assert len(starts["incremental"]) >= 1


def test_starts_spreads_refilled_slots_over_turns_and_leaves_batches_whole():
    current, plan = {tp(n): (1, 2) for n in range(6)}, Plan({tp(n): (1, 3) for n in range(6)})
    limits = BatchLimits(1, 3, starts=1)
    controller = Controller.of(current, {1, 2, 3}, 4)
    assert len(take_turn(plan, controller.seen(), limits, "batched").start) == 3
    for in_flight in (1, 2, 3):
        turn = take_turn(plan, controller.seen(), limits, "incremental")
        assert len(turn.start) == 1
        controller.alter(turn.start)
        assert len(controller.seen().listed) == in_flight
    assert not take_turn(plan, controller.seen(), limits, "incremental").start


def test_limits_changed_live_affect_the_next_step_only():
    current = {tp(n): (1, 2) for n in range(4)}
    plan = Plan({tp(n): (1, 3) for n in range(4)})
    controller = Controller.of(current, {1, 2, 3})
    controller.alter(take_turn(plan, controller.seen(), BatchLimits(1, 3), "incremental").start)
    lowered = take_turn(plan, controller.seen(), BatchLimits(1, 1), "incremental")
    assert not lowered.start
    assert sum(s.state == "moving" for s in lowered.partitions) == 3
    raised = take_turn(plan, controller.seen(), BatchLimits(1, 4), "incremental")
    assert list(raised.start) == [tp(3)]


def test_paused_starts_nothing_and_says_so():
    controller = Controller.of({tp(0): (1, 2)}, {1, 2, 3})
    turn = take_turn(Plan({tp(0): (1, 3)}), controller.seen(), BatchLimits(), "batched", held="paused")
    assert not turn.start
    assert [(s.state, s.why) for s in turn.partitions] == [("deferred", "paused")]


def test_what_waits_is_named_and_the_rest_is_moved():
    controller = Controller.of({tp(0): (1, 2), tp(1): (1, 2)}, {1, 2, 3})
    plan = Plan({tp(0): (1, 9), tp(1): (1, 3)})
    _, end = drive(controller, plan, BatchLimits(), "batched")
    assert [s.why for s in stalled(end)] == ["target offline: broker 9"]
    assert controller.partitions[tp(1)].replicas == (1, 3)


def test_a_deleted_topic_is_gone_not_waited_for():
    controller = Controller.of({tp(0): (1, 2)}, {1, 2, 3})
    turn = take_turn(Plan({tp(0): (1, 2), tp(7): (1, 3)}), controller.seen(), BatchLimits(), "batched")
    assert turn.ended
    assert {s.tp: s.state for s in turn.partitions} == {tp(0): "done", tp(7): "gone"}


@pytest.mark.parametrize("mode", ["batched", "incremental"])
def test_a_partition_without_a_leader_holds_no_place(mode):
    controller = Controller.of({tp(0): (1,), tp(1): (2,)}, {2, 3})
    controller.partitions[tp(0)].isr = {1}  # the controller never removes the last replica in sync
    limits = BatchLimits(1, 1, 1)
    turn = take_turn(Plan({tp(0): (3,), tp(1): (3,)}), controller.seen(), limits, mode)
    assert (list(turn.start), turn.elect) == ([tp(1)], ())
    assert turn.partitions[0].why == "the partition is offline: it has no leader"
    there = take_turn(Plan({tp(0): (1,)}), controller.seen(), limits, mode)
    assert ([status.state for status in there.partitions], there.elect, there.ended) == (["waiting"], (), False)


def test_a_step_leaves_min_insync_replicas_in_sync():
    controller = Controller.of({tp(0): (3, 1, 2)}, {1, 2, 3, 4})
    controller.min_insync = 2
    partition, plan = controller.partitions[tp(0)], Plan({tp(0): (3, 4)})
    partition.isr, partition.leader = {1, 2}, 1  # broker 3 was in sync and has fallen behind again
    turn = take_turn(plan, controller.seen(), BatchLimits(1), "batched")
    why = "brokers [3] are not in sync: the step would leave fewer than min.insync.replicas"
    assert (turn.start, turn.partitions[0].state, turn.partitions[0].why) == ({}, "waiting", why)
    partition.isr, partition.leader = {1, 2, 3}, 3
    assert take_turn(plan, controller.seen(), BatchLimits(1), "batched").start == {tp(0): (3, 2)}


def test_dead_replicas_do_not_count_as_the_rest_of_a_step():
    controller = Controller.of({tp(0): (1, 2, 3, 4)}, {1, 2, 9})
    controller.min_insync = 2
    turn = take_turn(Plan({tp(0): (1, 9)}), controller.seen(), BatchLimits(2), "batched")
    assert turn.start == {tp(0): (1, 9)}


def test_a_minimum_that_was_raised_above_the_target_stops_nothing():
    controller = Controller.of({tp(0): (1, 2, 3)}, {1, 2})
    controller.min_insync = 2
    turn = take_turn(Plan({tp(0): (1,)}), controller.seen(), BatchLimits(1), "batched")
    assert turn.start == {tp(0): (1,)}


def test_only_the_leader_of_the_target_is_elected():
    controller = Controller.of({tp(0): (1, 2), tp(1): (1, 2)}, {1, 2, 3, 4})
    for partition in controller.partitions.values():
        partition.leader = 2  # since a restart of broker 1
    drained = Plan({tp(0): (3, 4), tp(1): (3, 2)})
    assert take_turn(drained, controller.seen(), BatchLimits(1, 1), "batched").elect == ()
    stays = Plan({tp(0): (3, 4), tp(1): (1, 3)})
    assert take_turn(stays, controller.seen(), BatchLimits(1, 1), "batched").elect == (tp(1),)


def test_no_more_leaders_are_elected_at_once_than_the_limit():
    controller = Controller.of({tp(n): (1, 2) for n in range(5)}, {1, 2, 3})
    for partition in controller.partitions.values():
        partition.leader = 2  # since a restart of broker 1
    plan, limits, elected = Plan({tp(n): (1, 3) for n in range(5)}), BatchLimits(1, 5, 2), []
    for _ in range(3):
        turn = take_turn(plan, controller.seen(), limits, "batched")
        assert not turn.start
        elected.append([each.partition for each in turn.elect])
        controller.elect(turn.elect)
    assert elected == [[0, 1], [2, 3], [4]]
    assert turn.partitions[3].why == "the batch before has not ended"
    assert len(take_turn(plan, controller.seen(), limits, "batched").start) == 5


def test_cancelled_midway_exactly_what_is_not_moved_remains():
    rng = random.Random(2)
    for seed in range(30):
        current, plan = random_move(rng)
        controller = Controller.of(current, range(6), seed)
        for _ in range(rng.randint(1, 8)):
            turn = take_turn(plan, controller.seen(), BatchLimits(1, 4, 2), "incremental")
            controller.alter(turn.start)
            controller.elect(turn.elect)
            controller.tick()
        left = remaining(plan, controller.seen())
        controller.cancel(controller.seen().listed)
        there = {t: p.replicas for t, p in controller.partitions.items()}
        assert set(left.targets) == {t for t, target in plan.targets.items() if there[t] != target}
        drive(controller, left, BatchLimits(), "batched")
        assert {t: p.replicas for t, p in controller.partitions.items()} == plan.targets


@pytest.mark.parametrize("mode", ["batched", "incremental"])
def test_a_target_that_dies_within_a_step_holds_its_place_until_it_is_back(mode):
    controller = Controller.of({tp(0): (1, 2), tp(1): (1, 2)}, {1, 2, 3, 4})
    plan, limits = Plan({tp(0): (1, 3), tp(1): (1, 4)}), BatchLimits(1, 1)
    controller.alter(take_turn(plan, controller.seen(), limits, mode).start)
    controller.live.discard(3)
    turn = take_turn(plan, controller.seen(), limits, mode)
    assert (turn.partitions[0].state, turn.partitions[0].why) == ("moving", "brokers [3] are offline")
    assert (turn.start, len(controller.seen().listed)) == ({}, 1)
    assert "1 moving (t-0: brokers [3] are offline), 1 deferred" in turn_text(turn, 1.0)
    # Before its step begins, an offline target holds no place.
    controller.cancel([tp(0)])
    assert list(take_turn(plan, controller.seen(), limits, mode).start) == [tp(1)]
    controller.live.add(3)
    assert drive(controller, plan, limits, mode)[1].ended


@pytest.mark.parametrize("mode", ["batched", "incremental"])
@pytest.mark.parametrize("theirs", [(1, 7), (7, 2)], ids=["adds a dead broker", "keeps a dead broker"])
def test_a_step_of_another_client_stays_as_it_is(mode, theirs):
    plan, limits = Plan({tp(0): (1, 3)}), BatchLimits(1, 1)
    dead = 7 if theirs == (1, 7) else 2
    controller = Controller.of({tp(0): (1, 2)}, {1, 2, 3, 7} - {dead})
    controller.alter({tp(0): theirs})
    turn = take_turn(plan, controller.seen(), limits, mode)
    why = f"another client reassigns it to {list(theirs)}"
    assert (turn.start, turn.partitions[0].why) == ({}, f"{why}; brokers [{dead}] are offline")
    controller.live.add(dead)
    turn = take_turn(plan, controller.seen(), limits, mode)
    assert (turn.start, turn.partitions[0].why) == ({}, why)
    assert drive(controller, plan, limits, mode)[1].ended


def test_at_once_the_plan_replaces_another_reassignment_of_its_partitions():
    controller = Controller.of({tp(n): (1, 2) for n in range(3)}, {1, 2, 3, 4})
    controller.alter({tp(0): (1, 4), tp(1): (1, 4), tp(2): (4, 3)})
    plan = Plan({tp(0): (1, 3), tp(1): (1, 2), tp(2): (3, 4)})
    assert take_turn(plan, controller.seen(), BatchLimits(), "unbatched", held="paused").start == {}
    turn = take_turn(plan, controller.seen(), BatchLimits(), "unbatched")
    # A request for the replicas of before would not end while broker 4 is adding; the same ones in another order wait.
    assert turn.start == {tp(0): (1, 3)}
    assert turn.partitions[1].why == "another client reassigns it to [1, 4]"
    controller.alter(turn.start)
    assert take_turn(plan, controller.seen(), BatchLimits(), "unbatched").start == {}
    assert drive(controller, plan, BatchLimits(), "unbatched")[1].ended
    assert (tp(0), 4) not in controller.copied


def test_min_insync_replicas_come_first():
    controller = Controller.of({tp(0): (1,)}, {1, 2, 3, 4})
    controller.min_insync = 3
    turn = take_turn(Plan({tp(0): (2, 3, 4)}), controller.seen(), BatchLimits(1), "batched")
    assert turn.start == {tp(0): (2, 3, 1)}
