"""What is measured around a move, as plain numbers: in-sync replicas, a move that is stuck, and what clients saw.

Instants are seconds after `move.started`; None is *could not be measured*.
"""

from dataclasses import dataclass
from typing import Literal

Part = Literal["before", "during", "after"]
PARTS: tuple[Part, ...] = ("before", "during", "after")
ClientKind = Literal["produce", "consume"]
LAG_SETTLED_S = 1.5
KINDS: tuple[ClientKind, ...] = ("produce", "consume")


@dataclass(frozen=True, slots=True)
class Shrinks:
    """How often one broker took replicas out of the ISR of partitions that it leads; None without readings.

    A counter that goes back has begun anew with its broker, at 0.
    """

    host: str
    shrinks: float | None
    longest_gap_s: float | None


@dataclass(frozen=True, slots=True)
class Isr:
    """The ISR over the move. `partitions` were polled before it; `polls` is the fewest looks at one of them since.

    `smaller` of them were seen with fewer replicas in sync than before; the first is named with when and how many.
    `longest_gap_s` is the longest time without a look at one partition.
    """

    hosts: tuple[Shrinks, ...]
    partitions: int
    polls: int
    longest_gap_s: float | None
    smaller: int
    first_partition: str | None
    first_s: float | None
    first_size: float | None
    first_before: float | None


@dataclass(frozen=True, slots=True)
class Stuck:
    """A move that was noticed to be stuck, at `noticed_s`, because its lag had not fallen for `seconds`.

    `lag_before` is the lowest lag read since the move's start until that time began (or the first one), `lag_since`
    the lowest since then; `lowest_s` is when the lowest of all was read first, `LAG_SETTLED_S` after the start at the
    earliest: what is read sooner may be a lag from before the move.
    `raised_s` is when the throttle was raised, `raised_to` the quota in force from then on.
    """

    noticed_s: float
    seconds: float | None
    lag_before: float | None
    lag_since: float | None
    lowest_s: float | None
    raised_s: float | None
    raised_to: float | None


@dataclass(frozen=True, slots=True)
class ClientView:
    """What all clients of a kind saw in one part of the run; latencies in microseconds.

    Quantiles are exact of the merged buckets: the highest value of the bucket in which the quantile lies. `silence_s`
    is the longest time for which one client's count (acknowledged or read) did not grow, from 1 Hz readings.
    """

    kind: ClientKind
    part: Part
    records: int
    p50_us: float | None
    p99_us: float | None
    p999_us: float | None
    silence_s: float | None
