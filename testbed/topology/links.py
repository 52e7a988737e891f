"""What a host is connected with and what it stores on: NICs, uplinks of racks, disks. Immutable values."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self

MIN_RATE_BPS = 8_000
MAX_RATE_BPS = 100_000_000_000
MIN_BURST_BYTES = 1514
"""One full Ethernet frame: a smaller bucket could never let one through at once."""
DEFAULT_BURST_FLOOR_BYTES = 16 * 1024


def default_burst_bytes(rate_bps: int) -> int:
    """Bytes a NIC of this rate may send at once: 1 KiB for each kB that 1 ms carries, 16 KiB at least.

    Measured: with about 1 ms of the rate HTB meets it to 0.3 % and no 50 ms exceeds it by more than 4 %.
    """
    return max(DEFAULT_BURST_FLOOR_BYTES, rate_bps * 128 // 1_000_000)


def max_burst_bytes(rate_bps: int) -> int:
    """The largest burst that still shapes: one second of the rate, at least 16 KiB, at most 1 GiB (tc has 32
    bits)."""
    return min(max(DEFAULT_BURST_FLOOR_BYTES, rate_bps // 8), 2**30)


@dataclass(frozen=True, slots=True)
class Impairment:
    """What happens to frames on their way, besides the rate.

    Each is delayed by `delay_us` ± `jitter_us` microseconds; `loss_ppm` of a million are lost, at random.
    """

    delay_us: int = 0
    jitter_us: int = 0
    loss_ppm: int = 0

    def __bool__(self) -> bool:
        return bool(self.delay_us or self.jitter_us or self.loss_ppm)


UNIMPAIRED = Impairment()


class Side(NamedTuple):
    """One direction of a link: `name` is tx or rx."""

    name: str
    rate_bps: int
    burst_bytes: int
    impairment: Impairment


@dataclass(frozen=True, slots=True)
class Link:
    """A shaped link. Rates in bits/s on the wire, bursts in bytes.

    tx is what goes up (a host's NIC sends; a rack sends into the core), rx is what comes down.
    """

    tx_bps: int
    rx_bps: int
    tx_burst_bytes: int
    rx_burst_bytes: int
    tx_impairment: Impairment = field(default=UNIMPAIRED, kw_only=True)
    rx_impairment: Impairment = field(default=UNIMPAIRED, kw_only=True)

    @classmethod
    def symmetric(cls, rate_bps: int, burst_bytes: int | None = None) -> Self:
        """A link with the same rate both ways; the burst follows from the rate unless given."""
        burst = default_burst_bytes(rate_bps) if burst_bytes is None else burst_bytes
        return cls(tx_bps=rate_bps, rx_bps=rate_bps, tx_burst_bytes=burst, rx_burst_bytes=burst)

    @property
    def sides(self) -> Iterator[Side]:
        """Both directions, tx first."""
        yield Side("tx", self.tx_bps, self.tx_burst_bytes, self.tx_impairment)
        yield Side("rx", self.rx_bps, self.rx_burst_bytes, self.rx_impairment)


class NicUse(StrEnum):
    """What a NIC is for. `data` is everything that no other NIC is for."""

    DATA = "data"
    REPLICATION = "replication"


@dataclass(frozen=True, slots=True)
class Nic(Link):
    """A NIC of a host; tx is what the host sends, rx what it receives."""

    name: str = "data0"
    use: NicUse = field(default=NicUse.DATA, kw_only=True)


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system of its own for a host's Kafka data.

    `bandwidth_bytes_per_s` bounds reading and writing, each; None leaves it as fast as the machine is.
    """

    size_bytes: int
    bandwidth_bytes_per_s: int | None = None
