"""The model of how long a throttled move takes, from all traffic that a quota counts. Pure.

A quota carries, on each broker and in each direction, the bytes that catch up and all bytes that producers write to the
throttled partitions meanwhile (docs/kip73.md, *Expected rates*). A leader sends each inbound byte once to each
throttled follower in the ISR, which no quota delays, and once to each adding replica. The slowest of these *shares* is
the bottleneck: the move takes bytes ÷ (quota − inbound) there.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from testbed.kafka.types import TopicPartition

Direction = Literal["transmit", "receive"]


@dataclass(frozen=True, slots=True)
class Copy:
    """The copy of one partition's log to each adding replica, while producers write to the partition.

    ``leader`` serves the fetches while the move runs; ``in_sync`` are its throttled followers in the ISR. ``bytes``
    is the size of the leader's log when the move starts. A partition that is throttled but does not move has no
    ``adding``. ``receiving`` are followers in the ISR that are throttled as followers, too, such as by a wildcard.
    """

    tp: TopicPartition
    leader: int
    in_sync: tuple[int, ...]
    adding: tuple[int, ...]
    bytes: int
    inbound_bytes_per_s: float
    receiving: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """The traffic that one broker's quota must carry in one direction.

    ``bytes`` catch up. ``inbound_bytes_per_s`` is the rate at which producers write to throttled partitions
    meanwhile, times the throttled replicas that receive it. ``in_sync_bytes_per_s`` is its part for replicas in the
    ISR: the quota counts that part and never delays it.
    """

    broker: int
    direction: Direction
    bytes: int
    inbound_bytes_per_s: float
    in_sync_bytes_per_s: float = 0.0

    def seconds(self, quota_bytes_per_s: float) -> float:
        """Return how long this broker needs in this direction; infinite if inbound traffic takes the whole quota."""
        if not self.bytes:
            return 0.0
        left_bytes_per_s = quota_bytes_per_s - self.inbound_bytes_per_s
        return self.bytes / left_bytes_per_s if left_bytes_per_s > 0 else math.inf


def shares(copies: Iterable[Copy]) -> tuple[Share, ...]:
    """Return what each broker must carry in each direction, receiving brokers first."""
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
        for broker in copy.receiving:
            add("receive", broker, 0, 0.0, inbound)
    return tuple(
        Share(broker, direction, int(size), inbound, in_sync)
        for (direction, broker), (size, inbound, in_sync) in sorted(carried.items())
    )


def seconds(shares: Sequence[Share], quota_bytes_per_s: float) -> float:
    """Return how long the move takes under one quota for both directions; infinite if it never makes progress."""
    return max((share.seconds(quota_bytes_per_s) for share in shares), default=0.0)


def bottleneck(shares: Sequence[Share], quota_bytes_per_s: float) -> Share:
    """Return the share that decides the duration: of several that never end, the one with the most inbound traffic.

    Of equal shares it is the receiving one: a follower checks its quota before it fetches, so its leader never has to.
    Raise ValueError without shares.
    """
    return max(shares, key=lambda share: (share.seconds(quota_bytes_per_s), share.inbound_bytes_per_s))


def throttle_for(shares: Sequence[Share], deadline_s: float) -> float:
    """Return the lowest quota in B/s with which the move takes no longer than the deadline. Raise ValueError."""
    if not deadline_s > 0:
        raise ValueError(f"deadline of {deadline_s} s: must be above 0")
    return max((share.bytes / deadline_s + share.inbound_bytes_per_s for share in shares if share.bytes), default=0.0)


def seconds_over(shares: Sequence[Share], phases: Sequence[tuple[float, float]]) -> float:
    """Return the duration of the move in seconds under a sequence of quotas: (seconds, B/s).

    The last quota stays until the move ends. While a quota is below the inbound rate, the lag grows.
    """
    if not phases:
        raise ValueError("no phases: at least one quota is needed")
    return max((_seconds_over(share, phases) for share in shares), default=0.0)


def _seconds_over(share: Share, phases: Sequence[tuple[float, float]]) -> float:
    left, spent_s = float(share.bytes), 0.0
    if not left:
        return 0.0
    for lasts_s, quota_bytes_per_s in (*phases[:-1], (math.inf, phases[-1][1])):
        # The broker never delays replicas in the ISR; the quota limits only the rest.
        progress = max(quota_bytes_per_s, share.in_sync_bytes_per_s) - share.inbound_bytes_per_s
        if progress > 0 and left <= progress * lasts_s:
            return spent_s + left / progress
        left -= progress * lasts_s
        spent_s += lasts_s
    return math.inf
