"""Disks of their own: a sparse file with ext4 on a loop device, given to the engine as a labelled volume.

The file lies in the testbed's state folder. So a loop device is found by the file behind it, and what a crash left is
found as long as that folder is there, which `remove` deletes last.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError
from testbed.provision import state as states
from testbed.provision.containers import Engine
from testbed.provision.labels import Labels
from testbed.topology.links import Disk
from testbed.wait import wait_for

BLOCK_DEVICES = Path("/sys/block")
BYTES_PER_INODE = 65536
"""Kafka's files are few and large; a small table is written at once and not in the background, while a run measures."""


@dataclass(frozen=True, slots=True)
class DiskMount:
    """A disk that was made: the engine's name of the volume, the device, and its bandwidth (None: unbounded)."""

    volume: str
    device: str
    bandwidth_bytes_per_s: int | None


def image(testbed: str, host: str) -> Path:
    """The file that holds a host's disk."""
    return states.folder(testbed).resolve() / "disks" / f"{host}.img"


def make_disk(engine: Engine, labels: Labels, host: str, disk: Disk) -> DiskMount:
    """A fresh file system of `disk.size_bytes`, as a volume of the engine. Raises `TestbedError`."""
    file = image(labels.name, host)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file.open("wb") as stream:
        stream.truncate(disk.size_bytes)
    extended = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    _run(["mkfs.ext4", "-q", "-F", "-m", "0", "-i", str(BYTES_PER_INODE), "-E", extended, str(file)])
    # Kafka takes every folder among its logs for a partition's.
    _run(["debugfs", "-w", "-R", "rmdir lost+found", str(file)])
    device = _run(["losetup", "--find", "--show", str(file)]).strip()
    volume = f"testbed-{labels.name}-{host}"
    engine.create_volume(volume, {"type": "ext4", "device": device, "o": "noatime"}, labels.of("disk", host))
    return DiskMount(volume, device, disk.bandwidth_bytes_per_s)


def attached(testbed: str, block_devices: Path = BLOCK_DEVICES) -> dict[str, str]:
    """Loop devices with a file of this testbed behind them: device → file."""
    folder = str(image(testbed, "x").parent) + "/"
    found = {}
    for path in sorted(block_devices.glob("loop*/loop/backing_file")):
        try:
            file = path.read_text(encoding="utf-8").strip()
        except OSError:
            continue  # it was detached a moment ago
        if file.startswith(folder):
            found[f"/dev/{path.parts[-3]}"] = file
    return found


def remove_disks(engine: Engine, testbed: str) -> list[str]:
    """Remove every volume and detach every loop device of a testbed whose containers are gone; says which."""
    removed = []
    for volume in engine.volumes(testbed):
        engine.remove_volume(volume)
        removed.append(f"volume {volume}")
    devices = attached(testbed)
    for device in devices:
        _run(["losetup", "--detach", device])
        removed.append(device)
    if devices:
        # A device that is still mounted somewhere is detached only when that ends.
        wait_for(
            lambda: attached(testbed),
            lambda left: not left,
            timeout_s=10.0,
            interval_s=0.05,
            what=f"the loop devices of testbed {testbed} to be detached",
        )
    return removed


def _run(command: Sequence[str]) -> str:
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env={"PATH": path, "LC_ALL": "C"}
        )
    except FileNotFoundError as error:
        raise TestbedError(f"{command[0]} is not installed: a disk needs e2fsprogs and util-linux") from error
    if done.returncode != 0:
        raise TestbedError(f"`{' '.join(command)}` ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout
