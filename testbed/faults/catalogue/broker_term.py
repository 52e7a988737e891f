"""A shutdown of Kafka, as for maintenance."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.fault import parameter
from testbed.faults.parameters import name
from testbed.faults.processes import Hold, ProcessFault, look, require_running
from testbed.provision.testbed import Testbed


@dataclass(frozen=True)
class BrokerTerm(ProcessFault):
    """SIGTERM: a controlled shutdown that moves the leaders first; the broker stays down until healed."""

    kind: ClassVar[str] = "broker-term"
    summary: ClassVar[str] = "Kafka on a host is shut down (SIGTERM, controlled) and stays down"
    deadline_s: ClassVar[float] = 60.0
    holds: ClassVar[Hold] = Hold.DOWN

    host: str = parameter("the host", name)

    def prepare(self, testbed: Testbed) -> "BrokerTerm":
        """See `Fault.prepare`."""
        require_running(testbed, self.host)
        return self

    def apply(self, testbed: Testbed) -> None:
        """See `Fault.apply`."""
        testbed.node(self.host).signal("TERM")

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`."""
        seen = look(testbed.node(self.host))
        return str(seen) if seen else None


FAULT = BrokerTerm
