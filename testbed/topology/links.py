"""NICs, uplinks and disks of a topology: immutable values, and the rules for each of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple, Self

from results.contract.network import FRAME_BYTES
from testbed.units import format_bit_rate, format_byte_rate, format_duration, format_share, format_size
from testbed.yaml_document import FieldPath, Violation

MIN_RATE_BPS = 8_000
MAX_RATE_BPS = 100_000_000_000
MIN_BURST_BYTES = FRAME_BYTES
"""One full Ethernet frame: a smaller bucket could never pass one."""
DEFAULT_BURST_FLOOR_BYTES = 16 * 1024
MAX_DELAY_US = 10_000_000
MAX_LOSS_PPM = 500_000
MIN_DISK_BYTES, MAX_DISK_BYTES = 100 * 10**6, 2**40
"""Kafka's own files and ext4's journal take some 30 MB. A sparse file may be a terabyte; more is a mistake."""
MIN_BANDWIDTH, MAX_BANDWIDTH = 10**6, 10**11


def default_burst_bytes(rate_bps: int) -> int:
    """Return the size of HTB's bucket, the bytes that a NIC of this rate may send at once.

    It is 1 KiB for each kB of 1 ms, and at least 16 KiB. Measured: with that HTB meets the rate to 0.3 %, and no 50 ms
    exceeds it by more than 4 %.
    """
    return max(DEFAULT_BURST_FLOOR_BYTES, rate_bps * 128 // 1_000_000)


def max_burst_bytes(rate_bps: int) -> int:
    """Return the largest burst that still shapes: 1 s of the rate, 16 KiB to 1 GiB (tc has 32 bits)."""
    return min(max(DEFAULT_BURST_FLOOR_BYTES, rate_bps // 8), 2**30)


@dataclass(frozen=True, slots=True)
class Impairment:
    """The changes of frames on their way, besides the rate.

    Each frame is delayed by `delay_us` ± `jitter_us` microseconds. Of a million, at random, `loss_ppm` are lost,
    `corrupt_ppm` have one wrong bit, `duplicate_ppm` come twice, and `reorder_ppm` pass without the delay, so that
    they overtake others. Only faults have the last three.
    """

    delay_us: int = 0
    jitter_us: int = 0
    loss_ppm: int = 0
    corrupt_ppm: int = 0
    duplicate_ppm: int = 0
    reorder_ppm: int = 0

    def __bool__(self) -> bool:
        return self != UNIMPAIRED


UNIMPAIRED = Impairment()
Direction = Literal["transmit", "receive"]


class Side(NamedTuple):
    """One direction of a link: `name` is tx or rx."""

    name: str
    rate_bps: int
    burst_bytes: int
    impairment: Impairment

    @property
    def direction(self) -> Direction:
        """Return the direction as the link's owner sees it."""
        return "transmit" if self.name == "tx" else "receive"


@dataclass(frozen=True, slots=True)
class Link:
    """A shaped link. Rates in bits/s on the wire, bursts in bytes.

    tx goes up (a host's NIC sends; a rack sends into the core), rx comes down.
    """

    tx_bps: int
    rx_bps: int
    tx_burst_bytes: int
    rx_burst_bytes: int
    tx_impairment: Impairment = field(default=UNIMPAIRED, kw_only=True)
    rx_impairment: Impairment = field(default=UNIMPAIRED, kw_only=True)

    @classmethod
    def symmetric(cls, rate_bps: int) -> Self:
        """Return a link with the same rate both ways; the burst follows from the rate."""
        burst = default_burst_bytes(rate_bps)
        return cls(tx_bps=rate_bps, rx_bps=rate_bps, tx_burst_bytes=burst, rx_burst_bytes=burst)

    @property
    def sides(self) -> Iterator[Side]:
        """Yield both directions, tx first."""
        yield Side("tx", self.tx_bps, self.tx_burst_bytes, self.tx_impairment)
        yield Side("rx", self.rx_bps, self.rx_burst_bytes, self.rx_impairment)


class NicUse(StrEnum):
    """The use of a NIC. `data` is everything that no other NIC is for."""

    DATA = "data"
    REPLICATION = "replication"


@dataclass(frozen=True, slots=True)
class Nic(Link):
    """A NIC of a host; tx is the host's sending direction, rx its receiving direction."""

    name: str = "data0"
    use: NicUse = field(default=NicUse.DATA, kw_only=True)
    address: str | None = field(default=None, kw_only=True)
    """Its IPv4 address on a machine that exists; None: the testbed gives it one, or reads it from the device."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A separate file system for a host's Kafka data.

    `bandwidth_bytes_per_s` limits reading and writing, each; None: the machine's own speed.
    """

    size_bytes: int
    bandwidth_bytes_per_s: int | None = None


def rate_problem(rate_bps: int, found: str | None = None) -> str | None:
    """Return why no link can have this rate (`found` is its text in a file), or None."""
    if MIN_RATE_BPS <= rate_bps <= MAX_RATE_BPS:
        return None
    wrong = f"{found or format_bit_rate(rate_bps)} is too {'slow' if rate_bps < MIN_RATE_BPS else 'fast'}"
    return f"{wrong}; allowed: {format_bit_rate(MIN_RATE_BPS)} to {format_bit_rate(MAX_RATE_BPS)}"


def least_burst_problem(burst_bytes: int) -> str | None:
    """Return why no link of any rate can have this burst, or None."""
    if burst_bytes >= MIN_BURST_BYTES:
        return None
    least = format_size(MIN_BURST_BYTES)
    return f"a burst of {format_size(burst_bytes)} is too small; allowed: {least} (one frame) or more"


def burst_problem(burst_bytes: int, rate_bps: int) -> str | None:
    """Return why a link of this rate cannot have this burst, or None."""
    most = max_burst_bytes(rate_bps)
    if MIN_BURST_BYTES <= burst_bytes <= most:
        return None
    size = "small" if burst_bytes < MIN_BURST_BYTES else "large"
    return (
        f"a burst of {format_size(burst_bytes)} is too {size} at {format_bit_rate(rate_bps)}; "
        f"allowed: {MIN_BURST_BYTES}B (one frame) to {format_size(most)}, or left out for 1 ms of the rate"
    )


def delay_problem(delay_us: int) -> str | None:
    """Return why no link can have this delay or jitter, or None."""
    if 0 <= delay_us <= MAX_DELAY_US:
        return None
    return f"{format_duration(delay_us / 10**6)} is too long; allowed: {format_duration(MAX_DELAY_US / 10**6)} at most"


def loss_problem(loss_ppm: int) -> str | None:
    """Return why no link can lose this share, or None."""
    if 0 <= loss_ppm <= MAX_LOSS_PPM:
        return None
    most = format_share(MAX_LOSS_PPM)
    return f"{format_share(loss_ppm)} is too much for anything to pass; allowed: {most} at most"


def jitter_problem(impairment: Impairment) -> str | None:
    """Return why this delay cannot have this jitter, or None."""
    if impairment.jitter_us <= impairment.delay_us:
        return None
    jitter, delay = (format_duration(us / 10**6) for us in (impairment.jitter_us, impairment.delay_us))
    return f"a jitter of {jitter} around a delay of {delay} would arrive before it was sent; allowed: {delay} at most"


def disk_size_problem(size_bytes: int) -> str | None:
    """Return why no disk can have this size, or None."""
    if MIN_DISK_BYTES <= size_bytes <= MAX_DISK_BYTES:
        return None
    size = "small" if size_bytes < MIN_DISK_BYTES else "large"
    allowed = f"{format_size(MIN_DISK_BYTES)} to {format_size(MAX_DISK_BYTES)}"
    return f"a disk of {format_size(size_bytes)} is too {size}; allowed: {allowed}"


def disk_bandwidth_problem(bandwidth_bytes_per_s: int) -> str | None:
    """Return why no disk can have this bandwidth, or None."""
    if MIN_BANDWIDTH <= bandwidth_bytes_per_s <= MAX_BANDWIDTH:
        return None
    speed = "slow" if bandwidth_bytes_per_s < MIN_BANDWIDTH else "fast"
    allowed = f"{format_byte_rate(MIN_BANDWIDTH)} to {format_byte_rate(MAX_BANDWIDTH)}"
    return f"{format_byte_rate(bandwidth_bytes_per_s)} is too {speed} for a disk; allowed: {allowed}"


def link_problems(link: Link, at: FieldPath) -> Iterator[Violation]:
    """Yield every violation of a link at `at`."""
    for name, rate_bps, burst_bytes, impairment in link.sides:
        if wrong := rate_problem(rate_bps):
            yield Violation((*at, f"{name}_rate"), wrong)
        elif wrong := burst_problem(burst_bytes, rate_bps):
            yield Violation((*at, f"{name}_burst"), wrong)
        prefix = "" if name == "tx" else "rx_"
        for name_of, wrong in (
            ("delay", delay_problem(impairment.delay_us)),
            ("jitter", jitter_problem(impairment)),
            ("loss", loss_problem(impairment.loss_ppm)),
        ):
            if wrong is not None:
                yield Violation((*at, prefix + name_of), wrong)


def disk_problems(disk: Disk, at: FieldPath) -> Iterator[Violation]:
    """Yield every violation of a disk at `at`."""
    if wrong := disk_size_problem(disk.size_bytes):
        yield Violation((*at, "size"), wrong)
    bandwidth = disk.bandwidth_bytes_per_s
    if bandwidth is not None and (wrong := disk_bandwidth_problem(bandwidth)):
        yield Violation((*at, "bandwidth"), wrong)
