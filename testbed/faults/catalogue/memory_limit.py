"""A host with too little memory: little page cache, and a kernel that kills what needs more."""

import os
from dataclasses import dataclass
from typing import ClassVar, Self

from testbed.cgroups import ContainerCgroup, no_memory_limit
from testbed.errors import TestbedError
from testbed.faults import processes, stores
from testbed.faults.fault import HostFault, parameter
from testbed.faults.journal import active_on
from testbed.faults.parameters import container_here, no_container_here
from testbed.provision.testbed import Testbed
from testbed.topology.host import Role
from testbed.topology.model import Topology
from testbed.units import format_size, parse_size

MIN_BYTES, PAGE_BYTES = 64 * 2**20, 4096


def _size(text: str) -> int:
    size_bytes = parse_size(text)
    if size_bytes < MIN_BYTES:
        raise ValueError(f"allowed is {format_size(MIN_BYTES)} or more: a host's own processes need some of it")
    # The kernel counts whole pages.
    return size_bytes // PAGE_BYTES * PAGE_BYTES


@dataclass(frozen=True)
class MemoryLimit(HostFault):
    """A limit in bytes for all processes of a host and their page cache; of several limits the lowest counts."""

    kind: ClassVar[str] = "memory-limit"
    summary: ClassVar[str] = "all processes of a host and their page cache share less memory"
    hinders: ClassVar[bool] = True

    memory: int = parameter("bytes, such as 900MiB", _size, format_size)

    @classmethod
    def lacking(cls) -> str:
        """See `Fault.lacking`."""
        return no_memory_limit()

    @classmethod
    def absent_from(cls, topology: Topology) -> str:
        """See `Fault.absent_from`."""
        return no_container_here(topology, [host.name for host in topology.hosts], cls.kind)

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        super().check(topology)
        container_here(topology, self.host, self.kind)

    def prepare(self, testbed: Testbed) -> Self:
        """See `Fault.prepare`."""
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if self.memory >= there:
            raise TestbedError(f"memory={format_size(self.memory)} would limit nothing: this machine has {there} bytes")
        used = _group(testbed, self.host).memory_used_bytes()
        if self.memory <= used:
            raise TestbedError(
                f"memory={format_size(self.memory)} is less than the processes of {self.host} use now, {used} bytes: "
                "the kernel would refuse it, or kill them; broker-kill does that at a known time"
            )
        return self

    def settle(self, testbed: Testbed) -> None:
        """See `Fault.settle`."""
        settle(testbed, self.host)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: reads the limit from the kernel."""
        found = in_force(testbed, self.host)
        return (
            None
            if found == wanted(testbed, self.host)
            else f"{self.host} is limited to {found or 'no number of'} bytes"
        )

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`: also starts the server that the kernel killed, unless another fault holds it down."""
        super().heal(testbed)
        if still := self.verify(testbed):
            raise TestbedError(still)
        declared = testbed.topology.host(self.host)
        if declared.node_id is not None:
            processes.settle(testbed, self.host)
        elif declared.role is Role.OBJECTSTORE:
            stores.settle(testbed, self.host)


def wanted(testbed: Testbed, host: str) -> int | None:
    """Return the lowest memory limit of a host from its active faults, in bytes; None without one."""
    return min((fault.memory for fault in active_on(testbed, host, MemoryLimit)), default=None)


def settle(testbed: Testbed, host: str) -> None:
    """Set the limit of `host` to the required one. Raise `TestbedError` when the kernel refuses it."""
    group, want = _group(testbed, host), wanted(testbed, host)
    if group.memory_bytes() != want:
        group.limit_memory(want)


def in_force(testbed: Testbed, host: str) -> int | None:
    """Return the kernel's limit for a host's processes, in bytes; None without one."""
    return _group(testbed, host).memory_bytes()


def _group(testbed: Testbed, host: str) -> ContainerCgroup:
    return ContainerCgroup.of(testbed.pids()[1][host])


FAULT = MemoryLimit
