"""CPU limits of hosts' containers: the topology and the faults determine them, and the engine sets them."""

from testbed.errors import TestbedError
from testbed.faults.fault import Fault
from testbed.faults.journal import active
from testbed.provision.containers import HostContainer
from testbed.provision.machine import limit_in_force
from testbed.provision.testbed import Testbed


class CpuFault(Fault):
    """A fault that reduces a host's CPUs."""

    host: str
    cpus: float


def wanted(testbed: Testbed, host: str) -> float | None:
    """Return the lowest CPU limit of a host from its topology and active faults; None without a limit."""
    found = active(testbed.name, CpuFault)  # type: ignore[type-abstract]
    limits = [testbed.topology.host(host).cpus, *(fault.cpus for fault in found if fault.host == host)]
    return min((limit for limit in limits if limit is not None), default=None)


def settle(testbed: Testbed, host: str) -> None:
    """Set the limit of `host` to the required one. Raise `TestbedError` when the engine refuses it."""
    testbed.engine.limit_cpus(_container(testbed, host).id, wanted(testbed, host))


def in_force(testbed: Testbed, host: str) -> float | None:
    """Return the kernel's limit in CPUs for a host's processes; None without a limit."""
    return limit_in_force(testbed.engine, _container(testbed, host))


def _container(testbed: Testbed, host: str) -> HostContainer:
    for found in testbed.engine.containers(testbed.name):
        if found.host == host:
            return found
    raise TestbedError(f"testbed {testbed.name} has no container for {host}")
