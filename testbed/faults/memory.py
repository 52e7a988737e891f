"""Memory limits of hosts' containers: the lowest of the active faults, written to the kernel's control groups."""

from testbed.faults import processes, stores
from testbed.faults.fault import Fault
from testbed.faults.journal import active
from testbed.provision.cgroups import ContainerCgroup
from testbed.provision.testbed import Testbed
from testbed.topology.host import Role


class MemoryFault(Fault):
    """A fault that reduces a host's memory."""

    host: str
    memory: int


def wanted(testbed: Testbed, host: str) -> int | None:
    """Return the lowest memory limit of a host from its active faults, in bytes; None without one."""
    found = active(testbed.name, MemoryFault)  # type: ignore[type-abstract]
    return min((fault.memory for fault in found if fault.host == host), default=None)


def settle(testbed: Testbed, host: str) -> None:
    """Set the limit of `host` to the required one. Raise `TestbedError` when the kernel refuses it."""
    group = ContainerCgroup.of(testbed.pids()[1][host])
    if group.memory_bytes() != wanted(testbed, host):
        group.limit_memory(wanted(testbed, host))


def in_force(testbed: Testbed, host: str) -> int | None:
    """Return the kernel's limit for a host's processes, in bytes; None without one."""
    return ContainerCgroup.of(testbed.pids()[1][host]).memory_bytes()


def used(testbed: Testbed, host: str) -> int:
    """Return the bytes that a host's processes use, without the page cache."""
    return ContainerCgroup.of(testbed.pids()[1][host]).memory_used_bytes()


def start_killed(testbed: Testbed, host: str) -> None:
    """Start the server of `host` that the kernel killed for lack of memory, unless another fault holds it down."""
    declared = testbed.topology.host(host)
    if declared.node_id is not None:
        processes.settle(testbed, host)
    elif declared.role is Role.OBJECTSTORE:
        stores.settle(testbed, host)
