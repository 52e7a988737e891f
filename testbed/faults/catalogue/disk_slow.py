"""A slow disk under Kafka's data, as of a busy or worn drive."""

import time
from dataclasses import dataclass
from typing import ClassVar

from testbed.cgroups import no_disk_rate
from testbed.errors import TestbedError
from testbed.faults.disks import DiskFault, declared_rate, rate_in_force, refusal, wanted_rate
from testbed.faults.fault import parameter
from testbed.faults.parameters import refuse_no_slower
from testbed.provision.testbed import Testbed
from testbed.topology.links import disk_bandwidth_problem
from testbed.topology.model import Topology
from testbed.units import format_byte_rate, parse_byte_rate

_PROBE_BYTES = 1_000_000


def _rate(text: str) -> int:
    rate_bytes_per_s = parse_byte_rate(text)
    if problem := disk_bandwidth_problem(rate_bytes_per_s):
        raise ValueError(problem)
    return rate_bytes_per_s


@dataclass(frozen=True)
class DiskSlow(DiskFault):
    """A limit of the disk's reads and of its writes, also of writes through the page cache. The lowest rate counts."""

    kind: ClassVar[str] = "disk-slow"
    summary: ClassVar[str] = "the disk with Kafka's data reads and writes at a lower rate"
    keeps_quota: ClassVar[bool] = True

    rate: int = parameter("bytes per second, such as 5MB/s", _rate, format_byte_rate)

    @property
    def rate_bytes_per_s(self) -> int:
        """See `DiskFault.rate_bytes_per_s`."""
        return self.rate

    @classmethod
    def lacking(cls) -> str:
        """See `Fault.lacking`."""
        return super().lacking() or no_disk_rate()

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        super().check(topology)
        declared = declared_rate(topology, self.host)
        refuse_no_slower(self.rate, declared, f"the disk of {self.host}", format_byte_rate)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: reads the limit from the kernel, and writes a file, which must take its time."""
        if wrong := self._not_limited(testbed):
            return wrong
        begun = time.monotonic()
        if why := refusal(testbed, self.host, _PROBE_BYTES):
            return None if "No space" in why or "not permitted" in why else why
        took_s = time.monotonic() - begun
        # The kernel lets a tenth of a second pass at once.
        return None if took_s >= 0.5 * _PROBE_BYTES / self.rate - 0.1 else f"1 MB was on the disk after {took_s:.2f} s"

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`."""
        super().heal(testbed)
        if wrong := self._not_limited(testbed):
            raise TestbedError(wrong)

    def _not_limited(self, testbed: Testbed) -> str:
        """Return the kernel's limit when it is not the required one; empty when it is."""
        found = rate_in_force(testbed, self.host)
        correct = found == wanted_rate(testbed, self.host)
        return "" if correct else f"the disk of {self.host} is limited to {found or 'no number of'} bytes/s"


FAULT = DiskSlow
