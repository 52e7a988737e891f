"""A network partition: two sets of hosts cannot reach each other, while both reach all other hosts."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import ClassVar

from testbed.errors import UsageError
from testbed.faults.fault import parameter
from testbed.faults.network import NetworkFault, arrives, ports_of
from testbed.faults.parameters import Direction, direction, joined, known_hosts, names
from testbed.network.addresses import AddressPlan
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology

THE_OTHERS = ("others",)


@dataclass(frozen=True)
class NicCut(NetworkFault):
    """The fabric drops packets between two sets of hosts where they enter the switch, one way or both."""

    kind: ClassVar[str] = "nic-cut"
    summary: ClassVar[str] = "packets between two sets of hosts are lost, one way or both"

    hosts: tuple[str, ...] = parameter("hosts on one side, such as b1,b2", names, joined)
    peers: tuple[str, ...] = parameter(
        "hosts on the other side; others: all that are not on the first", names, joined, default=THE_OTHERS
    )
    direction: Direction = parameter(  # noqa: RUF009 - a field
        "transmit (what hosts send to peers), receive or both", direction, default=Direction.BOTH
    )

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        known_hosts(topology, self.hosts)
        if self.peers != THE_OTHERS:
            known_hosts(topology, self.peers)
        elif not self.other_side(topology):
            raise UsageError(
                f"{', '.join(self.hosts)} are all hosts of {topology.name}: there is no host to cut them from; "
                "name fewer hosts"
            )
        both = [host for host in self.hosts if host in self.peers]
        if both:
            raise UsageError(f"{', '.join(both)} cannot be in both hosts and peers: leave them out of one")

    def other_side(self, topology: Topology) -> tuple[str, ...]:
        """Return the names of the peers."""
        if self.peers != THE_OTHERS:
            return self.peers
        return tuple(host.name for host in topology.hosts if host.name not in self.hosts)

    def ways(self, topology: Topology) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Return the senders and receivers of the dropped packets, without hosts that have left."""
        there = {host.name for host in topology.hosts}
        sides = (self.hosts, self.other_side(topology))
        hosts, peers = (tuple(host for host in side if host in there) for side in sides)
        ways = [(hosts, peers)] if self.direction.transmits else []
        return [*ways, (peers, hosts)] if self.direction.receives else ways

    def lost(self, topology: Topology, plan: AddressPlan) -> Mapping[str, frozenset[IPv4Address]]:
        """See `NetworkFault.lost`."""
        found: dict[str, frozenset[IPv4Address]] = {}
        for senders, receivers in self.ways(topology):
            addresses = frozenset(
                plan.data_ip(host, number) for host in receivers for number, _ in enumerate(topology.host(host).nics)
            )
            for sender in senders:
                for port in ports_of(topology, sender):
                    found[port] = found.get(port, frozenset()) | addresses
        return found

    def probe(self, testbed: Testbed) -> str | None:
        """See `NetworkFault.probe`. An echo needs both ways, so a cut of either loses it."""
        peers = self.other_side(testbed.topology)
        for host, peer in sorted({(self.hosts[0], peers[0]), (self.hosts[-1], peers[-1])}):
            if arrives(testbed, host, testbed.plan.data_ip(peer)):
                return f"{host} still reaches {peer}"
        return None


FAULT = NicCut
