"""The model of a broker's quota window: how long a move takes in bursts, and under quotas that change. Pure.

`docs/kip73.md` explains both: a leader with a complete window lets its quota pass in bursts, so that a move of a few
windows ends earlier than *bytes ÷ quota*; and after a raise, 11 s × (new − old) pass at once. `QuotaWindow` has the
samples as Kafka's `SampledStat` and `SimpleRate` do.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from results.contract.move import SAMPLE_S, WINDOW_SAMPLES
from testbed.throttle.duration import Share, seconds_over


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """A broker's quota window: `replication.quota.window.num` samples of `replication.quota.window.size.seconds`."""

    samples: int = WINDOW_SAMPLES
    sample_s: float = float(SAMPLE_S)

    @property
    def seconds(self) -> float:
        """Return the length of all samples."""
        return self.samples * self.sample_s

    @property
    def period_s(self) -> float:
        """Return the window's mean length: up to a sample more than `seconds`, as the oldest sample is whole or
        expires."""
        return self.seconds + self.sample_s / 2


KAFKAS_WINDOW = WindowSettings()
"""Kafka's defaults."""
PERIOD_S = KAFKAS_WINDOW.period_s
_INTO_BURST = 0.7
"""The part of a burst at which a move should end: after the burst has made up for inbound bytes, before its end."""


def seconds_in_bursts(
    share: Share, quota_bytes_per_s: float, sent_at_bytes_per_s: float, period_s: float = PERIOD_S
) -> float:
    """Return the seconds that a leader with a complete window needs; infinite if it never makes progress.

    ``sent_at_bytes_per_s`` is the leader's rate within a burst: its followers' joint receive rate, and in-sync
    replication traffic, which the quota never delays.
    """
    if not share.bytes:
        return 0.0
    if quota_bytes_per_s <= share.inbound_bytes_per_s:
        return math.inf
    burst_bytes = quota_bytes_per_s * period_s
    faster = sent_at_bytes_per_s - share.inbound_bytes_per_s
    lasts_s = min(period_s, burst_bytes / sent_at_bytes_per_s)
    # The burst in which the equation below can first hold, and one before it: a tiny quota has billions of them.
    gained = period_s * (quota_bytes_per_s - share.inbound_bytes_per_s)
    number = max(0, math.ceil((share.bytes - max(0.0, faster) * lasts_s) / gained) - 1)
    while True:
        # In burst `number`: number × burst + sent_at × (t − number × period) = bytes + inbound × t.
        begin_s = number * period_s
        ahead = number * burst_bytes - share.bytes - share.inbound_bytes_per_s * begin_s
        if ahead >= 0:
            return begin_s
        if faster > 0 and -ahead <= faster * lasts_s:
            return begin_s - ahead / faster
        number += 1


def bytes_ending_in_a_burst(
    inbound_bytes_per_s: float, quota_bytes_per_s: float, sent_at_bytes_per_s: float, about_s: float
) -> int:
    """Return how many bytes a move must copy to end well within a burst, after ``about_s`` or somewhat less.

    If a move ended at the end of a burst, a few bytes more would decide about half a period.
    """
    lasts_s = min(PERIOD_S, quota_bytes_per_s * PERIOD_S / sent_at_bytes_per_s)
    number = max(0, math.floor((about_s - _INTO_BURST * lasts_s) / PERIOD_S))
    end_s = number * PERIOD_S + _INTO_BURST * lasts_s
    sent = number * quota_bytes_per_s * PERIOD_S + sent_at_bytes_per_s * _INTO_BURST * lasts_s
    return round(sent - inbound_bytes_per_s * end_s)


STEP_S = 0.05
BURST_BYTES_PER_S = 30_000_000
"""The copy rate of a fetcher with tuned settings on two cores that neither quota nor NIC (48 MB/s) limited."""


class QuotaWindow:
    """The samples of one quota: the bytes that passed, and the time at which each sample began."""

    def __init__(self, settings: WindowSettings = KAFKAS_WINDOW) -> None:
        self._settings = settings
        self._samples: deque[list[float]] = deque()
        """[begin, end, bytes], oldest first."""

    def record(self, at_s: float, size: float) -> None:
        """Record that ``size`` bytes passed at that time."""
        if not self._samples or at_s - self._samples[-1][0] >= self._settings.sample_s:
            self._samples.append([at_s, at_s, 0.0])
        self._samples[-1][1] = at_s
        self._samples[-1][2] += size

    def rate(self, at_s: float) -> float:
        """Return B/s since the oldest sample that still counts began, over one sample at least."""
        while self._samples and at_s - self._samples[0][1] >= self._settings.seconds:
            self._samples.popleft()
        if not self._samples:
            return 0.0
        return sum(size for _, _, size in self._samples) / max(self._settings.sample_s, at_s - self._samples[0][0])


def seconds_changing(
    shares: Sequence[Share],
    phases: Sequence[tuple[float, float]],
    line_bytes_per_s: float,
    window: WindowSettings = KAFKAS_WINDOW,
) -> float:
    """Return the seconds that a move takes under a sequence of quotas: (seconds, B/s), the last without an end.

    ``line_bytes_per_s`` is the rate while the quota does not limit. Infinite if the move never ends.
    """
    most_s = seconds_over(shares, phases)
    if not math.isfinite(most_s):
        return most_s
    return max((_seconds(share, phases, line_bytes_per_s, most_s, window) for share in shares), default=0.0)


def bytes_after_a_raise(
    inbound_bytes_per_s: float, raised: tuple[float, float], raised_at_s: float, about_s: float, line_bytes_per_s: float
) -> int:
    """Return how many bytes a move must copy to end in the middle of a burst, after ``about_s`` or somewhat less.

    ``raised`` are the quotas before and after. If a move ended at the edge of a burst, one second of line rate would
    decide about a whole window. The result is not above 0 if there is no such end.
    """
    low, high = raised
    burst_bytes = (high - low) * KAFKAS_WINDOW.seconds
    lasts_s = burst_bytes / max(1.0, line_bytes_per_s - low)
    number = max(0, math.floor((about_s - raised_at_s - lasts_s / 2) / PERIOD_S))
    end_s = raised_at_s + number * PERIOD_S + lasts_s / 2
    return round(low * end_s + (number + 0.5) * burst_bytes - inbound_bytes_per_s * end_s)


def _seconds(
    share: Share,
    phases: Sequence[tuple[float, float]],
    line_bytes_per_s: float,
    about_s: float,
    settings: WindowSettings,
) -> float:
    left, now, window = float(share.bytes), 0.0, QuotaWindow(settings)
    if not left:
        return 0.0
    caught_up_bytes = max(0.0, line_bytes_per_s - share.in_sync_bytes_per_s) * STEP_S
    arriving = (share.inbound_bytes_per_s - share.in_sync_bytes_per_s) * STEP_S
    # A window that was full when the quota was lowered costs as much time as a raise has saved.
    while now < 2 * about_s + 2 * settings.seconds:
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
