"""Kafka stopped and started again, as an operator does in a rolling restart."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from testbed.errors import KafkaStuck
from testbed.faults.fault import remembered_field
from testbed.faults.processes import ProcessFault, look, require_running, restart
from testbed.provision.kafka_nodes import silent
from testbed.provision.testbed import Testbed


@dataclass(frozen=True)
class BrokerRestart(ProcessFault):
    """A controlled shutdown and an immediate start; in effect when the new process answers."""

    kind: ClassVar[str] = "broker-restart"
    summary: ClassVar[str] = "Kafka on a host is shut down (controlled) and started again"
    momentary: ClassVar[bool] = True
    deadline_s: ClassVar[float] = 90.0
    hinders: ClassVar[bool] = False

    before: int | None = remembered_field()

    def prepare(self, testbed: Testbed) -> Self:
        """See `Fault.prepare`: remembers the present process."""
        return replace(self, before=require_running(testbed, self.host).pid)

    def apply(self, testbed: Testbed) -> None:
        """See `Fault.apply`. What other faults do to the old process, such as to stall it, they do to the new one."""
        restart(testbed, self.host)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`. Raise `KafkaStuck` at once when the new process has ended."""
        node = testbed.node(self.host)
        seen = look(node)
        if seen is None:
            raise KafkaStuck(f"Kafka on {self.host} ended after its restart; the end of its log:\n{node.log_tail()}")
        if seen.pid == self.before:
            return f"{seen}, as before"
        return next(iter(silent(testbed, [self.host])), None)


FAULT = BrokerRestart
