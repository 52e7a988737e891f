"""How long a move still takes, from its lag over time."""

import math
import random

from testbed.reassignment.remaining_time import Pace

MB = 10**6


def test_remaining_time_of_a_steady_pace_is_exact() -> None:
    pace = Pace()
    for second in range(22):
        pace.add(second, (1000 - 10 * second) * MB)
        assert pace.remaining() is None
    pace.add(22, 780 * MB)
    left = pace.remaining()
    assert left is not None
    assert (left.seconds, left.low_s, left.high_s) == (78, 78, 78)
    assert left.rate_per_s == 10 * MB
    pace.restart()
    assert pace.remaining() is None


def test_a_pace_that_may_be_nil_has_no_upper_end() -> None:
    pace = Pace()
    for at_s, lag in ((0, 1000), (11, 990), (22, 900), (33, 890)):
        pace.add(at_s, lag)
    left = pace.remaining()
    assert left is not None
    assert left.low_s < left.seconds < left.high_s == math.inf


def test_a_growing_lag_never_ends_and_a_lag_of_nothing_is_done() -> None:
    growing, nothing = Pace(), Pace()
    for at_s in range(0, 40, 2):
        growing.add(at_s, 100 + at_s)
        nothing.add(at_s, 0)
    assert (left := growing.remaining()) is not None and left.seconds == math.inf
    assert (left := nothing.remaining()) is not None and left.seconds == 0


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    draw = random.Random(7)
    held = 0
    for _ in range(400):
        pace, lag = Pace(), 10_000.0
        for second in range(90):
            pace.add(second, lag)
            lag -= draw.expovariate(1 / 10)  # lumps of any size, 10 a second in the mean
        left = pace.remaining()
        assert left is not None
        held += left.low_s <= pace._readings[-1].lag / 10 <= left.high_s
    assert 0.91 <= held / 400 <= 0.99
