"""A slow uplink: racks share less bandwidth."""

from dataclasses import dataclass, replace
from typing import ClassVar

from testbed.errors import UsageError
from testbed.faults.fault import parameter
from testbed.faults.network import NetworkFault
from testbed.faults.parameters import Direction, bit_rate, known_rack, name, no_uplink, slower
from testbed.topology.links import Link
from testbed.topology.model import Topology
from testbed.units import format_bit_rate


@dataclass(frozen=True)
class UplinkRate(NetworkFault):
    """A lower rate than declared, both ways, or a rate where none is declared. Of several rates the lowest counts."""

    kind: ClassVar[str] = "uplink-rate"
    summary: ClassVar[str] = "a rack's uplink is slower than declared, both ways"
    hinders: ClassVar[bool] = False

    rack: str = parameter("the rack", name)
    rate: int = parameter("bits per second on the wire, such as 50mbit", bit_rate, format_bit_rate)

    @classmethod
    def absent_from(cls, topology: Topology) -> str:
        """See `Fault.absent_from`."""
        return no_uplink(topology)

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        known_rack(topology, self.rack)
        declared = topology.uplinks.get(self.rack)
        if declared is not None and self.rate >= min(declared.tx_bps, declared.rx_bps):
            raise UsageError(
                f"rate={format_bit_rate(self.rate)} would slow nothing down: the uplink of {self.rack} has "
                f"{format_bit_rate(min(declared.tx_bps, declared.rx_bps))}"
            )

    def reshaped(self, topology: Topology) -> Topology:
        """See `NetworkFault.reshaped`."""
        there = topology.uplinks.get(self.rack)
        link = Link.symmetric(self.rate) if there is None else slower(there, self.rate, Direction.BOTH)
        return replace(topology, uplinks={**topology.uplinks, self.rack: link})


FAULT = UplinkRate
