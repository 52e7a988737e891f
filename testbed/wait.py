"""Waits for a condition. They return as soon as it holds; the timeout's error names the missing condition."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from results.contract.texts import shortened
from testbed.errors import TestbedError

_T = TypeVar("_T")


class WaitTimeout(TestbedError):
    """The condition did not hold in time; ``last_seen`` is the last observation. The message cuts a long one off."""

    def __init__(self, what: str, timeout_s: float, last_seen: Any) -> None:
        self.last_seen = last_seen
        super().__init__(f"waited {timeout_s:g} s for {what}; last seen: {_shown(last_seen)}")


_MOST_ITEMS, _MOST_CHARACTERS = 8, 1000


def _shown(seen: object) -> str:
    """Return an observation as text. One of thousands of partitions has the first of them, and how many there are."""
    text = str(seen)
    if len(text) > _MOST_CHARACTERS and isinstance(seen, list | tuple | set | frozenset):
        text = ", ".join(shortened(seen, _MOST_ITEMS))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def wait_until(condition: Callable[[], bool], timeout_s: float, interval_s: float, what: str) -> None:
    """Check ``condition`` every ``interval_s`` until it is True; otherwise as `wait_for`.

    Raise TypeError when the condition returns anything but a bool: a list of missing items would count as true.
    """

    def observe() -> bool:
        seen: object = condition()
        if not isinstance(seen, bool):
            raise TypeError(f"the condition {what!r} returned {seen!r}: must be True or False")
        return seen

    wait_for(observe, lambda seen: seen, timeout_s, interval_s, what)


def wait_for(
    observe: Callable[[], _T], accept: Callable[[_T], bool], timeout_s: float, interval_s: float, what: str
) -> _T:
    """Observe every ``interval_s`` until ``accept(observed)`` holds, and return that observation.

    Observe at least once, also with a timeout of 0, and once more at the deadline. Return without a further
    sleep. Use the monotonic clock. Raise `WaitTimeout`, which names ``what`` and the last observation.
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
