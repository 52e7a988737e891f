"""How long a move in steps takes, by hand and against the model of a move at once."""

import math

import pytest

from testbed.kafka.types import TopicPartition
from testbed.reassignment.batching.forecast import batches_of, carried, finished_s, one_carries_all
from testbed.reassignment.batching.step import BatchLimits, PartitionView

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
    batches = batches_of(found, BROKERS, BatchLimits(1, 2))
    # Two to 2, two to 3, all from 1; what drops the old replicas copies nothing.
    assert finished_s(batches, sizes(found), QUOTA) == (20.0, 40.0, 40.0, 40.0)
    assert one_carries_all(batches, sizes(found))


def test_ends_that_take_turns_are_slower_than_all_at_once():
    found = views(((1,), (2,)), ((3,), (4,)))
    batches = batches_of(found, BROKERS, BatchLimits(1, 1))
    assert finished_s(batches, sizes(found), QUOTA)[-1] == 20.0
    assert finished_s(batches_of(found, BROKERS, BatchLimits()), sizes(found), QUOTA)[-1] == 10.0
    assert not one_carries_all(batches, sizes(found))


def test_a_copy_comes_from_who_leads_by_then():
    found = views(((1, 2), (3, 4)))
    batches = batches_of(found, BROKERS, BatchLimits(1, 1))
    sent = {(share.broker, share.direction): share.bytes for share in carried(batches, sizes(found))}
    assert sent == {(3, "receive"): 100, (4, "receive"): 100, (1, "transmit"): 100, (3, "transmit"): 100}


def test_quotas_that_change_are_taken_one_after_the_other():
    found = views(((1,), (2,)), ((1,), (2,)))
    batches = batches_of(found, BROKERS, BatchLimits(1, 1))
    assert finished_s(batches, sizes(found), [(15.0, 10.0), (0.0, 5.0)])[:3] == pytest.approx((10.0, 25.0, 25.0))
    assert finished_s(batches, sizes(found), [(0.0, 0.0)])[0] == math.inf


def test_nothing_to_copy_takes_no_time():
    found = views(((1, 2), (2, 1)))
    batches = batches_of(found, BROKERS, BatchLimits(1, 1))
    assert finished_s(batches, sizes(found), QUOTA) == (0.0,)
