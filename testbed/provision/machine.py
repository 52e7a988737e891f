"""The machine's support for hosts: CPUs and disks for each, and a check of the features that a topology needs.

A disk is a sparse file with ext4 on a loop device, which the engine has as a labelled volume. The file is in the
testbed's state folder. So a loop device is found by its file, and the remains of a crash are found as long as
that folder exists; `remove` deletes the folder last.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from testbed.cgroups import CONTROLLERS, ContainerCgroup, no_disk_rate, throttle_writeback
from testbed.errors import TestbedError
from testbed.hosts import Shell
from testbed.network.fabric import switches
from testbed.network.kernel import lacking_capabilities, try_kind
from testbed.network.namespaces import run_program, run_program_as_root
from testbed.network.overlay import HERE
from testbed.provision import state as states
from testbed.provision.containers import Engine, HostContainer, Labels, name_of_host
from testbed.software.distribution import this_distribution
from testbed.topology.host import DeclaredHost
from testbed.topology.links import Disk, Link
from testbed.topology.model import Topology
from testbed.wait import wait_for

PROCESSES = Path("/proc")
LOOP_CONTROL = Path("/dev/loop-control")
FILE_SYSTEMS = Path("/proc/filesystems")
DISK_PROGRAMS = ("mkfs.ext4", "debugfs", "losetup")


class Need(StrEnum):
    """A feature that some machines lack; the value is its name in a refusal."""

    NETEM = "delay, jitter and loss"
    DISK = "a disk of a size"
    BANDWIDTH = "a disk's bandwidth"


class MachineLacks(TestbedError):
    """The machine's kernel or programs lack a feature that the topology needs."""


def asked_for(topology: Topology, machine: str = HERE) -> dict[Need, tuple[str, ...]]:
    """Return the features that the topology needs of a machine, each with the hosts that need it. Pure."""
    hosts = [host for host in topology.hosts if topology.remote_machine_of(host) == machine]
    racks = {each.rack for each in switches(topology) if each.machine == machine}
    links: list[tuple[str, Link]] = [(f"{host.name} ({nic.name})", nic) for host in hosts for nic in host.nics]
    links += [(f"rack {rack} (uplink)", uplink) for rack, uplink in topology.uplinks.items() if rack in racks]
    disks = [(host.name, host.disk) for host in hosts if host.disk is not None]
    found = {
        Need.NETEM: tuple(who for who, link in links if link.tx_impairment or link.rx_impairment),
        Need.DISK: tuple(who for who, _disk in disks),
        Need.BANDWIDTH: tuple(who for who, disk in disks if disk.bandwidth_bytes_per_s is not None),
    }
    return {need: who for need, who in found.items() if who}


def no_netem() -> str:
    """Return why frames cannot be delayed or lost here; empty when they can."""
    said = try_kind("netem")
    return f"the kernel has no netem ({said}); `modprobe sch_netem` loads it where it was built" if said else ""


def no_netem_on(shell: Shell) -> str:
    """Return why frames cannot be delayed or lost on another machine, a shell as root; empty when they can.

    A machine that permits no network namespace does not say it; there the first change of a NIC shows it.
    """
    trial = "unshare --net tc qdisc add dev lo root netem delay 1ms"
    said = shell.run(f"! unshare --net true 2>/dev/null || {trial} 2>&1", check=False).stdout.strip()
    return f"its kernel has no netem ({said.splitlines()[0]}); `modprobe sch_netem` loads it there" if said else ""


def no_disk() -> str:
    """Return why this machine cannot make a separate file system; empty when it can."""
    lacking = [
        program for program in DISK_PROGRAMS if shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin") is None
    ]
    if lacking:
        return f"{' and '.join(lacking)} not installed; `{this_distribution().how_to_get(*lacking)}`"
    if not LOOP_CONTROL.exists():
        return f"the kernel has no loop devices ({LOOP_CONTROL} is not there); `modprobe loop` loads them"
    if "ext4" not in FILE_SYSTEMS.read_text(encoding="ascii").split():
        return "the kernel has no ext4; `modprobe ext4` loads it"
    return ""


def no_bandwidth() -> str:
    """Return why this machine cannot limit a disk's bandwidth; empty when it can."""
    if not CONTROLLERS.exists():
        return (
            "its control groups are of version 1, under which a limit does not hold what is written through the page "
            "cache, as Kafka writes; version 2 is needed (systemd.unified_cgroup_hierarchy=1)"
        )
    return no_disk_rate(CONTROLLERS.parent)


MACHINE_PROBES: Mapping[Need, Callable[[], str]] = {
    Need.NETEM: no_netem,
    Need.DISK: no_disk,
    Need.BANDWIDTH: no_bandwidth,
}


def require_machine(topology: Topology, probes: Mapping[Need, Callable[[], str]] = MACHINE_PROBES) -> None:
    """Raise `MachineLacks`, which names every feature that this machine lacks and the hosts that need it."""
    if refused := refusals(topology, HERE, os.cpu_count() or 1, probes):
        raise MachineLacks(f"{topology.name} cannot be brought up on this machine:\n  " + "\n  ".join(refused))


def require_engine(topology: Topology, engine: Engine) -> None:
    """Raise `MachineLacks` when testbeds cannot work on the engine of this machine, such as one without root."""
    if lacks := engine.lacks():
        raise MachineLacks(f"{topology.name} cannot be brought up on this container engine:\n  " + "\n  ".join(lacks))


def require_own_processes(engine: Engine, testbed: str) -> None:
    """Raise `TestbedError` when the engine's process numbers are not this process's, before links go to them.

    So it is in a container that has the engine's socket. A root container has the engine's numbers.
    """
    for container in [] if lacking_capabilities() else engine.containers(testbed):
        pid = engine.pid(container.id)
        try:
            # Every engine names the container in its control group.
            known = container.id in (PROCESSES / str(pid) / "cgroup").read_text(encoding="utf-8")
        except OSError:
            known = False
        if not known:
            raise TestbedError(
                f"process {pid} of the engine is another process here: this program runs in a container, the engine "
                "outside; run the testbed where the engine runs, or this container with --pid host --network host"
            )


def refusals(topology: Topology, machine: str, cpus: int, probes: Mapping[Need, Callable[[], str]]) -> list[str]:
    """Return every feature that the topology needs of a machine and the machine lacks, with the hosts that need it.

    A machine other than this one makes no disks: a topology that asks it for one is refused when it is read.
    """
    which = "this machine" if machine == HERE else "it"
    refused = [
        f"{which} cannot provide {host.cpus:g} CPUs, declared by {host.name}: it has {cpus}"
        for host in topology.hosts
        if topology.remote_machine_of(host) == machine and host.cpus is not None and host.cpus > cpus
    ]
    refused += [
        f"{which} cannot provide {need.value}, declared by {', '.join(who)}: {why}"
        for need, who in asked_for(topology, machine).items()
        if (why := probes[need]())
    ]
    return refused


def require_cpus(engine: Engine, testbed: str, hosts: Iterable[DeclaredHost]) -> None:
    """Raise `TestbedError` when the kernel does not apply the topology's CPU limit to a host."""
    limited = {host.name: host.cpus for host in hosts if host.cpus is not None}
    for container in engine.containers(testbed) if limited else []:
        if container.host in limited and (found := limit_in_force(engine, container)) != limited[container.host]:
            raise TestbedError(
                f"{container.host}: {limited[container.host]:g} CPUs are declared, the kernel has {found or 'no limit'}"
            )


def limit_in_force(engine: Engine, container: HostContainer) -> float | None:
    """Return the CPU limit of a container: the kernel's, on another machine the engine's; None without one."""
    place = engine.place(container)
    return ContainerCgroup.of(place).cpus() if isinstance(place, int) else engine.cpus(container.id)


@contextmanager
def without_cpu_limits(engine: Engine, testbed: str, hosts: Iterable[DeclaredHost]) -> Iterator[None]:
    """Remove the CPU limits of all hosts within the block; restore the previous limits at its end."""
    names = {host.name for host in hosts if host.cpus is not None}
    containers = [found for found in engine.containers(testbed) if found.host in names] if names else []
    # A fault may have set a lower limit than the topology.
    before = {container.id: limit_in_force(engine, container) for container in containers}
    try:
        for container in before:
            engine.limit_cpus(container, None)
        yield
    finally:
        refused = []
        for container, cpus in before.items():
            try:
                engine.limit_cpus(container, cpus)
            except TestbedError as error:
                refused.append(str(error))  # the others get theirs all the same
        if refused:
            raise TestbedError("; ".join(refused))


BLOCK_DEVICES = Path("/sys/block")
BYTES_PER_INODE = 65536
"""Kafka's files are few and large. A small inode table is written at once, not in the background during a run."""
MAKE_S = 600.0
"""The inode table of the largest disk, 1 TiB, has 4 GiB."""


@dataclass(frozen=True, slots=True)
class DiskMount:
    """A disk that was made: the engine's name of the volume, and the device."""

    volume: str
    device: str


def disk_file(testbed: str, host: str) -> Path:
    """Return the path of the file that contains a host's disk."""
    return states.folder(testbed).resolve() / "disks" / f"{host}.img"


def make_disk(engine: Engine, labels: Labels, host: str, disk: Disk) -> DiskMount:
    """Make a file system of `disk.size_bytes` as a volume of the engine. Raise `TestbedError` on failure."""
    file = disk_file(labels.name, host)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file.open("wb") as stream:
        stream.truncate(disk.size_bytes)
    extended = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    make = ["mkfs.ext4", "-q", "-F", "-m", "0", "-i", str(BYTES_PER_INODE), "-E", extended, str(file)]
    run_program(make, timeout_s=MAKE_S)
    # Kafka takes every folder in its log directory for a partition's.
    run_program(["debugfs", "-w", "-R", "rmdir lost+found", str(file)])
    device = run_program_as_root(["losetup", "--find", "--show", str(file)]).strip()
    volume = name_of_host(labels.name, host)
    options = {"type": "ext4", "device": device, "o": "noatime"}
    engine.members[HERE].create_volume(volume, options, labels.of("disk", host))
    return DiskMount(volume, device)


def attached_devices(testbed: str, block_devices: Path = BLOCK_DEVICES, *, host: str = "") -> dict[str, str]:
    """Return the loop devices of this testbed's files, or of one host's: device → file."""
    folder = str(disk_file(testbed, host)) if host else str(disk_file(testbed, "x").parent) + "/"
    found = {}
    for path in sorted(block_devices.glob("loop*/loop/backing_file")):
        try:
            file = path.read_text(encoding="utf-8").strip()
        except OSError:
            continue  # it was detached a moment ago
        if file.startswith(folder):
            found[f"/dev/{path.parts[-3]}"] = file
    return found


def remove_disks(engine: Engine, testbed: str, host: str = "") -> list[str]:
    """Remove every volume and detach every loop device of a testbed without containers; return their names.

    With `host`, remove only those of this host, whose container is removed.
    """
    removed = []
    for volume in engine.volumes(testbed):
        if host and volume != name_of_host(testbed, host):
            continue
        engine.remove_volume(volume)
        removed.append(f"volume {volume}")
    devices = attached_devices(testbed, host=host)
    for device in devices:
        if not CONTROLLERS.exists() and not no_disk_rate():
            # The device's number is used again: a slow disk must not stay slow for the next testbed.
            throttle_writeback(device, None)
        run_program_as_root(["losetup", "--detach", device])
        removed.append(device)
    if devices:
        # A device that is still mounted somewhere is detached when the mount ends.
        wait_for(
            lambda: attached_devices(testbed, host=host),
            lambda left: not left,
            timeout_s=10.0,
            interval_s=0.05,
            what=f"the loop devices of testbed {testbed} to be detached",
        )
    if host:
        disk_file(testbed, host).unlink(missing_ok=True)  # that of a whole testbed goes with its folder
    return removed
