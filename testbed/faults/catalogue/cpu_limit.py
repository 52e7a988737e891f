"""A host with too little CPU, as with a noisy neighbour or a machine that throttles itself."""

import os
from dataclasses import dataclass
from typing import ClassVar, Self

from testbed.errors import TestbedError, UsageError
from testbed.faults.fault import HostFault, parameter
from testbed.faults.journal import active_on
from testbed.faults.parameters import cpus, is_here
from testbed.provision.containers import HostContainer
from testbed.provision.machine import limit_in_force
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology


@dataclass(frozen=True)
class CpuLimit(HostFault):
    """A limit in CPUs for all processes of a host together; of several limits the lowest counts."""

    kind: ClassVar[str] = "cpu-limit"
    summary: ClassVar[str] = "all processes of a host share fewer CPUs"
    keeps_quota: ClassVar[bool] = True

    cpus: float = parameter("how many CPUs, such as 0.5", cpus, lambda number: f"{number:g}")

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        super().check(topology)
        if topology.exists:
            raise UsageError(f"{self.host} is a machine that exists: the testbed does not limit its CPUs")

    def prepare(self, testbed: Testbed) -> Self:
        """See `Fault.prepare`."""
        who, has = _most(testbed, self.host)
        if self.cpus >= has:
            raise TestbedError(f"cpus={self.cpus:g} would limit nothing: {who} has {has:g}")
        return self

    def settle(self, testbed: Testbed) -> None:
        """See `Fault.settle`."""
        settle(testbed, self.host)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: reads the limit from the kernel."""
        found = in_force(testbed, self.host)
        return (
            None if found == wanted(testbed, self.host) else f"{self.host} is limited to {found or 'no number of'} CPUs"
        )

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`."""
        super().heal(testbed)
        if still := self.verify(testbed):
            raise TestbedError(still)


def _most(testbed: Testbed, host: str) -> tuple[str, float]:
    """Return how many CPUs a host has without the fault, and in words who says it: its topology, or its machine."""
    if declared := testbed.topology.host(host).cpus:
        return host, declared
    if is_here(testbed.topology, host):
        return "this machine", os.cpu_count() or 1
    return f"the machine of {host}", int(testbed.hosts[host].run(["nproc", "--all"]).stdout)


def wanted(testbed: Testbed, host: str) -> float | None:
    """Return the lowest CPU limit of a host from its topology and active faults; None without a limit."""
    limits = [testbed.topology.host(host).cpus, *(fault.cpus for fault in active_on(testbed, host, CpuLimit))]
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


FAULT = CpuLimit
