"""What rests take of a throttle, held against a port of Kafka's sensor: batch by batch, as a follower copies them."""

import pytest

from tests.reassignment.test_bursts import MB, MS, Sensor

RESPONSE = 1 << 20
LINE = 45_000
"""Bytes per ms."""


def copied(quota, batch_bytes, rest_s, batches):
    """(ms, bytes in all) after each response: a follower that looks again 50 ms after it was held back."""
    sensor, now, total, found = Sensor(), 0.0, 0, []
    for _batch in range(batches):
        left = batch_bytes
        while left > 0:
            if sensor.rate(now) > quota:
                now += 50
                continue
            size = min(RESPONSE, left)
            now += size / LINE + 2
            left, total = left - size, total + size
            sensor.record(now, size)
            found.append((now, total))
        now += rest_s * MS
    return found


@pytest.mark.parametrize("quota", [4 * MB, 10 * MB])
@pytest.mark.parametrize("batch_s", [2.0, 3.3, 5.0, 13.0])
@pytest.mark.parametrize("rest_s", [0.0, 0.7, 1.0, 1.6, 2.0])
def test_a_rest_takes_at_most_its_part_of_the_window_from_the_mean(quota, batch_s, rest_s):
    found = copied(quota, round(quota * batch_s), rest_s, round(60 / batch_s))
    [first, *_rest] = [point for point in found if point[0] >= 12 * MS]
    last = found[-1]
    share = (last[1] - first[1]) / (last[0] - first[0]) * MS / quota
    # One response more or less at the edges, and one that is late in every window, as where nothing rests.
    edge = RESPONSE / quota * (MS / (last[0] - first[0]) + 1 / 11)
    assert 0.95 * (1 - rest_s / 10) <= share <= 1 + edge
    took_s = last[0] / MS
    assert 0.9 * batch_s * round(60 / batch_s) <= took_s <= 1.1 * batch_s * round(60 / batch_s) / (1 - rest_s / 10)


def test_rests_that_are_longer_than_a_batch_decide_themselves():
    found = copied(10 * MB, 5 * MB, 2.0, 20)
    assert found[-1][0] / MS > 1.1 * 20 * 0.5 / (1 - 2.0 / 10)
