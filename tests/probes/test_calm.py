"""Waiting for the machine to be calm: what is looked at is the time that passed since the last look."""

import pytest

from testbed.probes.machine import LoadReading, wait_calm


def reading(*shares):
    """The readings of a machine that was so busy in one look after the other; then as in the last one."""
    left, busy, total = list(shares), 0, 0

    def times():
        nonlocal busy, total
        if total:
            share = left.pop(0) if len(left) > 1 else left[0]
            busy += round(100 * share)
        total += 100
        return LoadReading(busy, 0, total)

    return left, times


def test_it_waits_until_one_look_is_calm():
    left, times = reading(1.0, 0.9, 0.5, 1.0)
    assert wait_calm(0.55, 0.001, 10.0, times)
    assert left == [1.0]


@pytest.mark.parametrize("share", [0.56, 1.0])
def test_it_gives_up_and_says_so(share):
    _left, times = reading(share)
    assert not wait_calm(0.55, 0.001, 0.02, times)


def test_a_clock_that_stands_still_is_not_calm():
    assert not wait_calm(0.55, 0.001, 0.02, lambda: LoadReading(5, 0, 10))
