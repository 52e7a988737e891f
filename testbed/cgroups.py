"""The kernel's limits of a container: files of its control groups, versions 1 and 2, read and written.

CPUs and memory belong to a container; a limit of CPUs above it holds for everything below. A disk's rate belongs to
the pair of a container and a block device.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.errors import TestbedError

CGROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = CGROUPS / "cgroup.controllers"
"""Exists only where the control groups are of version 2."""
BDI = Path("/sys/class/bdi")
_NO_LIMIT_BYTES = 2**62
"""Version 1 reports no limit as the largest number of whole pages; every limit above this one is none."""
DIRTY_BYTES = 4 * 2**20
"""The bytes that a slow disk may still have to write before the kernel holds a writer back."""


@dataclass(frozen=True, slots=True)
class CpuQuota:
    """A limit in CPUs, the control group that has it, and the file that counts the CPU time of that group."""

    cpus: float
    group: Path
    usage: Path

    def used_s(self) -> float | None:
        """Return the CPU time that the group has used, in seconds; None where the kernel does not count it."""
        try:
            counted = _read(self.usage)
        except TestbedError:
            return None
        if self.usage.name == "cpuacct.usage":
            return int(counted) / 1e9
        microseconds = _entry(counted, "usage_usec")
        return None if microseconds is None else microseconds / 1e6


def own_cpu_quota() -> CpuQuota | None:
    """Return the smallest CPU limit of this process: that of its container, its service, or a slice above them."""
    try:
        return ContainerCgroup.of(os.getpid()).smallest_quota()
    except TestbedError:
        return None  # this kernel has no such control groups


@dataclass(frozen=True, slots=True)
class ContainerCgroup:
    """The control groups of one process of the machine, from the text of its `/proc/PID/cgroup`."""

    text: str
    root: Path = CGROUPS

    @classmethod
    def of(cls, pid: int) -> "ContainerCgroup":
        """Return the control groups of a process. Raise `TestbedError` when the process is gone."""
        try:
            return cls(Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8"))
        except OSError as error:
            raise TestbedError(f"process {pid}: its control groups cannot be read: {error.strerror}") from error

    def folder(self, controller: str) -> tuple[Path, int]:
        """Return the folder of a controller, and the version: 1 or 2. Raise `TestbedError` when it has none."""
        parts = [line.split(":", maxsplit=2) for line in self.text.splitlines()]
        for _number, controllers, path in parts:
            if controller in controllers.split(","):
                return self.root / controller / path.lstrip("/"), 1
        for _number, controllers, path in parts:
            if not controllers:
                return self.root / path.lstrip("/"), 2
        raise TestbedError(f"no control group has the controller {controller} for this process: {self.text!r}")

    def cpus(self) -> float | None:
        """Return the limit in CPUs; None without one."""
        folder, version = self.folder("cpu")
        if version == 1:
            quota, period = (_read(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        else:
            quota, period = _read(folder / "cpu.max").split()
        return None if quota in ("max", "-1") else int(quota) / int(period)

    def smallest_quota(self) -> CpuQuota | None:
        """Return the smallest CPU limit of the group and of all groups above it, of which a process sees some.

        In a container the highest that it sees is its own. None without a limit. Raise `TestbedError` when the process
        has no control group for CPUs.
        """
        folder, version = self.folder("cpu")
        top = self.root / "cpu" if version == 1 else self.root
        found = []
        for group in (folder, *folder.parents):
            if group != top and top not in group.parents:
                break
            below = str(group.relative_to(top))
            text = f"1:cpu:/{below}" if version == 1 else f"0::/{below}"
            try:
                cpus = replace(self, text=text).cpus()
            except TestbedError:
                continue  # the process does not see this group, or it is the first of all, which has no limit
            usage = self.root / "cpuacct" / below / "cpuacct.usage" if version == 1 else group / "cpu.stat"
            found += [CpuQuota(cpus, group, usage)] if cpus else []
        return min(found, key=lambda quota: quota.cpus, default=None)

    def memory_bytes(self) -> int | None:
        """Return the limit of memory in bytes; None without one."""
        folder, version = self.folder("memory")
        text = _read(folder / ("memory.limit_in_bytes" if version == 1 else "memory.max"))
        return None if text == "max" or int(text) >= _NO_LIMIT_BYTES else int(text)

    def memory_used_bytes(self) -> int:
        """Return the bytes in use that the kernel cannot drop: without the page cache."""
        folder, version = self.folder("memory")
        fields = dict(line.split() for line in _read(folder / "memory.stat").splitlines())
        return int(fields["rss" if version == 1 else "anon"])

    def limit_memory(self, limit_bytes: int | None) -> None:
        """Set the limit of memory; None removes it. Raise `TestbedError` when the kernel refuses it."""
        folder, version = self.folder("memory")
        none = "-1" if version == 1 else "max"
        _write(folder / ("memory.limit_in_bytes" if version == 1 else "memory.max"), str(limit_bytes or none))

    def disk_rate(self, device: str) -> int | None:
        """Return the limit of writes to a block device in bytes/s; None without one."""
        folder, version = self.folder("blkio" if (self.root / "blkio").exists() else "io")
        numbers = device_numbers(device)
        if version == 1:
            # What the kernel writes back from the page cache counts in the root group.
            return _entry(_read(self.root / "blkio" / "blkio.throttle.write_bps_device"), numbers)
        for line in _read(folder / "io.max").splitlines():
            found, *limits = line.split()
            value = dict(limit.split("=") for limit in limits).get("wbps", "max") if found == numbers else "max"
            if value != "max":
                return int(value)
        return None

    def limit_disk(self, device: str, rate_bytes_per_s: int | None) -> None:
        """Limit reads and writes, each, to a rate in bytes/s; None removes the limit. Raise `TestbedError`."""
        folder, version = self.folder("blkio" if (self.root / "blkio").exists() else "io")
        if version == 1:
            _throttle(folder, device, rate_bytes_per_s)
            throttle_writeback(device, rate_bytes_per_s, self.root)
            return
        value = "max" if rate_bytes_per_s is None else str(rate_bytes_per_s)
        _write(folder / "io.max", f"{device_numbers(device)} rbps={value} wbps={value}")


def throttle_writeback(device: str, rate_bytes_per_s: int | None, root: Path = CGROUPS) -> None:
    """Limit what the kernel writes back to a device, under control groups of version 1; None removes the limit.

    Only a few MiB of the page cache may then wait for this device. So a writer has the disk's rate, not memory's.
    """
    _throttle(root / "blkio", device, rate_bytes_per_s)
    info = BDI / device_numbers(device)
    if rate_bytes_per_s is None:
        _write(info / "strict_limit", "0")
        _write(info / "max_ratio", "100")
    else:
        _write(info / "strict_limit", "1")
        _write(info / "max_bytes", str(DIRTY_BYTES))


def no_disk_rate(root: Path = CGROUPS, bdi: Path = BDI) -> str:
    """Return why this machine cannot change a disk's rate; empty when it can."""
    controllers = root / "cgroup.controllers"
    if controllers.exists():
        there = "io" in _read(controllers).split()
        return "" if there else "the kernel has no io controller among its control groups (CONFIG_BLK_DEV_THROTTLING)"
    if not (root / "blkio" / "blkio.throttle.write_bps_device").exists():
        return "the kernel cannot throttle a block device (CONFIG_BLK_DEV_THROTTLING)"
    if not any(bdi.glob("*/strict_limit")):
        return (
            "its control groups are of version 1, and the kernel (before 6.2) cannot bound the page cache of one "
            "device (/sys/class/bdi/*/strict_limit)"
        )
    return ""


def no_memory_limit(root: Path = CGROUPS) -> str:
    """Return why this machine cannot limit a container's memory; empty when it can."""
    controllers = root / "cgroup.controllers"
    there = "memory" in _read(controllers).split() if controllers.exists() else (root / "memory").exists()
    return "" if there else "the kernel has no memory controller among its control groups (CONFIG_MEMCG)"


def device_numbers(device: str) -> str:
    """Return `7:0` for `/dev/loop0`. Raise `TestbedError` when there is no such device."""
    try:
        number = Path(device).stat().st_rdev
    except OSError as error:
        raise TestbedError(f"{device}: {error.strerror}") from error
    return f"{os.major(number)}:{os.minor(number)}"


def _throttle(folder: Path, device: str, rate_bytes_per_s: int | None) -> None:
    for way in ("read", "write"):
        _write(folder / f"blkio.throttle.{way}_bps_device", f"{device_numbers(device)} {rate_bytes_per_s or 0}")


def _entry(text: str, key: str) -> int | None:
    return next((int(line.split()[1]) for line in text.splitlines() if line.split()[:1] == [key]), None)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise TestbedError(f"{path}: {error.strerror}") from error


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="ascii")
    except OSError as error:
        raise TestbedError(f"{path}: the kernel does not accept {text!r}: {error.strerror}") from error
