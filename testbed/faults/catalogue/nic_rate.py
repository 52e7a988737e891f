"""A slow NIC, as with a cable that negotiated a lower rate, or a neighbour's traffic on the link."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.fault import parameter
from testbed.faults.network import EVERY_NIC, NetworkFault, nics_of, with_nics
from testbed.faults.parameters import Direction, bit_rate, direction, known_nic, name, refuse_no_slower, slower
from testbed.topology.links import Nic
from testbed.topology.model import Topology
from testbed.units import format_bit_rate


@dataclass(frozen=True)
class NicRate(NetworkFault):
    """Lower rates than declared; delay and loss stay. Of several rates the lowest counts."""

    kind: ClassVar[str] = "nic-rate"
    summary: ClassVar[str] = "a host's NIC is slower than declared, one way or both"
    hinders: ClassVar[bool] = False

    host: str = parameter("the host", name)
    rate: int = parameter("bits per second on the wire, such as 50mbit", bit_rate, format_bit_rate)
    direction: Direction = parameter(  # noqa: RUF009 - a field
        "transmit, receive or both, seen from the host", direction, default=Direction.BOTH
    )
    nic: str = parameter("the NIC's name, or all", name, default=EVERY_NIC)

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        known_nic(topology, self.host, self.nic, EVERY_NIC)
        nics: Sequence[Nic] = [nic for _number, nic in nics_of(topology, self.host, self.nic)]
        declared = [nic.tx_bps for nic in nics if self.direction.transmits]
        declared += [nic.rx_bps for nic in nics if self.direction.receives]
        refuse_no_slower(self.rate, max(declared), self.host, format_bit_rate)

    def reshaped(self, topology: Topology) -> Topology:
        """See `NetworkFault.reshaped`."""
        return with_nics(topology, self.host, self.nic, lambda nic: slower(nic, self.rate, self.direction))


FAULT = NicRate
