"""Held against a port of the sensor: a leader with two followers, whose window was running before the move."""

import heapq
import math

import pytest

from testbed.throttle.duration import Share
from testbed.throttle.quota_window import bytes_ending_in_a_burst, seconds_in_bursts

MB, MS = 1_000_000, 1000


class Sensor:
    """Kafka's SampledStat and SimpleRate with 11 samples of 1 s; times in ms."""

    def __init__(self):
        self.samples, self.current = [], 0

    def record(self, now, value):
        if not self.samples:
            self.samples.append([now, now, 0.0])
        elif now - self.samples[self.current][0] >= MS:
            self.current = (self.current + 1) % 12
            fresh = [now, now, 0.0]
            if self.current < len(self.samples):
                self.samples[self.current] = fresh
            else:
                self.samples.append(fresh)
        self.samples[self.current][1] = now
        self.samples[self.current][2] += value

    def rate(self, now):
        for sample in self.samples:
            if now - sample[1] >= 11 * MS:
                sample[:] = [now, now, 0.0]
        if not self.samples:
            return 0.0
        return sum(s[2] for s in self.samples) * MS / max(MS, now - min(s[0] for s in self.samples))


def simulated_s(quota, total, followers, *, running):
    """Each follower fetches 1 MiB at a time at 45 MB/s when neither quota is exceeded, else looks again after 50 ms."""
    leader, own, left = Sensor(), [Sensor() for _ in range(followers)], [total / followers] * followers
    for now in range(-15 * MS, 0, 50) if running else ():
        leader.record(now, 64.0)
    turns, line_free = [(7.0 * i, i) for i in range(followers)], 0.0
    while turns:
        now, i = heapq.heappop(turns)
        if left[i] <= 0:
            continue
        if own[i].rate(now) > quota or leader.rate(now) > quota:
            leader.record(now + 50, 64.0)
            heapq.heappush(turns, (now + 50, i))
            continue
        size = min(1 << 20, left[i])
        left[i] -= size
        leader.record(now, size)
        line_free = max(now, line_free) + size / 45_000
        own[i].record(line_free, size)
        heapq.heappush(turns, (line_free + 2, i))
    return line_free / MS


@pytest.mark.parametrize("total_mb", [150, 240, 330, 400, 520, 600, 900])
def test_a_running_window_lets_its_worth_through_at_once_as_the_sensor_does(total_mb):
    share = Share(1, "transmit", total_mb * MB, 0.0)
    predicted = seconds_in_bursts(share, 10 * MB, 20 * MB)
    # How old the oldest sample is when a burst begins is within one sample: a second for each burst.
    assert predicted == pytest.approx(
        simulated_s(10 * MB, total_mb * MB, 2, running=True), abs=0.5 * total_mb / 115 + 1
    )


def test_a_fresh_window_is_even_and_takes_bytes_by_quota():
    assert simulated_s(10 * MB, 520 * MB, 2, running=False) == pytest.approx(52.0, rel=0.02)


def test_one_follower_is_held_back_by_its_own_quota_and_never_bursts():
    assert simulated_s(10 * MB, 520 * MB, 1, running=True) == pytest.approx(52.0, rel=0.02)
    assert seconds_in_bursts(Share(1, "transmit", 520 * MB, 0.0), 10 * MB, 10 * MB) == pytest.approx(52.0)


def test_a_burst_catches_up_before_what_comes_in_has_filled_the_gap():
    share = Share(1, "transmit", 208 * MB, 6 * MB, 3 * MB)
    assert share.seconds(10 * MB) == 52.0
    assert seconds_in_bursts(share, 10 * MB, 23 * MB) == pytest.approx(38.6, abs=0.1)


def test_what_comes_in_faster_than_the_quota_never_ends_and_nothing_takes_no_time():
    assert seconds_in_bursts(Share(1, "transmit", 1, 10.0), 10.0, 20.0) == math.inf
    assert seconds_in_bursts(Share(1, "transmit", 0, 5.0), 10.0, 20.0) == 0.0


@pytest.mark.parametrize(("keepup", "sent_at"), [(0, 20), (6, 23), (2, 7.5)])
def test_a_volume_that_ends_within_a_burst_ends_there_also_when_a_little_more_or_less_is_copied(keepup, sent_at):
    quota = 10 if keepup != 2 else 6
    total = bytes_ending_in_a_burst(keepup * MB, quota * MB, sent_at * MB, 62.0)
    ends = [
        seconds_in_bursts(Share(1, "transmit", round(total * part), keepup * MB), quota * MB, sent_at * MB)
        for part in (0.98, 1.0, 1.02)
    ]
    assert 50 < ends[1] <= 62
    assert max(ends) - min(ends) < 2


def test_a_quota_just_above_the_inbound_rate_is_computed_at_once():
    """The lag falls by 1 B/s: the move takes 31,700 years, which is no reason to count its bursts."""
    needed_s = seconds_in_bursts(Share(1, "transmit", 1_000_000_000_000, 999_999), 1_000_000, 50e6)
    assert needed_s == pytest.approx(1e12, rel=0.01)
