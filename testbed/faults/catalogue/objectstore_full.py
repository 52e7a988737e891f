"""A full disk of the object store."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.errors import UsageError
from testbed.faults.stores import StoreFault, available, left_when_full
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology


@dataclass(frozen=True)
class ObjectstoreFull(StoreFault):
    """A file fills the free space: the server refuses writes (507) and serves reads."""

    kind: ClassVar[str] = "objectstore-full"
    summary: ClassVar[str] = "the disk of the object store's server on a host is full"
    fills: ClassVar[bool] = True

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        super().check(topology)
        if topology.host(self.host).disk is None:
            raise UsageError(
                f"{self.host} has no disk of its own: to fill it would be to fill the machine's; "
                "in the topology give it one, such as disk: {size: 2GB}"
            )

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: the server checks its disk once a second, and fails in other ways before that."""
        free, size = available(testbed.objectstore.server(self.host))
        if free > 2 * left_when_full(size):
            return f"{free} of {size} bytes are free"
        if len(testbed.topology.objectstores) > 1:
            return None  # whether a server refuses an object depends on the servers that store it
        return None if testbed.objectstore.refusal() else "it still takes objects"


FAULT = ObjectstoreFull
