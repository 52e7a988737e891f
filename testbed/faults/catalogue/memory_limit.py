"""A host with too little memory: little page cache, and a kernel that kills what needs more."""

import os
from dataclasses import dataclass
from typing import ClassVar

from testbed.errors import TestbedError
from testbed.faults import memory
from testbed.faults.fault import parameter
from testbed.faults.parameters import known_hosts, name
from testbed.provision.cgroups import no_memory_limit
from testbed.provision.testbed import Testbed
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
class MemoryLimit(memory.MemoryFault):
    """A limit in bytes for all processes of a host and their page cache; of several limits the lowest counts."""

    kind: ClassVar[str] = "memory-limit"
    summary: ClassVar[str] = "all processes of a host and their page cache share less memory"
    hinders: ClassVar[bool] = True

    host: str = parameter("the host", name)
    memory: int = parameter("bytes, such as 900MiB", _size, format_size)

    @classmethod
    def lacking(cls) -> str:
        """See `Fault.lacking`."""
        return no_memory_limit()

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        known_hosts(topology, [self.host])

    def prepare(self, testbed: Testbed) -> "MemoryLimit":
        """See `Fault.prepare`."""
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if self.memory >= there:
            raise TestbedError(f"memory={format_size(self.memory)} would limit nothing: this machine has {there} bytes")
        used = memory.used(testbed, self.host)
        if self.memory <= used:
            raise TestbedError(
                f"memory={format_size(self.memory)} is less than the processes of {self.host} use now, {used} bytes: "
                "the kernel would refuse it, or kill them; broker-kill does that at a known time"
            )
        return self

    def apply(self, testbed: Testbed) -> None:
        """See `Fault.apply`."""
        memory.settle(testbed, self.host)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: reads the limit from the kernel."""
        found, want = memory.in_force(testbed, self.host), memory.wanted(testbed, self.host)
        return None if found == want else f"the kernel limits {self.host} to {found or 'no number of'} bytes"

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`: also starts what the kernel killed."""
        memory.settle(testbed, self.host)
        found, want = memory.in_force(testbed, self.host), memory.wanted(testbed, self.host)
        if found != want:
            raise TestbedError(f"{self.host} is still limited to {found or 'no number of'} bytes")
        memory.start_killed(testbed, self.host)


FAULT = MemoryLimit
