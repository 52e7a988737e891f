"""An object store that answers 503, so that clients must retry later."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.stores import StoreFault
from testbed.provision.testbed import Testbed


@dataclass(frozen=True)
class Objectstore503(StoreFault):
    """The server has lost its drives. MinIO then answers 503 with SlowDownRead or SlowDownWrite."""

    kind: ClassVar[str] = "objectstore-503"
    summary: ClassVar[str] = "the object store answers every request for an object with 503 (its drives are away)"
    offline: ClassVar[bool] = True
    single: ClassVar[str] = "which answer with the others' drives"

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: requests an object that does not exist."""
        status = testbed.objectstore.ask()
        return None if status == 503 else f"it answers {status}"


FAULT = Objectstore503
