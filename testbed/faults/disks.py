"""The disks of brokers under faults: the state that topology and active faults require, and the changes to reach it."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.cgroups import ContainerCgroup
from testbed.errors import TestbedError, UsageError
from testbed.faults import processes
from testbed.faults.fault import HostFault
from testbed.faults.journal import active_on
from testbed.faults.parameters import kafka_host
from testbed.kafka.node import DATA_DIR
from testbed.network.namespaces import run_program_as_root
from testbed.provision.machine import attached_devices, disk_file, no_disk
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology

FILLER = f"{DATA_DIR}/.filler"
"""A file, not a folder: Kafka takes every folder in its log directory for a partition."""
PROBE = f"{DATA_DIR}/.probe"
PROBE_BYTES = 4 * 2**20
_ROUGH_BYTES = 2**20


@dataclass(frozen=True)
class DiskFault(HostFault):
    """A fault of the file system with Kafka's data on one host."""

    deadline_s: ClassVar[float] = 30.0
    hinders: ClassVar[bool] = True
    """Kafka shuts down when it cannot write to its only log directory."""
    fills: ClassVar[bool] = False
    read_only: ClassVar[bool] = False
    refused_with: ClassVar[str] = ""
    """The kernel's words when it refuses a write; empty when it does not."""

    @property
    def rate_bytes_per_s(self) -> int | None:
        """Return the highest rate of the disk under this fault; None for an unchanged rate."""
        return None

    @classmethod
    def lacking(cls) -> str:
        """See `Fault.lacking`."""
        return no_disk()

    @classmethod
    def absent_from(cls, topology: Topology) -> str:
        """See `Fault.absent_from`."""
        if any(host.disk is not None and host.node_id is not None for host in topology.hosts):
            return ""
        return f"no broker of {topology.name} has a disk of its own, such as disk: {{size: 2GB}}"

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        kafka_host(topology, self.host)
        if topology.host(self.host).disk is None:
            raise UsageError(
                f"{self.host} has no disk of its own: {self.kind} would be a fault of the machine's disk; "
                "in the topology give it one, such as disk: {size: 2GB}"
            )

    def settle(self, testbed: Testbed) -> None:
        """See `Fault.settle`."""
        settle(testbed, self.host)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: writes a file, which must fail."""
        why = refusal(testbed, self.host)
        # Of several faults the kernel names one.
        said = [each.refused_with for each in active_on(testbed, self.host, DiskFault) if each.refused_with]
        return None if any(words in why for words in said) else why or f"the disk of {self.host} still takes a file"

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`: also starts Kafka, which shuts down without a disk to write to."""
        super().heal(testbed)
        if not _any(testbed, self.host, "fills") and not _any(testbed, self.host, "read_only"):
            processes.settle(testbed, self.host)


def declared_rate(topology: Topology, host: str) -> int | None:
    """Return the rate of a host's disk in its topology, in bytes/s; None without one."""
    disk = topology.host(host).disk
    return None if disk is None else disk.bandwidth_bytes_per_s


def wanted_rate(testbed: Testbed, host: str) -> int | None:
    """Return the lowest rate of a host's disk from its topology and active faults, in bytes/s; None without one."""
    faults = active_on(testbed, host, DiskFault)
    rates = [declared_rate(testbed.topology, host), *(fault.rate_bytes_per_s for fault in faults)]
    return min((rate for rate in rates if rate is not None), default=None)


def rate_in_force(testbed: Testbed, host: str) -> int | None:
    """Return the kernel's limit for writes to a host's disk, in bytes/s; None without one."""
    return ContainerCgroup.of(testbed.pids()[1][host]).disk_rate(_device(testbed, host))


def settle(testbed: Testbed, host: str) -> None:
    """Bring a host's disk into the state that topology and active faults require. Raise `TestbedError`."""
    if testbed.topology.host(host).disk is None:
        return
    read_only, fills = _any(testbed, host, "read_only"), _any(testbed, host, "fills")
    if not read_only or _has_filler(testbed, host) is not fills:
        # An immutable file cannot be removed, and an immutable folder gets no file.
        _set_read_only(testbed, host, wanted=False)
        _settle_filler(testbed, host, wanted=fills)
    if read_only:
        _set_read_only(testbed, host, wanted=True)
    rate = wanted_rate(testbed, host)
    if rate_in_force(testbed, host) != rate:
        ContainerCgroup.of(testbed.pids()[1][host]).limit_disk(_device(testbed, host), rate)


def refusal(testbed: Testbed, host: str, size_bytes: int = PROBE_BYTES) -> str:
    """Write a file to a host's disk (fsync) and remove it. Return why the kernel refuses it; empty on success."""
    write = f"dd if=/dev/zero of={PROBE} bs={size_bytes} count=1 conv=fsync 2>&1; s=$?; rm -f {PROBE}; exit $s"
    done = testbed.hosts[host].run(write, check=False)
    said = done.stdout.strip() or f"dd ended with status {done.exit_status}"
    return "" if done.exit_status == 0 else said.splitlines()[0]


def _any(testbed: Testbed, host: str, state: str) -> bool:
    return any(getattr(fault, state) for fault in active_on(testbed, host, DiskFault))


def _device(testbed: Testbed, host: str) -> str:
    file = str(disk_file(testbed.name, host))
    for device, found in attached_devices(testbed.name).items():
        if found == file:
            return device
    raise TestbedError(
        f"{host}: no loop device has {file}; `testbed down {testbed.name}` and `testbed up` make it again"
    )


def _set_read_only(testbed: Testbed, host: str, *, wanted: bool) -> None:
    """Set or clear the immutable flag of all files: unlike a read-only mount, it is possible while files are open."""
    folder = f"/proc/{testbed.pids()[1][host]}/root{DATA_DIR}"
    run_program_as_root(["chattr", "-R", "-f", "+i" if wanted else "-i", folder])


def _has_filler(testbed: Testbed, host: str) -> bool:
    return testbed.hosts[host].run(["test", "-e", FILLER], check=False).exit_status == 0


def _settle_filler(testbed: Testbed, host: str, *, wanted: bool) -> None:
    run = testbed.hosts[host].run
    if not wanted:
        run(["rm", "-f", FILLER, PROBE])
        return
    # All but the last MiB in one piece, then block by block until the kernel refuses one.
    free = int(run(["df", "--output=avail", "-B1", DATA_DIR]).stdout.split()[-1])
    if free > _ROUGH_BYTES:
        there = run(f"stat -c %s {FILLER} 2>/dev/null || echo 0").stdout.strip()
        run(["fallocate", "-o", there, "-l", str(free - _ROUGH_BYTES), FILLER])
    run(f"dd if=/dev/zero of={FILLER} oflag=append conv=notrunc bs=4096 2>&1 | grep -q 'No space left'")
