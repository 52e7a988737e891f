"""Kafka killed, as by the kernel when memory is short."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.fault import parameter
from testbed.faults.parameters import name
from testbed.faults.processes import Hold, ProcessFault, look, require_running
from testbed.provision.testbed import Testbed


@dataclass(frozen=True)
class BrokerKill(ProcessFault):
    """SIGKILL; stays down until healed."""

    kind: ClassVar[str] = "broker-kill"
    summary: ClassVar[str] = "Kafka on a host is killed (SIGKILL) and stays down"
    holds: ClassVar[Hold] = Hold.DOWN

    host: str = parameter("the host", name)

    def prepare(self, testbed: Testbed) -> "BrokerKill":
        """See `Fault.prepare`. A paused process can be killed; a stopped one cannot."""
        if look(testbed.node(self.host)) is None:
            require_running(testbed, self.host)
        return self

    def apply(self, testbed: Testbed) -> None:
        """See `Fault.apply`."""
        testbed.node(self.host).signal("KILL")

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`."""
        seen = look(testbed.node(self.host))
        return str(seen) if seen else None


FAULT = BrokerKill
