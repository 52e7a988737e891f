"""CPU limits of hosts' containers: set through the engine, read where the kernel keeps them."""

from pathlib import Path
from typing import TYPE_CHECKING

from testbed.errors import TestbedError
from testbed.faults.fault import Fault
from testbed.faults.journal import active

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed

CGROUPS = Path("/sys/fs/cgroup")


class CpuFault(Fault):
    """A fault that leaves a host fewer CPUs."""

    host: str
    cpus: float


def wanted(testbed: "Testbed", host: str) -> float | None:
    """How many CPUs the active faults leave a host, the fewest counting; None: as many as there are."""
    found = active(testbed.name, CpuFault)  # type: ignore[type-abstract]
    return min((fault.cpus for fault in found if fault.host == host), default=None)


def settle(testbed: "Testbed", host: str) -> None:
    """Make the limit of `host` what it must be. Raises `TestbedError` when the engine refuses it."""
    testbed.engine.limit_cpus(_container(testbed, host), wanted(testbed, host))


def in_force(testbed: "Testbed", host: str) -> float | None:
    """The limit that the kernel has for a host's processes; None: there is none."""
    pid = testbed.engine.pid(_container(testbed, host))
    return read_limit(Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8"), CGROUPS)


def _container(testbed: "Testbed", host: str) -> str:
    for found in testbed.engine.containers(testbed.name):
        if found.host == host:
            return found.id
    raise TestbedError(f"testbed {testbed.name} has no container for {host}")


def read_limit(cgroup: str, root: Path) -> float | None:
    """The limit of the cgroup that a `/proc/PID/cgroup` names, in CPUs: of version 1 or 2."""
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", maxsplit=2)
        folder = path.lstrip("/")
        if "cpu" in controllers.split(","):
            quota = (root / "cpu" / folder / "cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu" / folder / "cpu.cfs_period_us").read_text().strip()
            return None if int(quota) < 0 else int(quota) / int(period)
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", maxsplit=2)
        if not controllers:
            quota, period = (root / path.lstrip("/") / "cpu.max").read_text().split()
            return None if quota == "max" else int(quota) / int(period)
    raise TestbedError(f"no cgroup limits the CPUs of this process: {cgroup!r}")
