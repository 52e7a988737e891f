"""A full disk under Kafka's data."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.disks import DiskFault, refusal
from testbed.faults.fault import parameter
from testbed.faults.parameters import name
from testbed.provision.testbed import Testbed


@dataclass(frozen=True)
class DiskFull(DiskFault):
    """A file fills the file system: Kafka's next write fails, and Kafka shuts down."""

    kind: ClassVar[str] = "disk-full"
    summary: ClassVar[str] = "a file fills the disk with Kafka's data: Kafka's next write fails"
    deadline_s: ClassVar[float] = 30.0
    fills: ClassVar[bool] = True

    host: str = parameter("the host", name)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: writes a file, which must fail."""
        why = refusal(testbed, self.host)
        return None if "No space left" in why else why or f"the disk of {self.host} still takes a file"


FAULT = DiskFull
