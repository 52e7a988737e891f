"""Waiting for a condition: returns at once when it holds, and an error says what was missing."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from testbed.errors import TestbedError

_T = TypeVar("_T")


class WaitTimeout(TestbedError):
    """The condition did not come to hold; ``last_seen`` is what was observed last."""

    def __init__(self, what: str, timeout_s: float, last_seen: Any) -> None:
        self.what = what
        self.last_seen = last_seen
        super().__init__(f"waited {timeout_s:g} s for {what}; last seen: {last_seen}")


def wait_until(condition: Callable[[], bool], timeout_s: float, interval_s: float, what: str) -> None:
    """Check ``condition`` every ``interval_s`` until it is True; otherwise as `wait_for`.

    A condition that returns anything but a bool raises TypeError: a list of what is missing would be true.
    """

    def observe() -> bool:
        seen: object = condition()
        if not isinstance(seen, bool):
            raise TypeError(f"the condition {what!r} returned {seen!r}: must be True or False")
        return seen

    wait_for(observe, lambda seen: seen, timeout_s, interval_s, what)


def wait_for(
    observe: Callable[[], _T],
    accept: Callable[[_T], bool],
    timeout_s: float,
    interval_s: float,
    what: str,
) -> _T:
    """Observe every ``interval_s`` until ``accept(observed)`` holds, and return that observation.

    Observes at least once, also with a timeout of 0, and once more at the deadline; returns without a further
    sleep. Runs on the monotonic clock. Raises `WaitTimeout` naming ``what`` and the last observation.
    """
    if interval_s <= 0:
        raise ValueError(f"interval {interval_s} s: must be above 0")
    deadline = time.monotonic() + timeout_s
    while True:
        seen = observe()
        if accept(seen):
            return seen
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise WaitTimeout(what, timeout_s, seen)
        time.sleep(min(interval_s, left_s))
