"""How long a move takes whose quota changes: the window remembers what passed under the quota before. Pure.

A quota is held to over the last 11 samples of 1 s. When it is raised, those hold what the old one let through, and
the difference, 11 s × (new − old), may pass at once, as fast as the line carries it. It leaves the window in the same
heap 11 s later, and so on: after a raise a move comes in bursts, ahead of *bytes ÷ quota* by up to that difference.
When a quota is lowered nothing passes until the window has room again.

So the window is followed here as Kafka's `SampledStat` and `SimpleRate` keep it, in steps of a twentieth of a second.
"""

import math
from collections import deque
from collections.abc import Sequence

from testbed.reassignment.bursts import PERIOD_S
from testbed.reassignment.model import Share, seconds_over

SAMPLES, SAMPLE_S = 11, 1.0
STEP_S = 0.05
BURST_BYTES_PER_S = 30_000_000
"""How fast a fetcher with tuned settings copied on two cores where neither quota nor NIC (48 MB/s) held it back."""


class Window:
    """The newest samples of a quota: what passed, and since when."""

    def __init__(self) -> None:
        self._samples: deque[list[float]] = deque()
        """[begin, end, bytes], oldest first."""

    def record(self, at_s: float, size: float) -> None:
        """So many bytes passed at that time."""
        if not self._samples or at_s - self._samples[-1][0] >= SAMPLE_S:
            self._samples.append([at_s, at_s, 0.0])
        self._samples[-1][1] = at_s
        self._samples[-1][2] += size

    def rate(self, at_s: float) -> float:
        """B/s over the time since the oldest sample began that is still counted, a second at least."""
        while self._samples and at_s - self._samples[0][1] >= SAMPLES * SAMPLE_S:
            self._samples.popleft()
        if not self._samples:
            return 0.0
        return sum(size for _, _, size in self._samples) / max(SAMPLE_S, at_s - self._samples[0][0])


def seconds_changing(shares: Sequence[Share], phases: Sequence[tuple[float, float]], line_bytes_per_s: float) -> float:
    """How long a move takes under quotas that follow each other: (seconds, B/s), the last for as long as it takes.

    ``line_bytes_per_s`` is how fast bytes pass while the quota lets them. Infinite when it never ends.
    """
    most_s = seconds_over(shares, phases)
    if not math.isfinite(most_s):
        return most_s
    return max((_seconds(share, phases, line_bytes_per_s, most_s) for share in shares), default=0.0)


def bytes_after_a_raise(
    keepup_bytes_per_s: float, raised: tuple[float, float], raised_at_s: float, about_s: float, line_bytes_per_s: float
) -> int:
    """How much a move must have to copy in order to end in the middle of a burst, after ``about_s`` or somewhat less.

    ``raised`` are the quotas before and after. Of a move that ends at the edge of a burst a second more or less of the
    line decides about a whole window. Not above 0 when there is no such end.
    """
    low, high = raised
    heap = (high - low) * SAMPLES * SAMPLE_S
    lasts_s = heap / max(1.0, line_bytes_per_s - low)
    number = max(0, math.floor((about_s - raised_at_s - lasts_s / 2) / PERIOD_S))
    end_s = raised_at_s + number * PERIOD_S + lasts_s / 2
    return round(low * end_s + (number + 0.5) * heap - keepup_bytes_per_s * end_s)


def _seconds(share: Share, phases: Sequence[tuple[float, float]], line_bytes_per_s: float, about_s: float) -> float:
    left, now, window = float(share.bytes), 0.0, Window()
    if not left:
        return 0.0
    caught_up_bytes = max(0.0, line_bytes_per_s - share.in_sync_bytes_per_s) * STEP_S
    arriving = (share.keepup_bytes_per_s - share.in_sync_bytes_per_s) * STEP_S
    # Of a window that was full when the quota was lowered as much is lost as a raise has won.
    while now < 2 * about_s + 2 * SAMPLES * SAMPLE_S:
        left += arriving
        passed = min(left, caught_up_bytes) if window.rate(now) <= _quota(phases, now) else 0.0
        left -= passed
        in_sync = share.in_sync_bytes_per_s * STEP_S
        if passed or in_sync:
            window.record(now, passed + in_sync)
        now += STEP_S
        if left <= 0:
            return now
    return now


def _quota(phases: Sequence[tuple[float, float]], at_s: float) -> float:
    for lasts_s, quota_bytes_per_s in phases[:-1]:
        if at_s < lasts_s:
            return quota_bytes_per_s
        at_s -= lasts_s
    return phases[-1][1]
