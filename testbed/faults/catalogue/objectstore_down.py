"""The object store's server killed."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.processes import Hold, look
from testbed.faults.stores import StoreFault
from testbed.provision.testbed import Testbed


@dataclass(frozen=True)
class ObjectstoreDown(StoreFault):
    """SIGKILL; stays down until healed."""

    kind: ClassVar[str] = "objectstore-down"
    summary: ClassVar[str] = "the object store's server on a host is killed (SIGKILL) and stays down"
    holds: ClassVar[Hold] = Hold.DOWN

    def apply(self, testbed: Testbed) -> None:
        """See `Fault.apply`."""
        testbed.objectstore.server(self.host).signal("KILL")
        super().apply(testbed)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`."""
        seen = look(testbed.objectstore.server(self.host))
        return str(seen) if seen else None


FAULT = ObjectstoreDown
