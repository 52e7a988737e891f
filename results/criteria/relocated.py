"""What is measured of a move that no quota holds back, as plain values: numpy, Spark and judgement share these types.

Instants are seconds after `move.started`; None is *could not be measured*.
"""

from dataclasses import dataclass

from results.contract.verdict import Direction


@dataclass(frozen=True, slots=True)
class NicBytes:
    """What a data NIC counted from the last reading before the move to the first after its end, which covers
    `covered_s`; and the rate at which it counted before, with the load alone."""

    host: str
    direction: Direction
    bytes: float | None
    covered_s: float | None
    before_bytes_per_s: float | None
    longest_gap_s: float | None


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of one kind that the object store counted over the same time."""

    operation: str
    count: float


@dataclass(frozen=True, slots=True)
class RelocationMeasures:
    """Everything measured of it.

    `longest_ack_us` is the longest that a record waited for its acknowledgement, from when it was due, during the move.
    `p99_before_us` is the highest 99th percentile of acknowledgements of any `P99_WINDOW_S` before it; `p99_back_s`
    when the last such window ended that was above `P99_BACK` times it, 0 when there was none, None when nobody
    saw the end of it.
    While a consumer read from the beginning (`cold.started` to `cold.done`) the brokers read `device_bytes` from their
    devices, and `store_bytes` left the object store's NICs.
    """

    nics: tuple[NicBytes, ...]
    requests: tuple[Requests, ...] | None
    requests_gap_s: float | None
    longest_ack_us: float | None
    p99_before_us: float | None
    p99_back_s: float | None
    device_bytes: float | None = None
    store_bytes: float | None = None


P99_WINDOW_S = 5
"""Seconds of acknowledgements whose 99th percentile is looked at: in one second, 1 % is a few records."""
P99_BACK = 1.1
"""So many times what it was before the move is as quick as before: without a move, too, one such window differs from
the next by some percent, and *never above the highest of a few before* would be luck."""
