"""A disk under Kafka's data that refuses every write, as a file system that the kernel set to read-only."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.disks import DiskFault


@dataclass(frozen=True)
class DiskReadOnly(DiskFault):
    """Every file and folder is immutable: Kafka's next write fails ("Operation not permitted"); reads succeed."""

    kind: ClassVar[str] = "disk-read-only"
    summary: ClassVar[str] = "the disk with Kafka's data refuses every write, and serves reads"
    read_only: ClassVar[bool] = True
    refused_with: ClassVar[str] = "not permitted"


FAULT = DiskReadOnly
