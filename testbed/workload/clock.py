"""The time that a load goes by: that of the wall when it was first asked, counted on by the monotonic clock.

A wall clock that is set while a load runs would make records due all at once, or none for a while, and latencies what
nobody waited. All processes of a load share the machine's monotonic clock, and get the offset from the one that starts
them.
"""

import time


class LoadClock:
    """µs since the epoch that only go forward, at one pace. ``offset_ns`` is wall time less monotonic time."""

    def __init__(self) -> None:
        self.offset_ns = time.time_ns() - time.monotonic_ns()

    def now_us(self) -> int:
        """Now."""
        return (time.monotonic_ns() + self.offset_ns) // 1000


CLOCK = LoadClock()
"""That of this process."""
