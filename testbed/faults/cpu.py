"""CPU limits of hosts' containers: what the topology and faults leave them, set through the engine."""

from testbed.errors import TestbedError
from testbed.faults.fault import Fault
from testbed.faults.journal import active
from testbed.provision.machine import cpu_limit
from testbed.provision.testbed import Testbed


class CpuFault(Fault):
    """A fault that leaves a host fewer CPUs."""

    host: str
    cpus: float


def wanted(testbed: Testbed, host: str) -> float | None:
    """How many CPUs a host is left by its topology and active faults, the fewest counting; None: all there are."""
    found = active(testbed.name, CpuFault)  # type: ignore[type-abstract]
    limits = [testbed.topology.host(host).cpus, *(fault.cpus for fault in found if fault.host == host)]
    return min((limit for limit in limits if limit is not None), default=None)


def settle(testbed: Testbed, host: str) -> None:
    """Make the limit of `host` what it must be. Raises `TestbedError` when the engine refuses it."""
    testbed.engine.limit_cpus(_container(testbed, host), wanted(testbed, host))


def in_force(testbed: Testbed, host: str) -> float | None:
    """The limit that the kernel has for a host's processes; None: there is none."""
    return cpu_limit(testbed.engine.pid(_container(testbed, host)))


def _container(testbed: Testbed, host: str) -> str:
    for found in testbed.engine.containers(testbed.name):
        if found.host == host:
            return found.id
    raise TestbedError(f"testbed {testbed.name} has no container for {host}")
