"""A full disk under Kafka's data."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.disks import DiskFault


@dataclass(frozen=True)
class DiskFull(DiskFault):
    """A file fills the file system: Kafka's next write fails, and Kafka shuts down."""

    kind: ClassVar[str] = "disk-full"
    summary: ClassVar[str] = "a file fills the disk with Kafka's data: Kafka's next write fails"
    fills: ClassVar[bool] = True
    refused_with: ClassVar[str] = "No space left"


FAULT = DiskFull
