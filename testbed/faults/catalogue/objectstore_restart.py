"""The object store's server stopped and started again."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from testbed.faults.fault import remembered_field
from testbed.faults.processes import look, start
from testbed.faults.stores import StoreFault, require_running
from testbed.provision.testbed import Testbed


@dataclass(frozen=True)
class ObjectstoreRestart(StoreFault):
    """SIGTERM and an immediate start; in effect when the new process is ready."""

    kind: ClassVar[str] = "objectstore-restart"
    summary: ClassVar[str] = "the object store's server on a host is shut down and started again"
    momentary: ClassVar[bool] = True
    deadline_s: ClassVar[float] = 60.0
    hinders: ClassVar[bool] = False

    before: int | None = remembered_field()

    def prepare(self, testbed: Testbed) -> Self:
        """See `Fault.prepare`: remembers the present process."""
        return replace(self, before=require_running(testbed, self.host).pid)

    def apply(self, testbed: Testbed) -> None:
        """See `Fault.apply`."""
        server = testbed.objectstore.server(self.host)
        server.stop()
        start(server)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`."""
        seen = look(testbed.objectstore.server(self.host))
        if seen is None:
            return "MinIO was not started again"
        if seen.pid == self.before:
            return f"{seen}, as before"
        return testbed.objectstore.silence(self.host) or None


FAULT = ObjectstoreRestart
