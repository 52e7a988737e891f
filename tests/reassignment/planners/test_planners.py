import random
import time
from collections import Counter

import pytest

from testbed.kafka.types import TopicPartition
from testbed.reassignment.plan import PlanError
from testbed.reassignment.planners import Placement, add, change_factor, cost, drain, leave, spread


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def round_robin(partitions: int, brokers: int, factor: int):
    return {tp(n): tuple((n + i) % brokers for i in range(factor)) for n in range(partitions)}


def racks(brokers: int, number: int):
    return {broker: f"r{broker % number}" for broker in range(brokers)}


def after(assignment, plan):
    return {**assignment, **plan.targets}


def counts(assignment):
    return Counter(broker for replicas in assignment.values() for broker in replicas)


def is_sound(assignment, factor=None):
    for replicas in assignment.values():
        assert len(set(replicas)) == len(replicas)
        assert factor is None or len(replicas) == factor


def test_draining_copies_only_what_lay_there_and_leaves_leaders_alone():
    before = round_robin(60, 6, 3)
    plan = drain(before, dict.fromkeys(range(6)), {5})
    now = after(before, plan)
    is_sound(now, 3)
    assert 5 not in counts(now)
    assert cost(plan, before, dict.fromkeys(before, 10)).replicas == counts(before)[5]
    assert all(now[p][0] == r[0] for p, r in before.items() if r[0] != 5)
    assert max(counts(now).values()) - min(counts(now).values()) <= 3


def test_draining_keeps_racks_apart():
    before = round_robin(60, 6, 2)
    now = after(before, drain(before, racks(6, 2), {0}))
    placement = Placement(now, {b: r for b, r in racks(6, 2).items() if b})
    assert not any(placement.crowded(p) for p in now)


@pytest.mark.parametrize("leaving", [{1}, {1, 2}, {1, 2, 3}, {2, 4}])
def test_where_too_few_brokers_remain_each_of_them_has_a_replica(leaving):
    before = {tp(0): (1, 2, 3), tp(1): (2, 3, 4), tp(2): (4,)}
    now = after(before, leave(before, dict.fromkeys(range(1, 5)), leaving))
    is_sound(now)
    remain = {1, 2, 3, 4} - leaving
    for p, replicas in now.items():
        assert not leaving & set(replicas)
        assert len(replicas) == min(len(before[p]), len(remain))


def test_nobody_can_leave_where_none_remains():
    with pytest.raises(PlanError, match="none remains"):
        leave({tp(0): (1, 2)}, dict.fromkeys((1, 2)), {1, 2})


def test_too_few_brokers_left_are_refused_and_named():
    with pytest.raises(PlanError, match="t-0 needs 3 brokers, and 2 brokers are left"):
        drain(round_robin(3, 3, 3), racks(3, 1), {2})


def test_a_broker_that_joins_gets_its_share_and_no_more_is_copied():
    before = round_robin(100, 4, 2)
    plan = add(before, dict.fromkeys(range(5)), {4})
    now = after(before, plan)
    is_sound(now, 2)
    assert counts(now)[4] == 40
    assert cost(plan, before, {}).replicas == 40
    leaders = Counter(r[0] for r in now.values())
    assert leaders[4] == 20


def test_a_broker_that_is_not_there_cannot_join():
    with pytest.raises(PlanError, match="broker 9 is not among"):
        add(round_robin(2, 2, 1), racks(2, 1), {9})


def test_a_higher_factor_adds_and_a_lower_one_takes_away():
    before = round_robin(30, 6, 2)
    grown = after(before, change_factor(before, racks(6, 3), 3))
    is_sound(grown, 3)
    assert all(grown[p][:2] == r for p, r in before.items())
    shrunk = after(grown, change_factor(grown, racks(6, 3), 1))
    assert all(shrunk[p] == r[:1] for p, r in grown.items())
    with pytest.raises(PlanError, match="needs 7 brokers"):
        change_factor(before, racks(6, 3), 7)


def test_spreading_puts_every_partition_over_the_racks_and_evens_brokers_out():
    before = {tp(n): (0, 2) for n in range(40)}  # both in rack r0
    now = after(before, spread(before, racks(4, 2)))
    placement = Placement(now, racks(4, 2))
    assert not any(placement.crowded(p) for p in now)
    assert set(counts(now).values()) == {20}
    assert max(Counter(r[0] for r in now.values()).values()) <= 11


def test_what_is_spread_already_is_left_alone():
    before = round_robin(40, 4, 2)
    assert not spread(before, dict.fromkeys(range(4))).targets


def test_plans_of_random_clusters_are_sound():
    rng = random.Random(11)
    for _ in range(300):
        brokers = rng.randint(2, 9)
        where = {b: rng.choice([None, "a", "b", "c"]) for b in range(brokers)}
        factor = rng.randint(1, min(4, brokers))
        before = {tp(n): tuple(rng.sample(range(brokers), factor)) for n in range(rng.randint(1, 40))}
        for plan in (add(before, where, {brokers - 1}), spread(before, where)):
            is_sound(after(before, plan), factor)
            assert set(counts(after(before, plan))) <= set(where)
        if factor < brokers:
            now = after(before, drain(before, where, {0}))
            is_sound(now, factor)
            assert 0 not in counts(now)
            copied = cost(drain(before, where, {0}), before, {}).replicas
            assert copied == counts(before)[0]
        wanted = rng.randint(1, brokers)
        is_sound(after(before, change_factor(before, where, wanted)), wanted)


def test_cost_counts_bytes_replicas_and_leaders():
    before = {tp(0): (1, 2), tp(1): (1, 2)}
    plan = drain(before, {1: None, 2: None, 3: None}, {1})
    found = cost(plan, before, {tp(0): 100, tp(1): 7})
    assert (found.partitions, found.replicas, found.bytes, found.leaders, found.move_ratio) == (2, 2, 107, 2, 1.0)


def test_a_dead_replica_goes_before_a_living_one_also_when_it_led():
    racks_of = dict.fromkeys((2, 3))
    assert change_factor({tp(0): (9, 2)}, racks_of, 1).targets == {tp(0): (2,)}
    assert change_factor({tp(0): (9, 2, 3)}, racks_of, 2).targets == {tp(0): (2, 3)}


def test_an_unknown_broker_cannot_be_drained():
    with pytest.raises(PlanError, match="broker 44 is not among"):
        drain(round_robin(2, 2, 1), racks(2, 1), {44})


def quadratic(assignment, racks, joining):
    """`add` before leaders are levelled, in the plain way: every replica is looked at for every one that goes."""
    placement = Placement(assignment, racks)
    fair = sum(placement.count[broker] for broker in placement.brokers) // len(placement.brokers)
    for most, new in ((most, new) for most in (fair, fair + 1) for new in sorted(joining)):
        while placement.count[new] < most:
            for old in sorted(placement.brokers, key=lambda b: (-placement.count[b], b)):
                fitting = [
                    p
                    for p, replicas in placement.replicas.items()
                    if old in replicas
                    and new not in replicas
                    and placement.crowding(p, new, old) <= placement.crowding(p, old, old)
                ]
                if fitting and placement.count[old] > max(fair, placement.count[new] + 1):
                    placement.replace(min(fitting, key=lambda p: (placement.replicas[p][0] == old, p)), old, new)
                    break
            else:
                break
    return placement.replicas


@pytest.mark.parametrize("seed", range(20))
def test_spreading_leaves_no_broker_with_two_replicas_more_than_another(seed):
    rng = random.Random(seed)
    for _ in range(20):
        brokers = rng.randint(2, 10)
        held = [rng.randrange(rng.randint(1, brokers)) for _ in range(rng.randint(1, 40))]
        now = after(
            {tp(n): (b,) for n, b in enumerate(held)},
            spread({tp(n): (b,) for n, b in enumerate(held)}, dict.fromkeys(range(brokers))),
        )
        each = counts(now)
        assert max(each.values()) - min(each[broker] for broker in range(brokers)) <= 1


def test_a_dead_broker_that_stays_is_no_reason_to_refuse_a_drain():
    now = drain({tp(0): (1, 2, 9), tp(1): (3,)}, dict.fromkeys((1, 2, 3)), {3})
    assert now.targets == {tp(1): (1,)}
    assert drain({tp(0): (8, 9, 3)}, dict.fromkeys((1, 2, 3)), {3}).targets == {tp(0): (8, 9, 1)}


def test_what_joins_gets_what_the_plain_way_would_give_it():
    rng = random.Random(11)
    for _ in range(40):
        brokers, factor = rng.randint(4, 9), rng.randint(1, 3)
        there = range(brokers - rng.randint(1, 2))
        before = {tp(n): tuple(rng.sample(there, min(factor, len(there)))) for n in range(rng.randint(1, 60))}
        where = racks(brokers, rng.randint(1, brokers))
        joining = set(range(brokers)) - set(there)
        now = after(before, add(before, where, joining))
        assert {p: set(r) for p, r in now.items()} == {p: set(r) for p, r in quadratic(before, where, joining).items()}


@pytest.mark.parametrize(
    "plan",
    [
        lambda before: add(before, racks(14, 7), {12, 13}),
        lambda before: spread(before, racks(14, 7)),
        lambda before: drain(before, racks(12, 6), {0, 1}),
        lambda before: change_factor(before, racks(12, 6), 2),
    ],
    ids=["add", "spread", "drain", "change_factor"],
)
def test_ten_thousand_partitions_are_planned_in_two_seconds(plan):
    before = round_robin(10_000, 12, 3)
    begun = time.process_time()
    assert plan(before).targets
    assert time.process_time() - begun < 2.0
