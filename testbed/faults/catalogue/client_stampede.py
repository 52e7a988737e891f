"""A stampede of clients: they all connect at once and ask for metadata, as after an outage."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from ipaddress import IPv4Address
from typing import ClassVar, Self

from testbed.errors import UsageError
from testbed.faults.fault import HostFault, parameter, remembered_field
from testbed.faults.journal import active_on
from testbed.faults.parameters import joined, known_brokers, name, names, show_ms, whole_ms, whole_number
from testbed.faults.processes import start
from testbed.hosts import Daemon
from testbed.kafka.node import CLIENT_PORT
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology

PROGRAM = "/opt/testbed/stampede.py"
_PID, _LOG = "/run/stampede.pid", "/var/log/testbed/stampede.log"
_ESTABLISHED = "01"
ALL = ("all",)
MOST_CONNECTIONS, MOST_REQUESTS = 2000, 5000
MIN_US, MAX_US = 1_000_000, 600_000_000


def _lasts(text: str) -> int:
    duration_us = whole_ms(text)
    if not MIN_US <= duration_us <= MAX_US:
        raise ValueError(f"allowed is from {show_ms(MIN_US)} to {show_ms(MAX_US)}")
    return duration_us


@dataclass(frozen=True)
class ClientStampede(HostFault):
    """Connections from one host to brokers, in turn, each with Metadata requests for all topics."""

    kind: ClassVar[str] = "client-stampede"
    summary: ClassVar[str] = "many clients on one host connect to brokers at once and ask for all metadata"
    deadline_s: ClassVar[float] = 20.0
    hinders: ClassVar[bool] = True
    keeps_quota: ClassVar[bool] = True

    host: str = parameter("the host of the clients", name)
    brokers: tuple[str, ...] = parameter("brokers, such as b1,b2; all: every broker", names, joined, default=ALL)
    connections: int = parameter("connections in all", whole_number(1, MOST_CONNECTIONS), default=200)
    requests: int = parameter("requests per second in all", whole_number(1, MOST_REQUESTS), default=200)
    lasts: int = parameter("the clients end after this time", _lasts, show_ms, default=60_000_000)
    until: float = remembered_field(0.0)
    """Seconds since the epoch."""

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        super().check(topology)
        if self.brokers != ALL:
            known_brokers(topology, self.brokers)
        if len(self.to(topology)) > self.connections:
            brokers = len(self.to(topology))
            raise UsageError(f"{self.connections} connections do not reach {brokers} brokers; give {brokers} or more")

    def to(self, topology: Topology) -> tuple[str, ...]:
        """Return the names of the brokers."""
        return tuple(host.name for host in topology.brokers) if self.brokers == ALL else self.brokers

    def prepare(self, testbed: Testbed) -> Self:
        """See `Fault.prepare`: remembers when the clients end."""
        del testbed
        return replace(self, until=time.time() + self.lasts / 1e6)

    def settle(self, testbed: Testbed) -> None:
        """See `Fault.settle`."""
        settle(testbed, self.host)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: counts the connections in the kernels of the brokers' hosts."""
        source = testbed.plan.data_ip(self.host)
        counts = {host: established(testbed, host, source) for host in self.to(testbed.topology)}
        if sum(counts.values()) >= self.connections:
            return None
        shown = ", ".join(f"{count} to {host}" for host, count in counts.items())
        ended = "" if clients(testbed, self.host).pid() else f"; the clients on {self.host} have ended"
        return f"of {self.connections} connections there are {shown}{ended}"


def settle(testbed: Testbed, host: str) -> None:
    """Run the clients of all active faults on `host`, or end them."""
    jobs = [
        {
            "targets": [[str(testbed.plan.data_ip(broker)), CLIENT_PORT] for broker in fault.to(testbed.topology)],
            "connections": fault.connections,
            "requests_per_s": fault.requests,
            "until": fault.until,
            "lasts_s": fault.lasts / 1e6,
        }
        for fault in active_on(testbed, host, ClientStampede)
    ]
    daemon = clients(testbed, host, jobs)
    daemon.kill()
    if jobs:
        testbed.hosts[host].put((resources.files("testbed.faults.programs") / "stampede.py").read_bytes(), PROGRAM)
        start(daemon)


def clients(testbed: Testbed, host: str, jobs: Sequence[object] = ()) -> Daemon:
    """Return the program on `host`."""
    return Daemon(testbed.hosts[host], "stampede", ["python3", PROGRAM, json.dumps(jobs)], pid_file=_PID, log=_LOG)


def established(testbed: Testbed, host: str, source: IPv4Address) -> int:
    """Return how many connections from `source` to Kafka's client port a host's kernel has."""
    return count_established(testbed.hosts[host].run(["cat", "/proc/net/tcp"]).stdout, source, CLIENT_PORT)


def count_established(table: str, source: IPv4Address, port: int) -> int:
    """Return how many connections from `source` to a local port are in the text of /proc/net/tcp. Pure."""
    remote = source.packed[::-1].hex().upper()
    rows = (line.split() for line in table.splitlines()[1:])
    return sum(
        1
        for row in rows
        if row[3] == _ESTABLISHED and row[1].endswith(f":{port:04X}") and row[2].startswith(f"{remote}:")
    )


FAULT = ClientStampede
