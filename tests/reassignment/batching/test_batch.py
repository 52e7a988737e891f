import random
import time

import pytest

from testbed.kafka.types import TopicPartition
from testbed.reassignment.batching.batch import Batch, BatchLimits, choose_batch
from testbed.reassignment.batching.forecast import forecast
from testbed.reassignment.batching.step import NoStep, PartitionView, Step, next_step


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


FIFTY = range(50)
STAYS, LEADS = Step((1, 2), (1, 3)), Step((1, 2), (3, 1, 2))


def test_leader_movements_come_first_and_are_bounded():
    wanted = [(tp(0), STAYS), (tp(1), LEADS), (tp(2), LEADS), (tp(3), STAYS), (tp(4), LEADS)]
    batch = choose_batch(wanted, BatchLimits(partitions=3, leaders=2))
    assert list(batch.steps) == [tp(1), tp(2), tp(0)]
    why = {4: "2 leader movements are in flight", 3: "3 partitions are in flight"}
    assert {p.partition: reason for p, reason in batch.deferred.items()} == why


def test_without_limits_everything_goes_at_once_but_what_waits():
    batch = choose_batch([(tp(0), STAYS), (tp(1), NoStep("target offline: broker 9"))], BatchLimits())
    assert list(batch.steps) == [tp(0)]
    assert batch.deferred[tp(1)] == "target offline: broker 9"


def test_what_is_in_flight_holds_its_place():
    batch = choose_batch(
        [(tp(1), LEADS), (tp(2), STAYS), (tp(3), STAYS)], BatchLimits(partitions=2, leaders=1), {tp(0): LEADS}
    )
    assert list(batch.steps) == [tp(2)]
    assert batch.deferred[tp(1)] == "1 leader movement is in flight"


def test_a_limit_lowered_below_what_is_in_flight_starts_nothing():
    assert not choose_batch([(tp(9), STAYS)], BatchLimits(partitions=1), {tp(0): STAYS, tp(1): STAYS}).steps


def test_a_broker_receives_no_more_than_its_cap():
    batch = choose_batch([(tp(n), STAYS) for n in range(4)], BatchLimits(per_broker=2))
    assert list(batch.steps) == [tp(0), tp(1)]
    assert batch.deferred[tp(2)] == "broker 3 receives 2 replicas"


def test_no_more_steps_begin_in_one_turn_than_starts_permits():
    batch = choose_batch([(tp(n), STAYS) for n in range(4)], BatchLimits(partitions=4, starts=1), {tp(9): STAYS})
    assert list(batch.steps) == [tp(0)]
    assert batch.deferred[tp(1)] == "1 copy begins in this turn, the most permitted"


def test_a_step_that_copies_nothing_may_always_begin():
    drops = Step((1, 2, 3), (1, 2))
    batch = choose_batch([(tp(0), STAYS), (tp(1), drops), (tp(2), STAYS)], BatchLimits(starts=1))
    assert list(batch.steps) == [tp(0), tp(1)]


@pytest.mark.parametrize("name", ["replicas", "partitions", "per_broker", "starts"])
def test_a_limit_of_none_at_all_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} is 0"):
        BatchLimits(**{name: 0})


def test_a_forecast_holds_every_limit_and_ends_at_every_target():
    rng = random.Random(7)
    for _ in range(200):
        views = {
            tp(n): PartitionView(tuple(rng.sample(range(6), 3)), tuple(rng.sample(range(6), 3)), range(6), 2)
            for n in range(30)
        }
        limits = BatchLimits(
            rng.choice([1, 2, None]), rng.choice([1, 4, None]), rng.choice([1, 2, None]), rng.choice([2, None])
        )
        found = forecast(views, range(6), limits)
        at = {p: view.current for p, view in views.items()}
        for batch in found:
            assert limits.partitions is None or len(batch.steps) <= limits.partitions
            assert limits.leaders is None or sum(s.moves_leader for s in batch.steps.values()) <= limits.leaders
            for p, step in batch.steps.items():
                assert at[p] == step.current
                at[p] = step.replicas
        assert at == {p: view.target for p, view in views.items()}


def considered_each_time(views, online, limits):
    """Return the forecast of the plain algorithm: every batch considers every partition."""
    state, batches = dict(sorted(views.items())), []
    while True:
        steps = {p: step for p, view in state.items() if (step := next_step(view, online, limits.replicas)) is not None}
        chosen = choose_batch(steps.items(), limits).steps
        if not chosen:
            return batches
        batches.append(Batch(chosen))
        for p, step in chosen.items():
            state[p] = state[p]._replace(
                current=step.replicas, isr=[broker for broker in step.replicas if broker in online]
            )


@pytest.mark.parametrize("seed", range(12))
def test_queues_find_the_batches_that_considering_every_partition_finds(seed):
    rng = random.Random(seed)
    for _ in range(60):
        brokers, replicas = rng.choice([3, 6, 9]), rng.choice([1, 2, 3])
        online = [broker for broker in range(brokers) if rng.random() < 0.9]
        views = {}
        for n in range(rng.randint(1, 40)):
            current = tuple(rng.sample(range(brokers), replicas))
            target = tuple(rng.sample(range(brokers), rng.randint(1, min(3, brokers))))
            isr = tuple(broker for broker in current if broker in online)
            views[TopicPartition(f"t{n % 3}", n)] = PartitionView(current, target, isr, rng.choice([1, 1, 2]))
        limits = BatchLimits(
            replicas=rng.choice([1, 2, None]),
            partitions=rng.choice([1, 2, 5, 17, None]),
            leaders=rng.choice([0, 1, 3, None]),
            per_broker=rng.choice([1, 2, 4, None]),
        )
        found, wanted = forecast(views, online, limits), considered_each_time(views, online, limits)
        assert [list(batch.steps.items()) for batch in found] == [list(batch.steps.items()) for batch in wanted], (
            views,
            limits,
        )


def test_no_leader_movement_allowed_ends_without_a_batch():
    assert not forecast({tp(0): PartitionView((1, 2), (2, 1), (1, 2))}, (1, 2), BatchLimits(leaders=0))


@pytest.fixture(scope="module")
def hundred_thousand():
    rng = random.Random(3)
    return {
        TopicPartition(f"t{n % 97}", n): PartitionView(tuple(rng.sample(FIFTY, 3)), tuple(rng.sample(FIFTY, 3)), FIFTY)
        for n in range(100_000)
    }


@pytest.mark.parametrize(
    "limits", [BatchLimits(1, 500, 50), BatchLimits(1, 500, 50, 12), BatchLimits(1, 500, None, 10)]
)
def test_a_hundred_thousand_partitions_are_planned_in_time(hundred_thousand, limits):
    begun = time.process_time()
    found = forecast(hundred_thousand, FIFTY, limits)
    assert time.process_time() - begun < 10
    assert sum(len(batch.steps) for batch in found) > 200_000
