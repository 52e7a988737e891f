import time

import pytest

from testbed.wait import WaitTimeout, wait_for, wait_until


def test_returns_at_once_on_success() -> None:
    before = time.monotonic()
    wait_until(lambda: True, timeout_s=60, interval_s=30, what="nothing")
    assert time.monotonic() - before < 1


def test_returns_without_a_further_sleep() -> None:
    seen = iter([1, 2, 3])
    before = time.monotonic()
    assert wait_for(lambda: next(seen), lambda n: n == 3, 60, 0.02, "three") == 3
    assert 0.04 <= time.monotonic() - before < 1


def test_says_what_was_waited_for_and_what_was_seen_last() -> None:
    with pytest.raises(WaitTimeout, match=r"waited 0\.01 s for leaders; last seen: \[3, 4\]") as caught:
        wait_for(lambda: [3, 4], lambda left: not left, 0.01, 0.005, "leaders")
    assert caught.value.last_seen == [3, 4]


def test_what_was_seen_last_is_cut_off_where_it_is_long() -> None:
    """A move of thousands of partitions named each of them in one line of the terminal, the manifest and the report."""
    left = [f"t-{partition}" for partition in range(5000)]
    with pytest.raises(WaitTimeout) as caught:
        wait_for(lambda: left, lambda seen: not seen, 0, 1, "replicas in sync")
    assert str(caught.value) == (
        "waited 0 s for replicas in sync; last seen: t-0, t-1, t-2, t-3, t-4, t-5, t-6, t-7, and 4992 more"
    )
    assert caught.value.last_seen == left
    assert len(str(WaitTimeout("a state", 1, dict.fromkeys(left, "moving")))) < 1100


def test_looks_once_also_without_time() -> None:
    assert wait_for(lambda: 5, lambda n: n == 5, 0, 1, "five") == 5


def test_a_condition_must_say_true_or_false() -> None:
    with pytest.raises(TypeError, match=r"'leaders' returned \[\]: must be True or False"):
        wait_until(lambda: [], 1, 0.1, "leaders")  # type: ignore[arg-type, return-value]


def test_an_interval_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="interval 0 s"):
        wait_until(lambda: True, 1, 0, "nothing")
