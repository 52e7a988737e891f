"""Kafka killed, as by the kernel when memory is short."""

from dataclasses import dataclass
from typing import ClassVar, Self

from testbed.faults.processes import SignalFault, look
from testbed.provision.testbed import Testbed


@dataclass(frozen=True)
class BrokerKill(SignalFault):
    """SIGKILL; stays down until healed."""

    kind: ClassVar[str] = "broker-kill"
    summary: ClassVar[str] = "Kafka on a host is killed (SIGKILL) and stays down"
    signal: ClassVar[str] = "KILL"

    def prepare(self, testbed: Testbed) -> Self:
        """See `Fault.prepare`. A paused process can be killed; a stopped one cannot."""
        return self if look(testbed.node(self.host)) else super().prepare(testbed)


FAULT = BrokerKill
