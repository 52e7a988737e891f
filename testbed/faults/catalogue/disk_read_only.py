"""A disk under Kafka's data that refuses every write, as a file system that the kernel set to read-only."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.disks import DiskFault, refusal
from testbed.faults.fault import parameter
from testbed.faults.parameters import name
from testbed.provision.testbed import Testbed


@dataclass(frozen=True)
class DiskReadOnly(DiskFault):
    """Every file and folder is immutable: Kafka's next write fails ("Operation not permitted"); reads succeed."""

    kind: ClassVar[str] = "disk-read-only"
    summary: ClassVar[str] = "the disk with Kafka's data refuses every write, and serves reads"
    deadline_s: ClassVar[float] = 30.0
    read_only: ClassVar[bool] = True

    host: str = parameter("the host", name)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: writes a file, which must fail."""
        why = refusal(testbed, self.host)
        return None if "not permitted" in why else why or f"the disk of {self.host} still takes a file"


FAULT = DiskReadOnly
