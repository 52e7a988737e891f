"""The transfers that measure every NIC of a topology each way. Pure."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from results.contract.network import FRAME_BYTES
from testbed.network.fabric import switch_of, switches
from testbed.topology.host import DeclaredHost
from testbed.topology.links import Direction, Link
from testbed.topology.model import Topology

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
    than the NIC's rate; 0: TCP. The measurement takes `seconds`. `reach_bps` is the highest rate that it can show.
    """

    source: str
    target: str
    measures: tuple[tuple[str, Direction], ...]
    nic: int = 0
    offered_bps: int = 0
    seconds: float = MEASURE_S
    reach_bps: int = 0


def transfers(topology: Topology) -> tuple[Transfer, ...]:
    """Return the smallest set of transfers that measures every NIC both ways. Pure.

    Hosts of one switch send around a ring: no uplink and no path between machines limits them. A transfer measures
    the slower of its two ends (both when they are equal). An end that is faster than its partner is measured against
    the rack's switch, which is not shaped. Machines that exist have no such switch: there an end that is faster than
    every other is measured as far as the fastest partner reaches.
    """
    switched = not topology.exists
    groups = [[host for host in topology.hosts if switch_of(topology, host) == each] for each in switches(topology)]
    found: list[Transfer] = []
    for number in range(max(len(host.nics) for host in topology.hosts)):
        for group in groups if switched else [topology.hosts]:
            hosts = [host for host in group if len(host.nics) > number]
            ring = _ring(hosts, number) if len(hosts) > 1 else []
            measured = {end for transfer in ring for end in transfer.measures}
            found += [*ring, *_rest(hosts, number, measured, switched=switched)]
    return tuple(found)


def _ring(hosts: Sequence[DeclaredHost], number: int) -> list[Transfer]:
    found = []
    for source, target in zip(hosts, [*hosts[1:], hosts[0]], strict=True):
        sender, taker = source.nics[number], target.nics[number]
        rate = min(sender.tx_bps, taker.rx_bps)
        ends: list[tuple[str, Direction]] = []
        if sender.tx_bps == rate:
            ends.append((source.name, "transmit"))
        if taker.rx_bps == rate:
            ends.append((target.name, "receive"))
        found.append(_transfer_of(source.name, target.name, ends, number, rate, sender, taker))
    return found


def _rest(
    hosts: Sequence[DeclaredHost], number: int, measured: Collection[tuple[str, Direction]], *, switched: bool
) -> Iterator[Transfer]:
    """Yield a transfer for each end that is not measured: against the switch, or against the fastest other host."""
    for host in hosts if switched or len(hosts) > 1 else ():
        nic = host.nics[number]
        for side in nic.sides:
            if (host.name, side.direction) in measured:
                continue
            partner, rate, links = FABRIC, side.rate_bps, [nic]
            if not switched:
                others = {other.name: other.nics[number] for other in hosts if other is not host}
                reach = {name: link.rx_bps if side.name == "tx" else link.tx_bps for name, link in others.items()}
                partner = max(reach, key=lambda name: reach[name])
                rate, links = min(rate, reach[partner]), [nic, others[partner]]
            source, target = (host.name, partner) if side.name == "tx" else (partner, host.name)
            yield _transfer_of(source, target, [(host.name, side.direction)], number, rate, *links)


def _transfer_of(
    source: str, target: str, measures: Sequence[tuple[str, Direction]], number: int, rate_bps: int, *links: Link
) -> Transfer:
    offered, seconds = offered_bps(rate_bps, *links), measure_s(rate_bps)
    return Transfer(source, target, tuple(measures), number, offered, seconds, rate_bps)


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
