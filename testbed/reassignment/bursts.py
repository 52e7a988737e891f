"""How long a move takes where the leader's quota binds and its window has been running. Pure.

A leader records the size of every follower's fetch response, also when nothing in it is listed: some headers. Followers
in sync always fetch, so that when a move starts the leader's window is whole and as good as empty. Its check, bytes ÷
time since the oldest sample, then lets a whole window's worth of the quota through at once, as fast as the followers
may receive it; then nothing, until the first of it leaves the window; and so on. On average that is the quota, but
the first window's worth comes first: a move of a few windows is done earlier than *bytes ÷ quota*.

A follower's quota knows no such bursts: its window begins with the first listed bytes.
"""

import math

from testbed.reassignment.model import Share

PERIOD_S = 11.5
"""The window of 11 samples of 1 s, the oldest of which is whole or about to go: between 11 and 12 s."""
_INTO_BURST = 0.7
"""Past what the burst before had caught up with until what came in took it back; short of the end."""


def seconds_in_bursts(
    share: Share, quota_bytes_per_s: float, sent_at_bytes_per_s: float, period_s: float = PERIOD_S
) -> float:
    """How long a leader needs whose window was running before; infinite when it never makes progress.

    ``sent_at_bytes_per_s`` is how fast it sends while it may: what its followers may receive together, and what keeps
    up. What keeps up in sync is never held back.
    """
    if not share.bytes:
        return 0.0
    if quota_bytes_per_s <= share.keepup_bytes_per_s:
        return math.inf
    burst_bytes = quota_bytes_per_s * period_s
    number = 0
    while True:
        # In burst `number`: number × burst + sent_at × (t − number × period) = bytes + keep-up × t.
        begin_s = number * period_s
        ahead = number * burst_bytes - share.bytes - share.keepup_bytes_per_s * begin_s
        if ahead >= 0:
            return begin_s
        faster = sent_at_bytes_per_s - share.keepup_bytes_per_s
        lasts_s = min(period_s, burst_bytes / sent_at_bytes_per_s)
        if faster > 0 and -ahead <= faster * lasts_s:
            return begin_s - ahead / faster
        number += 1


def bytes_ending_in_a_burst(
    keepup_bytes_per_s: float,
    quota_bytes_per_s: float,
    sent_at_bytes_per_s: float,
    about_s: float,
    period_s: float = PERIOD_S,
) -> int:
    """How much a move must have to copy in order to end well within a burst, after ``about_s`` or somewhat less.

    Of a move that ends where a burst does a little more or less decides about half a period.
    """
    lasts_s = min(period_s, quota_bytes_per_s * period_s / sent_at_bytes_per_s)
    number = max(0, math.floor((about_s - _INTO_BURST * lasts_s) / period_s))
    end_s = number * period_s + _INTO_BURST * lasts_s
    sent = number * quota_bytes_per_s * period_s + sent_at_bytes_per_s * _INTO_BURST * lasts_s
    return round(sent - keepup_bytes_per_s * end_s)
