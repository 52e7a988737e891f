"""The transfers that measure every NIC of a topology each way. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from testbed.network.fabric import switch_of, switches
from testbed.network.shape import FRAME_BYTES
from testbed.topology.host import DeclaredHost
from testbed.topology.links import Link
from testbed.topology.model import Topology

Direction = Literal["transmit", "receive"]
FABRIC = "<fabric>"
"""The switch in a transfer; no host can have this name."""
MEASURE_S = 2.0
BEFORE_S = 1
"""Not measured: TCP searches for the rate, and a full bucket passes at once. The first connections over a new link
had 0.93 to 0.98 of the rate in their first 2 s, later ones 0.998 to 1.000."""
FRAMES = 100
"""The least number of full frames in a measurement: one more or less is then 1 %. At 600 kbit/s they take 2 s."""
DATAGRAM_BYTES = 1448
DATAGRAM_FRAME_BYTES = DATAGRAM_BYTES + 8 + 20 + 14
"""Bytes on the wire, with the headers of UDP, IP and Ethernet: less than a full frame, `FRAME_BYTES`."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One measurement: `source` sends to `target` on NIC number `nic` of each; it measures the ends in `measures`.

    With delay or loss, one TCP connection may be slower than the NIC. Then datagrams are offered at `offered_bps`, more
    than the NIC's rate; 0: TCP. The measurement takes `seconds`, after `before_s`. `reach_bps` is the highest rate that
    it can show.
    """

    source: str
    target: str
    measures: tuple[tuple[str, Direction], ...]
    nic: int = 0
    offered_bps: int = 0
    seconds: float = MEASURE_S
    before_s: int = BEFORE_S
    reach_bps: int = 0


def transfers(topology: Topology) -> tuple[Transfer, ...]:
    """Return the smallest set of transfers that measures every NIC both ways. Pure.

    Hosts of one switch send around a ring: no uplink and no path between machines limits them. A transfer measures
    the slower of its two ends (both when they are equal). An end that is faster than its partner is measured against
    the rack's switch, which is not shaped.
    """
    found: list[Transfer] = []
    if topology.exists:
        return tuple(
            each for number in range(max(len(h.nics) for h in topology.hosts)) for each in _pairs(topology, number)
        )
    for number in range(max(len(host.nics) for host in topology.hosts)):
        for switch in switches(topology):
            at = [host for host in topology.hosts if switch_of(topology, host) == switch]
            found += _ring([host for host in at if len(host.nics) > number], number)
    return tuple(found)


def _ring(hosts: Sequence[DeclaredHost], number: int) -> list[Transfer]:
    found: list[Transfer] = []
    for index, source in enumerate(hosts):
        target = hosts[(index + 1) % len(hosts)]
        sends, receives = source.nics[number].tx_bps, target.nics[number].rx_bps
        if source is target:
            sends, receives = 0, 0
        ends: list[tuple[str, Direction]] = []
        if sends and sends <= receives:
            ends.append((source.name, "transmit"))
        if receives and receives <= sends:
            ends.append((target.name, "receive"))
        if ends:
            nics = (source.nics[number], target.nics[number])
            found.append(_transfer_of(source.name, target.name, ends, number, min(sends, receives), *nics))
    measured = {end for transfer in found for end in transfer.measures}
    for host in hosts:
        nic = host.nics[number]
        out: tuple[str, Direction] = (host.name, "transmit")
        into: tuple[str, Direction] = (host.name, "receive")
        if out not in measured:
            found.append(_transfer_of(host.name, FABRIC, [out], number, nic.tx_bps, nic))
        if into not in measured:
            found.append(_transfer_of(FABRIC, host.name, [into], number, nic.rx_bps, nic))
    return found


def _pairs(topology: Topology, number: int) -> list[Transfer]:
    """Return the transfers between machines that exist: no switch of the testbed's is there to measure a NIC against.

    An end that is faster than every other is measured as far as the fastest partner reaches.
    """
    hosts = [host for host in topology.hosts if len(host.nics) > number]
    found = [each for each in _ring(hosts, number) if FABRIC not in (each.source, each.target)]
    measured = {end for transfer in found for end in transfer.measures}
    for host in hosts if len(hosts) > 1 else []:
        others = [other for other in hosts if other is not host]
        to = max(others, key=lambda other: other.nics[number].rx_bps)
        by = max(others, key=lambda other: other.nics[number].tx_bps)
        ways: tuple[tuple[DeclaredHost, DeclaredHost, Direction], ...] = ((host, to, "transmit"), (by, host, "receive"))
        for source, target, direction in ways:
            if (host.name, direction) not in measured:
                sender, taker = source.nics[number], target.nics[number]
                rate = min(sender.tx_bps, taker.rx_bps)
                found.append(
                    _transfer_of(source.name, target.name, [(host.name, direction)], number, rate, sender, taker)
                )
    return found


def _transfer_of(
    source: str,
    target: str,
    measures: Sequence[tuple[str, Direction]],
    number: int,
    rate_bps: int,
    *links: Link,
) -> Transfer:
    offered, seconds = offered_bps(rate_bps, *links), measure_s(rate_bps)
    return Transfer(source, target, tuple(measures), number, offered, seconds, reach_bps=rate_bps)


def measure_s(rate_bps: int) -> float:
    """Return the duration of a measurement at this rate, in whole seconds: iperf3 knows no parts of them. Pure."""
    return max(MEASURE_S, math.ceil(8 * FRAMES * FRAME_BYTES / rate_bps))


def offered_bps(rate_bps: float, *links: Link) -> int:
    """Return the bits/s of datagrams that fill `rate_bps` despite delay or loss; 0 where TCP fills it. Pure."""
    impairments = [side.impairment for link in links for side in link.sides]
    if not any(impairments):
        return 0
    passing = 1.0
    for impairment in impairments:
        passing *= 1 - impairment.loss_ppm / 1e6
    return round(1.1 * rate_bps / passing)
