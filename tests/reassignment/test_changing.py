"""Held against a port of Kafka's sensor, and against moves whose throttle was changed on real brokers."""

import math

import pytest

from testbed.throttle.duration import Share, seconds_over
from testbed.throttle.quota_window import BURST_BYTES_PER_S, WindowSettings, bytes_after_a_raise, seconds_changing
from tests.reassignment.test_bursts import MB, MS, Sensor

LINE = BURST_BYTES_PER_S


def simulated_s(phases, total, keepup=0.0, line=LINE):
    """One follower fetches 1 MiB at a time when its quota is not exceeded, else looks again after 50 ms."""
    edges = [sum(lasts for lasts, _ in phases[:i]) * MS for i in range(len(phases))]
    own, left, now = Sensor(), float(total), 0.0
    while left > 0:
        quota = [q for edge, (_, q) in zip(edges, phases, strict=True) if edge <= now][-1]
        if own.rate(now) > quota:
            now, left = now + 50, left + keepup * 0.05
            continue
        size = min(1 << 20, left)
        took = size / line * MS
        now, left = now + took, left - size + keepup * took / MS
        own.record(now, size)
    return now / MS


RAISED = [(17.3, 2 * MB), (0, 10 * MB)]
CHANGED = [(25.2, 5 * MB), (24.2, 9 * MB), (0, 7 * MB)]


@pytest.mark.parametrize("total_mb", [120, 200, 254, 330])
def test_a_raised_quota_lets_the_difference_through_at_once_as_the_sensor_does(total_mb):
    share = Share(2, "receive", total_mb * MB, 3 * MB)
    assert seconds_changing([share], RAISED, LINE) == pytest.approx(simulated_s(RAISED, total_mb * MB, 3 * MB), abs=1.5)


@pytest.mark.parametrize(("phases", "total", "keepup", "observed_s"), [
    (CHANGED, 507_834_233, 0.0, 74.3),
    ([(24.2, 5 * MB), (24.2, 9 * MB), (0, 7 * MB)], 507_834_559, 0.0, 72.9),
    (RAISED, 298_086_500, 3_035_304, 56.7),
])  # fmt: skip
def test_it_took_so_long_on_real_brokers(phases, total, keepup, observed_s):
    """Kafka 4.3.1, two brokers with NICs of 400 Mbit/s, `kip73-live-change` and `kip73-stuck`."""
    share = Share(2, "receive", total, keepup)
    assert seconds_changing([share], phases, LINE) == pytest.approx(observed_s, rel=0.03)


def test_one_quota_is_bytes_by_quota_and_the_busiest_share_counts():
    shares = [Share(1, "transmit", 520 * MB, 0.0), Share(2, "receive", 100 * MB, 0.0)]
    assert seconds_changing(shares, [(0, 10 * MB)], LINE) == pytest.approx(52.0, rel=0.02)


def test_a_longer_window_remembers_more_of_what_a_lower_quota_left():
    """After a raise from 2 to 12 MB/s, 10 MB/s times the window pass at the line's rate."""
    share, phases = Share(2, "receive", 260 * MB, 0.0), [(30.0, 2 * MB), (0, 12 * MB)]
    windows = WindowSettings(11, 2.0), WindowSettings(), WindowSettings(6, 1.0)
    longest, kafkas, shortest = (seconds_changing([share], phases, LINE, window) for window in windows)
    assert longest == pytest.approx(30 + 200 * MB / LINE, abs=0.5)  # 220 MB may pass at once
    assert longest + 2 < kafkas <= shortest


def test_what_is_in_sync_is_counted_and_never_held_back():
    share = Share(1, "transmit", 200 * MB, 4 * MB, 2 * MB)
    assert seconds_changing([share], [(0, 10 * MB)], LINE) == pytest.approx(share.seconds(10 * MB), rel=0.02)


def test_a_lowered_quota_waits_until_the_window_has_room():
    phases = [(20.0, 10 * MB), (0, 2 * MB)]
    total = 200 * MB + 22 * MB
    plain, remembered = seconds_over([Share(1, "receive", total, 0.0)], phases), 20 + 9
    assert plain == pytest.approx(31)
    assert remembered < seconds_changing([Share(1, "receive", total, 0.0)], phases, LINE) < 20 + 2 * 11


def test_what_never_ends_never_does_and_nothing_takes_no_time():
    assert seconds_changing([Share(1, "receive", MB, 3 * MB)], [(5, 2 * MB), (0, 3 * MB)], LINE) == math.inf
    assert seconds_changing([Share(1, "receive", 0, 3 * MB)], RAISED, LINE) == 0.0
    assert seconds_changing([], RAISED, LINE) == 0.0


@pytest.mark.parametrize("raised", [8, 10, 14])
def test_a_volume_that_ends_within_a_burst_ends_there_also_when_the_line_is_faster_or_more_is_copied(raised):
    phases = [(17.3, 2 * MB), (0, raised * MB)]
    total = bytes_after_a_raise(3 * MB, (2 * MB, raised * MB), 17.3, 57.3, LINE)
    ends = [
        seconds_changing([Share(2, "receive", round(total * part), 3 * MB)], phases, line)
        for part in (0.97, 1.0, 1.03)
        for line in (0.8 * LINE, LINE, 1.5 * LINE)
    ]
    assert 45 < ends[4] <= 58
    assert max(ends) - min(ends) < 3
