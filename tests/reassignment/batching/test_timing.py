"""How long a move in steps takes, by hand and against the model of a move at once."""

import math
import time

import pytest

from testbed.kafka.types import TopicPartition
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.forecast import (
    carried,
    finished_s,
    forecast,
    one_carries_all,
    spread_advice,
)
from testbed.reassignment.batching.step import PartitionView

BROKERS = range(1, 7)
QUOTA = [(0.0, 10.0)]


def views(*moves):
    return {
        TopicPartition("t", n): PartitionView(current, target, current) for n, (current, target) in enumerate(moves)
    }


def sizes(views, each=100):
    return dict.fromkeys(views, each)


def test_each_batch_is_done_when_its_busiest_end_is():
    found = views(*[((1,), (2,))] * 2, *[((1,), (3,))] * 2)
    batches = forecast(found, BROKERS, BatchLimits(1, 2))
    # Two to 2, two to 3, all from 1; what drops the old replicas copies nothing.
    assert finished_s(batches, sizes(found), QUOTA) == (20.0, 40.0, 40.0, 40.0)
    assert one_carries_all(batches, sizes(found))


def test_ends_that_take_turns_are_slower_than_all_at_once():
    found = views(((1,), (2,)), ((3,), (4,)))
    batches = forecast(found, BROKERS, BatchLimits(1, 1))
    assert finished_s(batches, sizes(found), QUOTA)[-1] == 20.0
    assert finished_s(forecast(found, BROKERS, BatchLimits()), sizes(found), QUOTA)[-1] == 10.0
    assert not one_carries_all(batches, sizes(found))


def test_a_copy_comes_from_who_leads_by_then():
    found = views(((1, 2), (3, 4)))
    batches = forecast(found, BROKERS, BatchLimits(1, 1))
    sent = {(share.broker, share.direction): share.bytes for share in carried(batches, sizes(found))}
    assert sent == {(3, "receive"): 100, (4, "receive"): 100, (1, "transmit"): 100, (3, "transmit"): 100}


def test_quotas_that_change_are_taken_one_after_the_other():
    found = views(((1,), (2,)), ((1,), (2,)))
    batches = forecast(found, BROKERS, BatchLimits(1, 1))
    assert finished_s(batches, sizes(found), [(15.0, 10.0), (0.0, 5.0)])[:3] == pytest.approx((10.0, 25.0, 25.0))
    assert finished_s(batches, sizes(found), [(0.0, 0.0)])[0] == math.inf


def test_nothing_to_copy_takes_no_time():
    found = views(((1, 2), (2, 1)))
    batches = forecast(found, BROKERS, BatchLimits(1, 1))
    assert finished_s(batches, sizes(found), QUOTA) == (0.0,)


EXCHANGE = views(*[((1, 2), (3, 4))] * 6, *[((2, 1), (4, 3))] * 6)


def test_batches_that_copy_to_one_target_at_a_time_take_twice_as_long_as_spread_ones():
    advice = spread_advice(EXCHANGE, BROKERS, BatchLimits(2, 2), sizes(EXCHANGE))
    assert advice is not None
    assert advice.per_broker == 1
    assert advice.times == pytest.approx(2.0, abs=0.2)
    capped = forecast(EXCHANGE, BROKERS, BatchLimits(2, 2, per_broker=1))
    assert finished_s(capped, sizes(EXCHANGE), QUOTA)[-1] == pytest.approx(120.0, abs=20.0)


@pytest.mark.parametrize(
    ("found", "limits"),
    [
        (EXCHANGE, BatchLimits(1, 12)),
        (EXCHANGE, BatchLimits(1)),
        (EXCHANGE, BatchLimits(1, 2, per_broker=2)),
        (views(*[((1,), (2,))] * 6), BatchLimits(1, 2)),
        (views(((1, 2), (2, 1))), BatchLimits(1, 2)),
    ],
    ids=["whole", "no P", "a cap is given", "one target", "nothing to copy"],
)
def test_no_cap_is_advised_where_it_saves_nothing(found, limits):
    assert spread_advice(found, BROKERS, limits, sizes(found)) is None


def test_a_large_plan_is_not_held_up_by_the_advice():
    """It is computed before a move begins."""
    large = views(*[((1, 2), (3, 4))] * 10_000, *[((2, 1), (4, 3))] * 10_000)
    begun = time.process_time()
    advice = spread_advice(large, BROKERS, BatchLimits(2, 100), sizes(large))
    assert time.process_time() - begun < 10
    assert advice is not None
    assert advice.per_broker == 50
    assert advice.times == pytest.approx(2.0, abs=0.2)
