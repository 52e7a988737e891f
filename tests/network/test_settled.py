"""A link that reads low once is measured again; one that is off stays off."""

import pytest

from testbed.errors import TestbedError
from testbed.network.measure import LinkRate, settled


def rates(*ratios, earlier=()):
    """Return the rates of b1 and b2; `earlier` are those of b2 before."""
    return tuple(
        LinkRate(place, "data0", "transmit", 10**6, 1e5 * ratio, ratio, 2.0, 10**6, earlier=before)
        for place, ratio, before in zip(("b1", "b2"), ratios, ((), earlier), strict=True)
    )


def taking(*answers):
    left = list(answers)
    asked = []

    def take(only):
        asked.append(only)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return left, asked, take


def test_nothing_is_measured_twice_that_is_as_declared():
    left, _asked, take = taking(rates(0.99, 1.0), rates(0.5, 0.5))
    assert settled(take) == rates(0.99, 1.0)
    assert len(left) == 1


def test_only_what_was_off_has_its_new_reading():
    _left, asked, take = taking(rates(0.99, 0.89), rates(0.7, 0.998))
    assert settled(take) == rates(0.99, 0.998, earlier=(0.89,))
    assert asked == [None, {("b2", "data0", "transmit")}]


def test_what_is_off_every_time_is_off():
    left, asked, take = taking(rates(0.99, 0.5), rates(0.98, 0.6), rates(0.97, 0.7), rates(1.0, 1.0))
    assert settled(take, tries=3) == rates(0.99, 0.7, earlier=(0.5, 0.6))
    assert len(left) == 1
    assert asked[1:] == [{("b2", "data0", "transmit")}] * 2


def test_a_measurement_that_fails_once_is_made_again():
    _left, _asked, take = taking(TestbedError("no answer"), rates(0.99, 0.9), TestbedError("no answer"))
    assert settled(take, tries=3) == rates(0.99, 0.9)


def test_one_that_fails_every_time_has_failed():
    _left, _asked, take = taking(*(TestbedError(f"no answer {number}") for number in (1, 2, 3)))
    with pytest.raises(TestbedError, match="no answer 3"):
        settled(take, tries=3)
