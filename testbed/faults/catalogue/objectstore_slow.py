"""A slow object store: each request may have to wait, as with a busy store."""

from dataclasses import dataclass
from typing import ClassVar

from testbed.faults.fault import parameter
from testbed.faults.parameters import refuse_pauses, whole_ms
from testbed.faults.stores import StoreFault, states
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology

MAX_US = 10_000_000


@dataclass(frozen=True)
class ObjectstoreSlow(StoreFault):
    """The server stops (SIGSTOP) for `pause` out of every `every`. Of several faults the longest pause counts."""

    kind: ClassVar[str] = "objectstore-slow"
    summary: ClassVar[str] = "the object store's server on a host stands still again and again (SIGSTOP, SIGCONT)"

    pause: int = parameter("how long it stands still", whole_ms, lambda us: f"{us // 1000}ms", default=400_000)
    every: int = parameter("how often", whole_ms, lambda us: f"{us // 1000}ms", default=500_000)

    @property
    def pulse_us(self) -> tuple[int, int]:
        """See `ServerFault.pulse_us`."""
        return self.pause, self.every

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        super().check(topology)
        refuse_pauses(self.pause, self.every, MAX_US)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: observes the process both stopped and running."""
        seen = states(testbed.objectstore.server(self.host), 2 * self.every)
        stopped = [state in "Tt" for state in seen]
        return None if any(stopped) and not all(stopped) else f"its states were {seen or 'none'}"


FAULT = ObjectstoreSlow
