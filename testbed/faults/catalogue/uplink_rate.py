"""A slow uplink: racks share less bandwidth."""

from dataclasses import dataclass, replace
from typing import ClassVar

from testbed.faults.fault import parameter
from testbed.faults.network import UplinkFault
from testbed.faults.parameters import Direction, bit_rate, refuse_no_slower, slower
from testbed.topology.links import Link
from testbed.topology.model import Topology
from testbed.units import format_bit_rate


@dataclass(frozen=True)
class UplinkRate(UplinkFault):
    """A lower rate than declared, both ways, or a rate where none is declared. Of several rates the lowest counts."""

    kind: ClassVar[str] = "uplink-rate"
    summary: ClassVar[str] = "a rack's uplink is slower than declared, both ways"
    hinders: ClassVar[bool] = False

    rate: int = parameter("bits per second on the wire, such as 50mbit", bit_rate, format_bit_rate)

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        super().check(topology)
        link = topology.uplinks.get(self.rack)
        declared = None if link is None else max(link.tx_bps, link.rx_bps)
        refuse_no_slower(self.rate, declared, f"the uplink of {self.rack}", format_bit_rate)

    def reshaped(self, topology: Topology) -> Topology:
        """See `NetworkFault.reshaped`."""
        there = topology.uplinks.get(self.rack)
        link = Link.symmetric(self.rate) if there is None else slower(there, self.rate, Direction.BOTH)
        return replace(topology, uplinks={**topology.uplinks, self.rack: link})


FAULT = UplinkRate
