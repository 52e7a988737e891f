"""An isolated rack: its uplink has no link."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.network import UplinkFault, arrives, uplink
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology


@dataclass(frozen=True)
class UplinkCut(UplinkFault):
    """Hosts within the rack reach each other; no packet leaves or enters the rack."""

    kind: ClassVar[str] = "uplink-cut"
    summary: ClassVar[str] = "a rack's uplink has no link: the rack is on its own"

    def down(self, topology: Topology) -> frozenset[str]:
        """See `NetworkFault.down`."""
        _racks_end, cores_end = uplink(topology, self.rack)
        return frozenset([cores_end])

    def probe(self, testbed: Testbed) -> str | None:
        """See `NetworkFault.probe`."""
        inside = next((host.name for host in testbed.topology.hosts if host.rack == self.rack), None)
        if inside is not None and arrives(testbed, inside, testbed.plan.fabric):
            return f"{inside} still reaches the core at {testbed.plan.fabric}"
        return None


FAULT = UplinkCut
