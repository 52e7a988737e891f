"""What a topology asks of the machine beyond what every testbed does: looked for before anything is made."""

import os
import shutil
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

from testbed.errors import TestbedError
from testbed.setup.checks.machine import try_kind
from testbed.topology.links import Link
from testbed.topology.model import Topology

LOOP_CONTROL = Path("/dev/loop-control")
FILE_SYSTEMS = Path("/proc/filesystems")
CONTROLLERS = Path("/sys/fs/cgroup/cgroup.controllers")
"""Exists only where the control groups are of version 2."""
DISK_PROGRAMS = ("mkfs.ext4", "debugfs", "losetup")


class Need(StrEnum):
    """Something not every machine can do; the value is what it is called in a refusal."""

    NETEM = "delay, jitter and loss"
    DISK = "a disk of a size"
    BANDWIDTH = "a disk's bandwidth"


class MachineLacks(TestbedError):
    """The topology asks for something that this machine's kernel or programs cannot do."""


def asked_for(topology: Topology) -> dict[Need, tuple[str, ...]]:
    """What the topology needs, each with who asks for it. Pure."""
    links: list[tuple[str, Link]] = [(f"{host.name} ({nic.name})", nic) for host in topology.hosts for nic in host.nics]
    links += [(f"rack {rack} (uplink)", uplink) for rack, uplink in topology.uplinks.items()]
    disks = [(host.name, host.disk) for host in topology.hosts if host.disk is not None]
    found = {
        Need.NETEM: tuple(who for who, link in links if link.tx_impairment or link.rx_impairment),
        Need.DISK: tuple(who for who, _disk in disks),
        Need.BANDWIDTH: tuple(who for who, disk in disks if disk.bandwidth_bytes_per_s is not None),
    }
    return {need: who for need, who in found.items() if who}


def no_netem() -> str:
    """Why frames cannot be delayed or lost here; empty when they can."""
    said = try_kind("netem")
    return f"the kernel has no netem ({said}); `modprobe sch_netem` loads it where it was built" if said else ""


def no_disk() -> str:
    """Why no file system of its own can be made here; empty when it can."""
    lacking = [
        program for program in DISK_PROGRAMS if shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin") is None
    ]
    if lacking:
        return f"{' and '.join(lacking)} not installed; `apt-get install e2fsprogs util-linux`"
    if not LOOP_CONTROL.exists():
        return f"the kernel has no loop devices ({LOOP_CONTROL} is not there); `modprobe loop` loads them"
    if "ext4" not in FILE_SYSTEMS.read_text(encoding="ascii").split():
        return "the kernel has no ext4; `modprobe ext4` loads it"
    return ""


def no_bandwidth() -> str:
    """Why a disk cannot be slowed down here; empty when it can."""
    if not CONTROLLERS.exists():
        return (
            "its control groups are of version 1, under which a limit does not hold what is written through the page "
            "cache, as Kafka writes; version 2 is needed (systemd.unified_cgroup_hierarchy=1)"
        )
    if "io" not in CONTROLLERS.read_text(encoding="ascii").split():
        return "the kernel has no io controller among its control groups (CONFIG_BLK_DEV_THROTTLING)"
    return ""


PROBES: Mapping[Need, Callable[[], str]] = {
    Need.NETEM: no_netem,
    Need.DISK: no_disk,
    Need.BANDWIDTH: no_bandwidth,
}


def require(topology: Topology, probes: Mapping[Need, Callable[[], str]] = PROBES) -> None:
    """Raises `MachineLacks`, naming everything that is missing and who asks for it."""
    there = os.cpu_count() or 1
    refused = [
        f"{host.cpus:g} CPUs cannot be had here, asked for by {host.name}: this machine has {there}"
        for host in topology.hosts
        if host.cpus is not None and host.cpus > there
    ]
    refused += [
        f"{need.value} cannot be had here, asked for by {', '.join(who)}: {why}"
        for need, who in asked_for(topology).items()
        if (why := probes[need]())
    ]
    if refused:
        raise MachineLacks(f"{topology.name} cannot be brought up on this machine:\n  " + "\n  ".join(refused))
