"""How long a throttled move takes, from all traffic that the throttle counts. Pure.

KIP-73's own formula sees one number, "quota − inbound". What a quota really has to carry is, on each broker and in
each direction, the bytes that catch up and whatever keeps being written to the listed partitions meanwhile:

- *transmit*, on the leader: its quota records every follower's fetch of a listed partition, in-sync followers
  included, but holds back only those out of sync. So each inbound byte is sent once to each listed follower in sync
  and once to each adding replica.
- *receive*, on an adding replica: what it catches up with, and each inbound byte once.

The slowest of these *shares* sets the duration: bytes ÷ (quota − keep-up).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from testbed.kafka.types import TopicPartition

Direction = Literal["transmit", "receive"]
_ORDER: tuple[Direction, Direction] = ("receive", "transmit")


@dataclass(frozen=True, slots=True)
class Copy:
    """What one moving partition has to carry: its log, to each adding replica, while it is being written to.

    ``leader`` is the one that serves while the move goes on; ``in_sync`` are its followers in sync that are listed
    (on the leader's side), without itself. ``bytes`` is the size of the leader's log when the move starts. A
    partition that does not move but is listed (by a wildcard) has no ``adding``.
    """

    tp: TopicPartition
    leader: int
    in_sync: tuple[int, ...]
    adding: tuple[int, ...]
    bytes: int
    inbound_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Share:
    """What one broker's quota has to carry in one direction.

    ``bytes`` are those that catch up; ``keepup_bytes_per_s`` is what is written to listed partitions meanwhile, times
    the listed replicas it goes to. Of it ``in_sync_bytes_per_s`` goes to replicas in sync: counted, never held back.
    """

    broker: int
    direction: Direction
    bytes: int
    keepup_bytes_per_s: float
    in_sync_bytes_per_s: float = 0.0

    def seconds(self, quota_bytes_per_s: float) -> float:
        """How long this broker needs in this direction; infinite when what comes in takes the whole quota."""
        if not self.bytes:
            return 0.0
        left_bytes_per_s = quota_bytes_per_s - self.keepup_bytes_per_s
        return self.bytes / left_bytes_per_s if left_bytes_per_s > 0 else math.inf


def shares(copies: Iterable[Copy], *, wildcard: bool = False) -> tuple[Share, ...]:
    """Return what each broker has to carry each way, receiving ones first.

    With ``wildcard`` the followers in sync are listed on their own, receiving side, too (``*`` lists every replica).
    """
    carried: dict[tuple[Direction, int], list[float]] = {}

    def add(direction: Direction, broker: int, size: int, catching_up: float, in_sync: float) -> None:
        sums = carried.setdefault((direction, broker), [0, 0.0, 0.0])
        sums[0] += size
        sums[1] += catching_up + in_sync
        sums[2] += in_sync

    for copy in copies:
        inbound = copy.inbound_bytes_per_s
        followed = len(copy.adding)
        add("transmit", copy.leader, copy.bytes * followed, inbound * followed, inbound * len(copy.in_sync))
        for broker in copy.adding:
            add("receive", broker, copy.bytes, inbound, 0.0)
        for broker in copy.in_sync if wildcard else ():
            add("receive", broker, 0, 0.0, inbound)
    return tuple(
        Share(broker, direction, int(size), keepup, in_sync)
        for (direction, broker), (size, keepup, in_sync) in sorted(
            carried.items(), key=lambda item: (_ORDER.index(item[0][0]), item[0][1])
        )
    )


def seconds(shares: Sequence[Share], quota_bytes_per_s: float) -> float:
    """How long the move takes under one quota for both directions; infinite when it never makes progress."""
    return max((share.seconds(quota_bytes_per_s) for share in shares), default=0.0)


def bottleneck(shares: Sequence[Share], quota_bytes_per_s: float) -> Share:
    """Return the share that sets the duration: of several that never end the one whose keep-up is furthest above.

    Of equal ones the receiving comes first: a follower checks before it asks, so that its leader never has to.
    Raises ValueError without shares.
    """
    return max(shares, key=lambda share: (share.seconds(quota_bytes_per_s), share.keepup_bytes_per_s))


def throttle_for(shares: Sequence[Share], deadline_s: float) -> float:
    """Return the lowest quota in B/s with which the move takes no longer than the deadline. Raises ValueError."""
    if not deadline_s > 0:
        raise ValueError(f"deadline of {deadline_s} s: must be above 0")
    return max((share.bytes / deadline_s + share.keepup_bytes_per_s for share in shares if share.bytes), default=0.0)


def seconds_over(shares: Sequence[Share], phases: Sequence[tuple[float, float]]) -> float:
    """How long the move takes when its quota changes: (seconds, quota in B/s) one after the other.

    The last quota stays for as long as it takes. While a quota is below what comes in, the lag grows.
    """
    if not phases:
        raise ValueError("no phases: at least one quota is needed")
    return max((_seconds_over(share, phases) for share in shares), default=0.0)


def _seconds_over(share: Share, phases: Sequence[tuple[float, float]]) -> float:
    left, spent_s = float(share.bytes), 0.0
    if not left:
        return 0.0
    for index, (lasts_s, quota_bytes_per_s) in enumerate(phases):
        # Replicas in sync take what they take; only what is beyond that is held to the quota.
        progress = max(quota_bytes_per_s, share.in_sync_bytes_per_s) - share.keepup_bytes_per_s
        ends = index == len(phases) - 1
        if progress > 0 and (ends or left <= progress * lasts_s):
            return spent_s + left / progress
        if ends:
            return math.inf
        left -= progress * lasts_s
        spent_s += lasts_s
    raise AssertionError("the last phase has no end")
