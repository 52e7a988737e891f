"""The parameters of faults: their parsers, and the refusals that several kinds share."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TypeVar

from testbed.errors import UsageError
from testbed.suggestions import choices, did_you_mean
from testbed.topology.links import MAX_RATE_BPS, MIN_RATE_BPS, Link, default_burst_bytes
from testbed.topology.model import Topology
from testbed.topology.rules import MAX_CPUS
from testbed.units import format_bit_rate, parse_bit_rate, parse_duration_us, parse_share

L = TypeVar("L", bound=Link)
MIN_PAUSE_US = 20_000


class Direction(StrEnum):
    """A direction as the host sees it."""

    TRANSMIT = "transmit"
    RECEIVE = "receive"
    BOTH = "both"

    @property
    def transmits(self) -> bool:
        """Return whether it includes traffic that the host sends."""
        return self is not Direction.RECEIVE

    @property
    def receives(self) -> bool:
        """Return whether it includes traffic that the host receives."""
        return self is not Direction.TRANSMIT


def slower(link: L, rate_bps: int, ways: Direction) -> L:
    """Return the link at `rate_bps` at most, in these directions; its delay and loss stay. Pure."""
    burst = default_burst_bytes(rate_bps)
    if ways.transmits and rate_bps < link.tx_bps:
        link = replace(link, tx_bps=rate_bps, tx_burst_bytes=min(link.tx_burst_bytes, burst))
    if ways.receives and rate_bps < link.rx_bps:
        link = replace(link, rx_bps=rate_bps, rx_burst_bytes=min(link.rx_burst_bytes, burst))
    return link


def name(text: str) -> str:
    """Return a name that is not empty."""
    if not text:
        raise ValueError("expected a name")
    return text


def names(text: str) -> tuple[str, ...]:
    """Return the names in `b1,b2`, each once."""
    found = tuple(text.split(","))
    if not all(found):
        raise ValueError("expected names with commas between them, such as b1,b2")
    if len({*found}) < len(found):
        raise ValueError("a name is given twice")
    return found


def joined(found: Sequence[str]) -> str:
    """Return the names as text, the inverse of `names`."""
    return ",".join(found)


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a parser for a parameter with few values."""

    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"allowed are {choices(allowed)}{did_you_mean(text, allowed)}")
        return text

    return parse


def direction(text: str) -> Direction:
    """Return one of the directions."""
    return Direction(one_of(*Direction)(text))


def bit_rate(text: str) -> int:
    """Return a rate in bits per second that can be shaped."""
    rate_bps = parse_bit_rate(text)
    if not MIN_RATE_BPS <= rate_bps <= MAX_RATE_BPS:
        span = f"{format_bit_rate(MIN_RATE_BPS)} to {format_bit_rate(MAX_RATE_BPS)}"
        raise ValueError(f"allowed is from {span}; nic-down and nic-cut let nothing pass at all")
    return rate_bps


def cpus(text: str) -> float:
    """Return a number of CPUs in hundredths, as the engine accepts it."""
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise ValueError("expected a number of CPUs, such as 0.5") from error
    if not number.is_finite() or not Decimal("0.01") <= number <= MAX_CPUS or number * 100 % 1:
        raise ValueError(f"expected a number of CPUs, 0.01 to {MAX_CPUS} in hundredths, such as 0.5")
    return float(number)


def whole_ms(text: str) -> int:
    """Return a time in microseconds, of whole milliseconds."""
    duration_us = parse_duration_us(text)
    if duration_us % 1000:
        raise ValueError("expected whole milliseconds, such as 400ms")
    return duration_us


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return a parser for a whole number within these bounds."""

    def parse(text: str) -> int:
        # Digits alone, and few of them: int() reads more, at a cost that grows with their number.
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
            raise ValueError(f"expected a whole number from {least} to {most}")
        return int(text)

    return parse


def share(text: str) -> int:
    """Return a share in millionths, more than none."""
    share_ppm = parse_share(text)
    if not 0 < share_ppm <= 1_000_000:
        raise ValueError("allowed is more than 0% and at most 100%")
    return share_ppm


def share_or_none(text: str) -> int:
    """Return a share in millionths, also none at all."""
    return parse_share(text) and share(text)


def show_ms(duration_us: int) -> str:
    """Return the inverse of `whole_ms`: `60s`, `400ms`."""
    whole, rest = divmod(duration_us, 1_000_000)
    return f"{duration_us // 1000}ms" if rest else f"{whole}s"


def _known(owner: str, kind: str, found: str, known: Sequence[str]) -> None:
    if found not in known:
        raise UsageError(f"{owner} has no {kind} {found!r}; it has {choices(known)}{did_you_mean(found, known)}")


def known_hosts(topology: Topology, found: Sequence[str]) -> None:
    """Raise `UsageError` when the topology lacks a host."""
    for each in found:
        _known(topology.name, "host", each, [host.name for host in topology.hosts])


def machine_of(topology: Topology, host: str) -> str:
    """Return the name of the machine that a host is on or is; empty for the machine on which the testbed runs."""
    return host if topology.exists else topology.remote_machine_of(topology.host(host))


def is_here(topology: Topology, host: str) -> bool:
    """Return whether a host is a container of the machine on which the testbed runs."""
    return not machine_of(topology, host)


def container_here(topology: Topology, host: str, kind: str) -> None:
    """Raise `UsageError` for a fault that changes this machine's kernel, when the host is not a container here."""
    if why := no_container_here(topology, [host], kind):
        raise UsageError(why)


def no_container_here(topology: Topology, hosts: Sequence[str], kind: str) -> str:
    """Return why none of these hosts (one at least) can have a fault that changes this machine's kernel. Pure."""
    if any(is_here(topology, host) for host in hosts):
        return ""
    are = f"{hosts[0]} is not a container" if len(hosts) == 1 else f"{', '.join(hosts)} are no containers"
    return f"{are} of this machine: {kind} cannot change the kernel of another one"


def known_nic(topology: Topology, host: str, nic: str, every: str) -> None:
    """Raise `UsageError` when the topology lacks the host or its NIC; `every` stands for all NICs."""
    known_hosts(topology, [host])
    if nic != every:
        _known(host, "NIC", nic, [each.name for each in topology.host(host).nics])


def kafka_host(topology: Topology, found: str) -> None:
    """Raise `UsageError` when the topology lacks the host, or the host does not run Kafka."""
    known_hosts(topology, [found])
    if topology.host(found).node_id is None:
        running = [host.name for host in topology.hosts if host.node_id is not None]
        raise UsageError(
            f"{found} runs no Kafka, its role is {topology.host(found).role.value}; Kafka runs on {choices(running)}"
        )


def known_brokers(topology: Topology, found: Sequence[str]) -> None:
    """Raise `UsageError` when the topology lacks a host, or a host is not a broker."""
    known_hosts(topology, found)
    brokers = [host.name for host in topology.brokers]
    for each in found:
        if each not in brokers:
            raise UsageError(f"{each} is no broker, it is a {topology.host(each).role.value}; {choices(brokers)} are")


def known_rack(topology: Topology, found: str) -> None:
    """Raise `UsageError` when the topology lacks the rack, or the rack has nothing beyond its uplink."""
    _known(topology.name, "rack", found, topology.racks)
    if why := no_uplink(topology):
        raise UsageError(why)


def refuse_no_slower(rate: int, declared: int | None, owner: str, show: Callable[[int], str]) -> None:
    """Raise `UsageError` when `rate` is not below the declared one; `show` returns a rate as text."""
    if declared is not None and rate >= declared:
        raise UsageError(f"rate={show(rate)} would slow nothing down: {owner} has {show(declared)}")


def refuse_pauses(pause_us: int, every_us: int, most_us: int) -> None:
    """Raise `UsageError` when pauses of this length and distance are too short, too close or too far apart."""
    if not MIN_PAUSE_US <= pause_us <= every_us - MIN_PAUSE_US or every_us > most_us:
        least = show_ms(MIN_PAUSE_US)
        raise UsageError(
            f"allowed is a pause of {least} or more, {least} or more between two, and {show_ms(most_us)} at most from "
            f"one to the next; not pause={show_ms(pause_us)} every={show_ms(every_us)}"
        )


def no_uplink(topology: Topology) -> str:
    """Return why no uplink of this topology carries traffic; empty when one does."""
    return f"{topology.name} has one rack: no host's traffic passes its uplink" if len(topology.racks) < 2 else ""
