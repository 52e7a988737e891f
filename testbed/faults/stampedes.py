"""Stampedes of clients: one program on a host keeps the connections of all active faults."""

import json
from collections.abc import Sequence
from importlib import resources
from ipaddress import IPv4Address

from testbed.faults.fault import Fault
from testbed.faults.journal import active
from testbed.faults.processes import start
from testbed.hosts import Daemon
from testbed.kafka.node import CLIENT_PORT
from testbed.provision.testbed import Testbed

PROGRAM = "/opt/testbed/stampede.py"
_PID, _LOG = "/run/stampede.pid", "/var/log/testbed/stampede.log"
_ESTABLISHED = "01"


class StampedeFault(Fault):
    """A fault that opens connections from one host to brokers."""

    host: str
    connections: int
    requests: int
    lasts: int
    """Microseconds."""
    until: float

    def targets(self, testbed: Testbed) -> list[IPv4Address]:
        """Return the addresses of the brokers."""
        raise NotImplementedError


def settle(testbed: Testbed, host: str) -> None:
    """Run the clients of all active faults on `host`, or end them."""
    found = active(testbed.name, StampedeFault)  # type: ignore[type-abstract]
    jobs = [
        {
            "targets": [[str(address), CLIENT_PORT] for address in fault.targets(testbed)],
            "connections": fault.connections,
            "requests_per_s": fault.requests,
            "until": fault.until,
            "lasts_s": fault.lasts / 1e6,
        }
        for fault in found
        if fault.host == host
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
