"""A move's lag over time: stuck or not, and how long it still takes."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.reassignment.stall import Pace, StallDetector

MB = 10**6


def _first_alarm(lags: list[float], patience_s: float = 10) -> int | None:
    detector = StallDetector(patience_s)
    return next((second for second, lag in enumerate(lags) if detector.look(second, lag)), None)


def test_a_lag_that_stands_still_is_stuck_after_the_patience_and_says_since_when() -> None:
    detector = StallDetector(10)
    lags = [100 - 5.0 * s for s in range(6)] + [75.0] * 10
    assert [detector.look(s, lag) for s, lag in enumerate(lags[:15])] == [None] * 15
    stuck = detector.look(15, lags[15])
    assert stuck is not None
    assert (stuck.seconds, stuck.lag, stuck.rate_per_s) == (10, 75, 0)


def test_a_lag_that_grows_is_stuck_and_its_growth_is_told() -> None:
    detector = StallDetector(10)
    found = [detector.look(s, 100 + 3.0 * s) for s in range(12)]
    assert found[:10] == [None] * 10
    assert found[10] is not None and found[10].rate_per_s == 3
    assert found[11] is not None and found[11].seconds == 11


@pytest.mark.parametrize(
    "lags",
    [
        pytest.param([1000 - 0.01 * s for s in range(500)], id="slow but falling"),
        pytest.param([1000.0 + 9 * s for s in range(9)] + [999.0 - s for s in range(300)], id="rises at the start"),
        pytest.param([1000 - s + 8 * (s % 9) for s in range(500)], id="sawtooth"),
        pytest.param([1000.0 - 100 * (s // 9) for s in range(80)], id="in steps shorter than the patience"),
    ],
)
def test_no_false_alarm(lags: list[float]) -> None:
    assert _first_alarm(lags) is None


def test_a_sawtooth_that_no_longer_falls_is_an_alarm() -> None:
    lags = [1000 - s + 8 * (s % 9) for s in range(90)] + [1000.0 + 8 * (s % 9) for s in range(50)]
    assert lags.index(min(lags)) == 81
    assert _first_alarm(lags) == 81 + 10


def test_an_alarm_ends_when_the_lag_goes_below_its_lowest() -> None:
    detector = StallDetector(2)
    told = [detector.look(s, lag) is not None for s, lag in enumerate([9.0, 9, 9, 12, 8, 8, 7])]
    assert told == [False, False, True, True, False, False, False]


def test_done_and_restarted_forget_what_was() -> None:
    detector = StallDetector(2)
    detector.look(0, 5)
    assert detector.look(9, 5, done=True) is None
    assert detector.look(10, 50) is None
    detector.restart()
    assert detector.look(13, 500) is None
    assert detector.look(15, 500) is not None
    with pytest.raises(ValueError, match="patience of 0 s"):
        StallDetector(0)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=60), st.integers(1, 20))
def test_an_alarm_is_exactly_a_lowest_value_that_is_too_old(lags: list[float], patience: int) -> None:
    detector = StallDetector(patience)
    for second, lag in enumerate(lags):
        told = detector.look(second, lag)
        lowest = lags[: second + 1].index(min(lags[: second + 1]))
        assert (told is not None) == (second - lowest >= patience)


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
