"""A host with too little CPU, as with a noisy neighbour or a machine that throttles itself."""

import os
from dataclasses import dataclass
from typing import ClassVar

from testbed.errors import TestbedError, UsageError
from testbed.faults import cpu
from testbed.faults.fault import parameter
from testbed.faults.parameters import cpus, known_hosts, name
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology


@dataclass(frozen=True)
class CpuLimit(cpu.CpuFault):
    """A limit in CPUs for all processes of a host together; of several limits the lowest counts."""

    kind: ClassVar[str] = "cpu-limit"
    summary: ClassVar[str] = "all processes of a host share fewer CPUs"

    host: str = parameter("the host", name)
    cpus: float = parameter("how many CPUs, such as 0.5", cpus, lambda number: f"{number:g}")

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        known_hosts(topology, [self.host])
        if topology.exists:
            raise UsageError(f"{self.host} is a machine that exists: the testbed does not limit its CPUs")

    def prepare(self, testbed: Testbed) -> "CpuLimit":
        """See `Fault.prepare`."""
        declared, there = testbed.topology.host(self.host).cpus, os.cpu_count() or 1
        if self.cpus >= (declared or there):
            has = f"{self.host} has {declared:g}" if declared else f"this machine has {there}"
            raise TestbedError(f"cpus={self.cpus:g} would limit nothing: {has}")
        return self

    def apply(self, testbed: Testbed) -> None:
        """See `Fault.apply`."""
        cpu.settle(testbed, self.host)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: reads the limit from the kernel."""
        found, want = cpu.in_force(testbed, self.host), cpu.wanted(testbed, self.host)
        return None if found == want else f"the kernel limits {self.host} to {found or 'no number of'} CPUs"

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`."""
        cpu.settle(testbed, self.host)
        found, want = cpu.in_force(testbed, self.host), cpu.wanted(testbed, self.host)
        if found != want:
            raise TestbedError(f"{self.host} is still limited to {found or 'no number of'} CPUs")


FAULT = CpuLimit
