"""Whether a move is stuck, from its lag over time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.reassignment.stall import StallDetector


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
