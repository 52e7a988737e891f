"""Kafka frozen again and again, as by long pauses of the garbage collector."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.fault import parameter
from testbed.faults.parameters import refuse_pauses, show_ms, whole_ms
from testbed.faults.processes import ProcessFault, pulses
from testbed.kafka.node import PID_FILE
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology

MAX_US = 600_000_000


@dataclass(frozen=True)
class BrokerStall(ProcessFault):
    """Kafka stops (SIGSTOP) for `pause` out of every `every`. Of several faults the longest pause counts."""

    kind: ClassVar[str] = "broker-stall"
    summary: ClassVar[str] = "Kafka on a host is frozen for a while, again and again (SIGSTOP, SIGCONT)"

    pause: int = parameter("how long Kafka stands still", whole_ms, show_ms)
    every: int = parameter("the time from one pause to the next", whole_ms, show_ms)

    @property
    def pulse_us(self) -> tuple[int, int]:
        """See `ServerFault.pulse_us`."""
        return self.pause, self.every

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        super().check(topology)
        refuse_pauses(self.pause, self.every, MAX_US)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: the kernel reported Kafka's process as stopped after the last signal."""
        stopper = pulses(testbed.node(self.host), PID_FILE, self.pulse_us)
        seen = stopper.log_tail(1).strip()
        if stopper.pid() is None:
            return f"nothing stops Kafka; its states were {seen or 'none'}"
        return None if seen in ("T", "t") else f"its state was {seen or 'not read yet'}"


FAULT = BrokerStall
