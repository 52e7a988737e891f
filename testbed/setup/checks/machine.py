"""Checks of the machine: system, permissions, memory, disk, control groups, addresses and kernel features.

Each kernel feature is tried in its own network namespace.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from ipaddress import IPv4Network
from pathlib import Path

from testbed.cgroups import CONTROLLERS, own_cpu_quota
from testbed.network.addresses import RANGE, free_slot, is_wide
from testbed.network.kernel import UNTRIED, lacking_capabilities, try_kind
from testbed.paths import cache_dir, free_bytes
from testbed.setup.check import Check, CheckFinding
from testbed.software.distribution import by_sudo, has_podman_alone, sudo_works, this_distribution, which
from testbed.software.engine import EngineError, EngineSocket, Trouble, engine_folder

KERNEL_VERSION = Path("/proc/version")


class Platform(Check):
    """Linux, since containers, veth pairs and tc exist only there."""

    name = "platform"

    def probe(self) -> CheckFinding:
        """Return the distribution, the architecture, and whether it runs under Windows."""
        if sys.platform != "linux":
            return self.bad(
                f"this is {sys.platform}; the testbed shapes NICs with Linux's traffic control",
                "run it on Linux, in a virtual machine if need be",
            )
        distribution = this_distribution()
        windows = windows_subsystem(KERNEL_VERSION.read_text() if KERNEL_VERSION.exists() else "")
        what = f"{distribution.name}, {os.uname().machine}" + (f", {windows}" if windows else "")
        if windows == "WSL1":
            return self.bad(f"{what}: it has no Linux kernel, so no containers", "wsl --set-version DISTRIBUTION 2")
        manager = distribution.manager
        return self.good(what if manager else f"{what}: unknown, so install missing programs yourself")


def windows_subsystem(version: str) -> str:
    """Return `WSL1` or `WSL2` for a /proc/version of a Linux under Windows, "" for any other. Pure."""
    if "microsoft" not in version.lower():
        return ""
    # WSL1 says `4.4.0-19041-Microsoft`; the kernel of WSL2 `5.15.153.1-microsoft-standard-WSL2`.
    return "WSL2" if "wsl2" in version.lower() or "microsoft-standard" in version else "WSL1"


class Permissions(Check):
    """Root, or an engine that gives a container with root's permissions: links between namespaces need them."""

    name = "permissions"
    needs = ("platform",)

    def probe(self) -> CheckFinding:
        """Return who links and shapes the NICs: this user, or a container of the engine."""
        lacking = lacking_capabilities()
        if not lacking:
            return self.good("may shape and link NICs")
        who = "root" if os.geteuid() == 0 else "this user"
        try:
            EngineSocket.from_environment().ping()
        except EngineError as error:
            if error.trouble is not Trouble.DENIED and (os.geteuid() == 0 or sudo_works()):
                return self.good(f"{who} lacks {' and '.join(lacking)}; a container of the engine will have them")
            return self.bad(
                f"{who} lacks {' and '.join(lacking)}, needed to make and shape the containers' NICs, and may not use "
                f"an engine that gives them: {error}",
                _remedy(error.trouble),
            )
        return self.good(f"{who} is without {' and '.join(lacking)}: a container of the engine shapes and links NICs")


def _remedy(trouble: Trouble) -> str:
    if os.geteuid() == 0:
        return "start this container with --privileged"
    if has_podman_alone():
        return "run as root, which owns Podman's socket"
    first = "install and start the engine, then " if trouble is Trouble.ABSENT else ""
    return f"{first}sudo usermod -aG docker $USER, and log in again; or run as root"


class ControlGroups(Check):
    """The control groups, which limit CPUs and, in version 2, the bandwidth of disks."""

    name = "control groups"
    needs = ("platform",)

    def probe(self) -> CheckFinding:
        """Return their version."""
        if CONTROLLERS.exists():
            return self.good("version 2")
        return self.bad(
            "version 1: CPUs can be limited; a disk's bandwidth cannot",
            "boot with systemd.unified_cgroup_hierarchy=1",
            required=False,
        )


class Addresses(Check):
    """The range of addresses that testbeds take theirs from (RFC 2544 reserves it for benchmarks)."""

    name = "addresses"
    needs = ("packages",)

    def probe(self) -> CheckFinding:
        """Return how many of its networks other routes of this machine use."""
        program = which("ip")
        if program is None:
            return self.bad("cannot be read before ip is installed", required=False)
        said = subprocess.run([program, "-j", "-4", "route"], capture_output=True, text=True, check=False).stdout
        covering = covering_routes(str(route.get("dst", "default")) for route in json.loads(said or "[]"))
        if not covering:
            return self.good(f"{RANGE} is free, except for the addresses of testbeds")
        return self.bad(
            f"this machine has a route to {', '.join(covering)}: no addresses of {RANGE} are left for testbeds",
            by_sudo(f"ip route del {covering[0]}"),
        )


def covering_routes(destinations: Iterable[str]) -> tuple[str, ...]:
    """Return the destinations of routes, but for default routes, that together leave a testbed no addresses. Pure."""
    networks = {each: IPv4Network(each, strict=False) for each in destinations if each[0].isdigit()}
    try:
        free_slot((), networks.values())
    except LookupError:
        return tuple(each for each, network in networks.items() if is_wide(network))
    return ()


GIB = 1024**3
MEMORY_BYTES = 4 * GIB
DISK_BYTES = 5 * GIB
MEMINFO = Path("/proc/meminfo")


class Cpus(Check):
    """CPUs for brokers and load: those of the machine, or fewer where a control group limits this process."""

    name = "cpus"
    needs = ("platform",)

    def probe(self) -> CheckFinding:
        """Return the number of cores, and the smallest CPU quota of this process and of what it runs in."""
        cores, quota = os.cpu_count() or 1, own_cpu_quota()
        if quota is None or quota.cpus >= cores:
            return self.good(f"{cores} cores")
        return self.bad(
            f"{cores} cores, of which {quota.group} allows {quota.cpus:g} CPUs: processes there may have to wait",
            "run the testbed outside of the limited container or service, or raise its CPU quota",
            required=False,
        )


class MemorySize(Check):
    """Memory for brokers and Spark, some 3 GiB together."""

    name = "memory"
    needs = ("platform",)

    def probe(self) -> CheckFinding:
        """Compare the available with the required memory; return the finding."""
        available = available_bytes(MEMINFO.read_text(encoding="ascii")) if MEMINFO.exists() else 0
        found = f"{available / GIB:.1f} GiB available"
        if available >= MEMORY_BYTES:
            return self.good(found)
        return self.bad(f"{found}, {MEMORY_BYTES / GIB:.0f} GiB needed", "end other programs, or use a larger machine")


class DiskSpace(Check):
    """Disk space for image, jars, environment and the brokers' logs."""

    name = "disk"
    needs = ("platform",)

    def probe(self) -> CheckFinding:
        """Compare the free space in the cache folder and the engine's folder with the requirement."""
        free = {folder: free_bytes(folder) for folder in (cache_dir(), engine_folder())}
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


class _KernelCheck(Check):
    kinds: tuple[str, ...]
    consequence: str
    required = True

    def probe(self) -> CheckFinding:
        """Try each kind and return the finding; the machine's own network is not changed."""
        if lacking_capabilities() == () and (which("tc") is None or which("unshare") is None):
            return self.bad("cannot be tried before ip, tc and unshare are installed", required=self.required)
        refused = {kind: said for kind in self.kinds if (said := try_kind(kind))}
        if not refused:
            return self.good(f"has {', '.join(self.kinds)}")
        untried = [said for said in refused.values() if said.startswith(UNTRIED)]
        if untried:
            return self.bad(untried[0], required=False)
        return self.bad(
            ", ".join(f"{kind} ({said})" for kind, said in refused.items()) + f": {self.consequence}",
            " && ".join(by_sudo(f"modprobe {_module(kind)}") for kind in refused),
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
