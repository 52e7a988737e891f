"""Checks of the machine: system, permissions, memory, disk, and kernel features.

Each kernel feature is tried in its own network namespace.
"""

import os
import shutil
import sys
from pathlib import Path

from testbed.network.kernel import try_kind
from testbed.paths import cache_dir
from testbed.setup.check import Check, CheckFinding
from testbed.setup.debian import has_apt, os_release, which
from testbed.software.engine import EngineError, EngineSocket


class Platform(Check):
    """Linux, since containers, veth pairs and tc exist only there."""

    name = "platform"

    def probe(self) -> CheckFinding:
        """Return the finding. Other Linux distributions work when the programs are there; Debian's are installed."""
        if sys.platform != "linux":
            return self.bad(
                f"this is {sys.platform}; the testbed shapes NICs with Linux's traffic control",
                "run it on Linux: Debian 12, in a virtual machine if need be",
            )
        told = os_release().get("PRETTY_NAME", "Linux")
        return self.good(told if has_apt() else f"{told}: no apt-get, so missing programs are yours to install")


NEEDED = {12: "CAP_NET_ADMIN", 21: "CAP_SYS_ADMIN"}
STATUS = Path("/proc/self/status")


class Permissions(Check):
    """Root, or its capabilities: links between network namespaces need them."""

    name = "permissions"
    needs = ("platform",)

    def probe(self) -> CheckFinding:
        """Compare the effective with the required capabilities; return the finding."""
        held = effective_capabilities(STATUS.read_text(encoding="ascii") if STATUS.exists() else "")
        lacking = [name for bit, name in NEEDED.items() if not held >> bit & 1]
        if not lacking:
            return self.good("may shape and link NICs")
        who = "root" if os.geteuid() == 0 else "this user"
        return self.bad(
            f"{who} lacks {' and '.join(lacking)}, needed to lay and shape the containers' NICs",
            "run as root: sudo ./run …" if os.geteuid() else "start this container with --privileged",
        )


def effective_capabilities(status: str) -> int:
    """Return the bits of CapEff in /proc/self/status; 0 without that line."""
    return next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)


GIB = 1024**3
MEMORY_BYTES = 4 * GIB
DISK_BYTES = 5 * GIB
MEMINFO = Path("/proc/meminfo")


class MemorySize(Check):
    """Memory for brokers and Spark, some 3 GiB together."""

    name = "memory"
    needs = ("platform",)

    def probe(self) -> CheckFinding:
        """Compare the available with the required memory; return the finding."""
        available = available_bytes(MEMINFO.read_text(encoding="ascii")) if MEMINFO.exists() else 0
        told = f"{available / GIB:.1f} GiB available"
        if available >= MEMORY_BYTES:
            return self.good(told)
        return self.bad(f"{told}, {MEMORY_BYTES / GIB:.0f} GiB needed", "end other programs, or use a larger machine")


class DiskSpace(Check):
    """Disk space for image, jars, environment and the brokers' logs."""

    name = "disk"
    needs = ("platform",)

    def probe(self) -> CheckFinding:
        """Compare the free space in the cache folder and the engine's folder with the requirement."""
        free = {folder: shutil.disk_usage(_existing(folder)).free for folder in (cache_dir(), engine_folder())}
        short = [f"{folder}: {bytes_ / GIB:.1f} GiB free" for folder, bytes_ in free.items() if bytes_ < DISK_BYTES]
        if not short:
            return self.good(f"{min(free.values()) / GIB:.0f} GiB free")
        return self.bad(
            f"{'; '.join(short)}; {DISK_BYTES / GIB:.0f} GiB needed",
            "free space on that disk, or name a folder on a larger disk in XDG_CACHE_HOME",
        )


def available_bytes(meminfo: str) -> int:
    """Return MemAvailable of /proc/meminfo in bytes."""
    return next((int(line.split()[1]) * 1024 for line in meminfo.splitlines() if line.startswith("MemAvailable:")), 0)


def engine_folder() -> Path:
    """Return the engine's folder of containers."""
    try:
        return Path(str(EngineSocket.from_environment().get("/info")["DockerRootDir"]))
    except EngineError:
        return Path("/var/lib/docker")


def _existing(folder: Path) -> Path:
    while not folder.is_dir():
        folder = folder.parent
    return folder


class _KernelCheck(Check):
    kinds: tuple[str, ...]
    consequence: str
    required = True

    def probe(self) -> CheckFinding:
        """Try each kind and return the finding; the machine's own network is not changed."""
        if which("tc") is None or which("unshare") is None:
            return self.bad("cannot be tried before ip, tc and unshare are installed", required=self.required)
        refused = {kind: said for kind in self.kinds if (said := try_kind(kind))}
        if not refused:
            return self.good(f"has {', '.join(self.kinds)}")
        return self.bad(
            ", ".join(f"{kind} ({said})" for kind, said in refused.items()) + f": {self.consequence}",
            " && ".join(f"modprobe {_module(kind)}" for kind in refused),
            required=self.required,
        )


class KernelFeatures(_KernelCheck):
    """Kernel features that every NIC needs."""

    name = "kernel"
    needs = ("packages", "permissions")
    kinds = ("veth", "bridge", "htb", "bfifo")
    consequence = "NICs cannot be made or shaped on this kernel"


class KernelDelay(_KernelCheck):
    """Kernel features that only some topologies need."""

    name = "kernel: delay and loss"
    needs = ("packages", "permissions")
    kinds = ("netem",)
    consequence = "delay and loss cannot be declared on this machine; rates can"
    required = False


def _module(kind: str) -> str:
    return kind if kind in ("veth", "bridge") else f"sch_{kind.replace('bfifo', 'fifo')}"
