"""An object store that answers 503, so that clients must retry later."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.errors import UsageError
from testbed.faults.fault import parameter
from testbed.faults.parameters import name
from testbed.faults.stores import StoreFault
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology


@dataclass(frozen=True)
class Objectstore503(StoreFault):
    """The server has lost its drives. MinIO then answers 503 with SlowDownRead or SlowDownWrite."""

    kind: ClassVar[str] = "objectstore-503"
    summary: ClassVar[str] = "the object store answers every request for an object with 503 (its drives are away)"
    offline: ClassVar[bool] = True

    host: str = parameter("the host", name)

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        super().check(topology)
        servers = len(topology.objectstores)
        if servers > 1:
            raise UsageError(
                f"{self.host} is one of {servers} servers, which answer with the others' drives; allowed where there "
                "is one server"
            )

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: requests an object that does not exist."""
        status = testbed.objectstore.ask()
        return None if status == 503 else f"it answers {status}"


FAULT = Objectstore503
