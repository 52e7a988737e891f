"""Kafka frozen: it holds its connections and answers no request, as in a long pause of the garbage collector."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.processes import Hold, ProcessFault, look
from testbed.provision.testbed import Testbed


@dataclass(frozen=True)
class BrokerPause(ProcessFault):
    """SIGSTOP; continued (SIGCONT) when healed."""

    kind: ClassVar[str] = "broker-pause"
    summary: ClassVar[str] = "Kafka on a host is frozen (SIGSTOP): connected, and silent"
    holds: ClassVar[Hold] = Hold.PAUSED

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`."""
        seen = look(testbed.node(self.host))
        if seen is None:
            return "Kafka does not run any more"
        return None if seen.paused else str(seen)


FAULT = BrokerPause
