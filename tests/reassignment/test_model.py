"""The model of a throttled move's duration, against arithmetic by hand."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.kafka.types import TopicPartition
from testbed.throttle.duration import Copy, Share, bottleneck, seconds, seconds_over, shares, throttle_for

MB = 10**6


def copy(number: int, leader: int, in_sync: tuple[int, ...], adding: tuple[int, ...], mb: int, inbound: float) -> Copy:
    return Copy(TopicPartition("t", number), leader, in_sync, adding, mb * MB, inbound * MB)


def test_one_copy_between_two_brokers_is_bytes_over_quota() -> None:
    found = shares([copy(0, 1, (), (2,), 100, 0)])
    assert found == (Share(2, "receive", 100 * MB, 0), Share(1, "transmit", 100 * MB, 0))
    assert seconds(found, 10 * MB) == 10
    # Both take as long; the follower's is the one that limits.
    assert bottleneck(found, 10 * MB).direction == "receive"


def test_a_leader_pays_for_its_followers_in_sync_a_follower_for_its_own_copy() -> None:
    found = shares([copy(0, 1, (3,), (2,), 100, 2)])
    assert found == (Share(2, "receive", 100 * MB, 2 * MB), Share(1, "transmit", 100 * MB, 4 * MB, 2 * MB))
    assert seconds(found, 10 * MB) == pytest.approx(100 / 6)
    assert bottleneck(found, 10 * MB).broker == 1


def test_two_that_send_to_one_are_bound_by_the_one() -> None:
    found = shares([copy(0, 1, (2,), (3,), 100, 1), copy(1, 2, (1,), (3,), 100, 1)])
    receiver = bottleneck(found, 10 * MB)
    assert (receiver.broker, receiver.direction, receiver.bytes) == (3, "receive", 200 * MB)
    assert seconds(found, 10 * MB) == 200 / 8


def test_a_quota_at_or_under_the_inbound_rate_never_ends_and_the_worst_is_named() -> None:
    found = shares([copy(0, 1, (3,), (2,), 100, 5)])
    assert seconds(found, 10 * MB) == math.inf
    assert bottleneck(found, 4 * MB) == Share(1, "transmit", 100 * MB, 10 * MB, 5 * MB)


def test_what_carries_nothing_does_not_bind() -> None:
    assert seconds([Share(1, "transmit", 0, 50 * MB)], MB) == 0
    assert seconds((), MB) == 0
    with pytest.raises(ValueError):
        bottleneck((), MB)


def test_a_wildcard_lists_followers_on_their_own_side_too() -> None:
    found = shares([replace(copy(0, 1, (3,), (2,), 100, 2), receiving=(3,))])
    assert Share(3, "receive", 0, 2 * MB, 2 * MB) in found


def test_the_throttle_for_a_deadline_just_meets_it() -> None:
    found = shares([copy(0, 1, (3,), (2,), 100, 2), copy(1, 2, (), (3,), 300, 1)])
    quota = throttle_for(found, 60)
    assert seconds(found, quota) == pytest.approx(60)
    with pytest.raises(ValueError, match="deadline of 0 s"):
        throttle_for(found, 0)


def test_a_quota_raised_halfway() -> None:
    found = shares([copy(0, 1, (), (2,), 100, 0)])
    assert seconds_over(found, [(5, 10 * MB), (math.inf, 25 * MB)]) == 5 + 50 / 25
    assert seconds_over(found, [(30, 10 * MB), (1, 1)]) == 10  # done within the first


def test_stuck_then_raised_pays_for_what_was_written_meanwhile() -> None:
    found = shares([copy(0, 1, (), (2,), 100, 4)])
    # 10 s at 2 MB/s under the inbound rate: 20 MB more to copy, then 8 MB/s of progress.
    assert seconds_over(found, [(10, 2 * MB), (1, 12 * MB)]) == 10 + 120 / 8
    assert seconds_over(found, [(10, 2 * MB)]) == math.inf
    with pytest.raises(ValueError, match="no phases"):
        seconds_over(found, [])


def test_replicas_in_sync_are_not_slowed_so_the_lag_grows_by_no_more_than_what_comes_in() -> None:
    share = shares([copy(0, 1, (3, 4), (2,), 10, 4)])[1]
    # Quota 1 MB/s, in-sync traffic 8 MB/s: nothing is left, the lag grows by 4 MB/s, not by 12 − 1.
    assert seconds_over([share], [(10, 1 * MB), (1, 22 * MB)]) == 10 + (10 + 40) / 10


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 500), st.floats(0, 3)), min_size=1, max_size=8
    ),
    st.floats(30, 200),
)
def test_one_phase_is_the_constant_case(moves: list[tuple[int, int, int, float]], quota: float) -> None:
    found = shares(
        [copy(n, leader, (), (leader + by,), mb, inbound) for n, (leader, by, mb, inbound) in enumerate(moves)]
    )
    assert seconds_over(found, [(1.0, quota * MB)]) == pytest.approx(seconds(found, quota * MB))
    assert seconds_over(found, [(0.5, quota * MB), (7, quota * MB)]) == pytest.approx(seconds(found, quota * MB))
    assert seconds(found, throttle_for(found, 100)) == pytest.approx(100)
