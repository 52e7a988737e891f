"""A shutdown of Kafka, as for maintenance."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.processes import SignalFault


@dataclass(frozen=True)
class BrokerTerm(SignalFault):
    """SIGTERM: a controlled shutdown that moves the leaders first; the broker stays down until healed."""

    kind: ClassVar[str] = "broker-term"
    summary: ClassVar[str] = "Kafka on a host is shut down (SIGTERM, controlled) and stays down"
    deadline_s: ClassVar[float] = 60.0
    signal: ClassVar[str] = "TERM"


FAULT = BrokerTerm
