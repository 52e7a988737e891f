"""How many CPUs a host's processes share, read where the kernel keeps it."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import TestbedError
from testbed.provision.containers import Engine
from testbed.topology.host import Host

CGROUPS = Path("/sys/fs/cgroup")


def limit_of(pid: int) -> float | None:
    """The limit that the kernel has for a process of the machine; None: there is none. Raises `TestbedError`."""
    return read_limit(Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8"), CGROUPS)


def require_as_declared(hosts: Iterable[Host], pids: Mapping[str, int]) -> None:
    """Raises `TestbedError` when the kernel does not hold a host to the CPUs that the topology gives it."""
    for host in hosts:
        if host.cpus is not None and (found := limit_of(pids[host.name])) != host.cpus:
            raise TestbedError(f"{host.name}: {host.cpus:g} CPUs are declared, the kernel has {found or 'no limit'}")


@contextmanager
def lifted(engine: Engine, testbed: str, hosts: Iterable[Host]) -> Iterator[None]:
    """For the block, hosts whose CPUs the topology limits have all of the machine's; then as many as just before."""
    names = {host.name for host in hosts if host.cpus is not None}
    containers = [found.id for found in engine.containers(testbed) if found.host in names] if names else []
    # A fault may leave them fewer than the topology does.
    before = {container: limit_of(engine.pid(container)) for container in containers}
    try:
        for container in before:
            engine.limit_cpus(container, None)
        yield
    finally:
        for container, cpus in before.items():
            engine.limit_cpus(container, cpus)


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
