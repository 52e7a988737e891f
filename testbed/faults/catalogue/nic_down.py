"""A NIC without a link, as with a pulled cable or a disabled switch port."""

import json
from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.fault import parameter
from testbed.faults.network import EVERY_NIC, NetworkFault, arrives, nics_of, ports_of
from testbed.faults.parameters import known_nic, name
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology


@dataclass(frozen=True)
class NicDown(NetworkFault):
    """The switch's end of the link goes down, so the host loses its carrier; addresses and routes stay."""

    kind: ClassVar[str] = "nic-down"
    summary: ClassVar[str] = "a host's NIC has no link, as if the cable were pulled"

    host: str = parameter("the host", name)
    nic: str = parameter("the NIC's name, or all", name, default=EVERY_NIC)

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        known_nic(topology, self.host, self.nic, EVERY_NIC)

    def down(self, topology: Topology) -> frozenset[str]:
        """See `NetworkFault.down`."""
        return frozenset(ports_of(topology, self.host, self.nic))

    def probe(self, testbed: Testbed) -> str | None:
        """See `NetworkFault.probe`: the host's end must have lost its carrier."""
        for _number, nic in nics_of(testbed.topology, self.host, self.nic):
            output = testbed.hosts[self.host].run(["ip", "-j", "link", "show", "dev", nic.name]).stdout
            if json.loads(output)[0]["operstate"] == "UP":
                return f"{self.host} {nic.name} still has a carrier"
        if self.nic == EVERY_NIC and arrives(testbed, self.host, testbed.plan.driver):
            return f"{self.host} still reaches {testbed.plan.driver}"
        return None


FAULT = NicDown
