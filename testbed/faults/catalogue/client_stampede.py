"""A stampede of clients: they all connect at once and ask for metadata, as after an outage."""

import time
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from typing import ClassVar

from testbed.errors import UsageError
from testbed.faults import stampedes
from testbed.faults.fault import parameter, remembered_field
from testbed.faults.parameters import joined, known_brokers, known_hosts, name, names, show_ms, whole_ms, whole_number
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology

ALL = ("all",)
MOST_CONNECTIONS, MOST_REQUESTS = 2000, 5000
MIN_US, MAX_US = 1_000_000, 600_000_000


def _lasts(text: str) -> int:
    duration_us = whole_ms(text)
    if not MIN_US <= duration_us <= MAX_US:
        raise ValueError(f"allowed is from {show_ms(MIN_US)} to {show_ms(MAX_US)}")
    return duration_us


@dataclass(frozen=True)
class ClientStampede(stampedes.StampedeFault):
    """Connections from one host to brokers, in turn, each with Metadata requests for all topics.

    The clients end by themselves after `lasts`, also when no process heals the fault.
    """

    kind: ClassVar[str] = "client-stampede"
    summary: ClassVar[str] = "many clients on one host connect to brokers at once and ask for all metadata"
    deadline_s: ClassVar[float] = 20.0
    hinders: ClassVar[bool] = True

    host: str = parameter("the host of the clients", name)
    brokers: tuple[str, ...] = parameter("brokers, such as b1,b2; all: every broker", names, joined, default=ALL)
    connections: int = parameter("connections in all", whole_number(1, MOST_CONNECTIONS), default=200)
    requests: int = parameter("requests per second in all", whole_number(1, MOST_REQUESTS), default=200)
    lasts: int = parameter("the clients end after this time", _lasts, show_ms, default=60_000_000)
    until: float = remembered_field(0.0)
    """Seconds since the epoch."""

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        known_hosts(topology, [self.host])
        if self.brokers != ALL:
            known_brokers(topology, self.brokers)
        if len(self.to(topology)) > self.connections:
            raise UsageError(f"{self.connections} connections do not reach {len(self.to(topology))} brokers")

    def to(self, topology: Topology) -> tuple[str, ...]:
        """Return the names of the brokers."""
        return tuple(host.name for host in topology.brokers) if self.brokers == ALL else self.brokers

    def targets(self, testbed: Testbed) -> list[IPv4Address]:
        """See `StampedeFault.targets`."""
        return [testbed.plan.data_ip(broker) for broker in self.to(testbed.topology)]

    def prepare(self, testbed: Testbed) -> "ClientStampede":
        """See `Fault.prepare`: remembers when the clients end."""
        del testbed
        return replace(self, until=time.time() + self.lasts / 1e6)

    def apply(self, testbed: Testbed) -> None:
        """See `Fault.apply`."""
        stampedes.settle(testbed, self.host)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: counts the connections in the kernels of the brokers' hosts."""
        source = testbed.plan.data_ip(self.host)
        counts = {host: stampedes.established(testbed, host, source) for host in self.to(testbed.topology)}
        if sum(counts.values()) >= self.connections:
            return None
        shown = ", ".join(f"{count} to {host}" for host, count in counts.items())
        ended = "" if stampedes.clients(testbed, self.host).pid() else f"; the clients on {self.host} have ended"
        return f"of {self.connections} connections there are {shown}{ended}"

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`."""
        stampedes.settle(testbed, self.host)


FAULT = ClientStampede
