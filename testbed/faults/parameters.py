"""The parameters of faults: how they are read, and the refusals that several kinds share."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TypeVar

from testbed.errors import UsageError
from testbed.suggestions import choices, did_you_mean
from testbed.topology.links import MAX_RATE_BPS, MIN_RATE_BPS, Link, default_burst_bytes
from testbed.topology.model import Topology
from testbed.units import format_bit_rate, parse_bit_rate, parse_duration_us

L = TypeVar("L", bound=Link)


class Direction(StrEnum):
    """Seen from the host."""

    TRANSMIT = "transmit"
    RECEIVE = "receive"
    BOTH = "both"

    @property
    def transmits(self) -> bool:
        """Whether it includes what the host sends."""
        return self is not Direction.RECEIVE

    @property
    def receives(self) -> bool:
        """Whether it includes what the host receives."""
        return self is not Direction.TRANSMIT


def slower(link: L, rate_bps: int, ways: Direction) -> L:
    """The link at `rate_bps` at most, this way or both; its delay and loss stay. Pure."""
    burst = default_burst_bytes(rate_bps)
    if ways.transmits and rate_bps < link.tx_bps:
        link = replace(link, tx_bps=rate_bps, tx_burst_bytes=min(link.tx_burst_bytes, burst))
    if ways.receives and rate_bps < link.rx_bps:
        link = replace(link, rx_bps=rate_bps, rx_burst_bytes=min(link.rx_burst_bytes, burst))
    return link


def name(text: str) -> str:
    """A name that is not empty."""
    if not text:
        raise ValueError("expected a name")
    return text


def names(text: str) -> tuple[str, ...]:
    """`b1,b2`, each once."""
    found = tuple(text.split(","))
    if not all(found):
        raise ValueError("expected names with commas between them, such as b1,b2")
    if len({*found}) < len(found):
        raise ValueError("a name is given twice")
    return found


def joined(found: Sequence[str]) -> str:
    """The inverse of `names`."""
    return ",".join(found)


def one_of(*allowed: str) -> Callable[[str], str]:
    """A parser for a parameter with few values."""

    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"allowed are {choices(allowed)}{did_you_mean(text, allowed)}")
        return text

    return parse


def direction(text: str) -> Direction:
    """One of the directions."""
    return Direction(one_of(*Direction)(text))


def bit_rate(text: str) -> int:
    """Bits per second, of what can be shaped."""
    rate_bps = parse_bit_rate(text)
    if not MIN_RATE_BPS <= rate_bps <= MAX_RATE_BPS:
        span = f"{format_bit_rate(MIN_RATE_BPS)} to {format_bit_rate(MAX_RATE_BPS)}"
        raise ValueError(f"allowed is from {span}; nic-down and nic-cut let nothing pass at all")
    return rate_bps


def cpus(text: str) -> float:
    """A number of CPUs, as the engine takes it: hundredths."""
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise ValueError("expected a number of CPUs, such as 0.5") from error
    if not number.is_finite() or number < Decimal("0.01") or number * 100 % 1:
        raise ValueError("expected a number of CPUs, 0.01 or more in hundredths, such as 0.5")
    return float(number)


def whole_ms(text: str) -> int:
    """A time in microseconds, of whole milliseconds."""
    duration_us = parse_duration_us(text)
    if duration_us % 1000:
        raise ValueError("expected whole milliseconds, such as 400ms")
    return duration_us


def known_hosts(topology: Topology, found: Sequence[str]) -> None:
    """Raise `UsageError` for a host that the topology does not have."""
    known = [host.name for host in topology.hosts]
    for each in found:
        if each not in known:
            near = did_you_mean(each, known)
            raise UsageError(f"{topology.name} has no host {each!r}; it has {choices(known)}{near}")


def known_nic(topology: Topology, host: str, nic: str, every: str) -> None:
    """Raise `UsageError` unless the host and its NIC are there; `every` stands for all of them."""
    known_hosts(topology, [host])
    known = [each.name for each in topology.host(host).nics]
    if nic != every and nic not in known:
        raise UsageError(f"{host} has no NIC {nic!r}; it has {choices(known)}{did_you_mean(nic, known)}")


def kafka_host(topology: Topology, found: str) -> None:
    """Raise `UsageError` unless the host is there and runs Kafka."""
    known_hosts(topology, [found])
    if topology.host(found).node_id is None:
        running = [host.name for host in topology.hosts if host.node_id is not None]
        raise UsageError(
            f"{found} runs no Kafka, its role is {topology.host(found).role.value}; Kafka runs on {choices(running)}"
        )


def known_brokers(topology: Topology, found: Sequence[str]) -> None:
    """Raise `UsageError` unless all hosts are there and are brokers."""
    known_hosts(topology, found)
    brokers = [host.name for host in topology.brokers]
    for each in found:
        if each not in brokers:
            raise UsageError(f"{each} is no broker, it is a {topology.host(each).role.value}; {choices(brokers)} are")


def known_rack(topology: Topology, found: str) -> None:
    """Raise `UsageError` for a rack that the topology does not have, or that has nothing beyond its uplink."""
    if found not in topology.racks:
        near = did_you_mean(found, topology.racks)
        raise UsageError(f"{topology.name} has no rack {found!r}; it has {choices(topology.racks)}{near}")
    if len(topology.racks) < 2:
        raise UsageError(f"{topology.name} has one rack: no host's traffic passes its uplink")
