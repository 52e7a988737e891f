"""A failover of the metadata quorum: it loses its leader and elects another."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from results.contract.texts import plural
from testbed.errors import TestbedError, UsageError
from testbed.faults.fault import remembered_field
from testbed.faults.processes import ProcessFault, look
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology
from testbed.wait import wait_for

ELECTION_S = 30.0
_LOOK_S = 0.1


@dataclass(frozen=True)
class ControllerFailover(ProcessFault):
    """The testbed kills the node of the active controller, and starts it again once another controller is active."""

    kind: ClassVar[str] = "controller-failover"
    summary: ClassVar[str] = "the active controller's node is killed; started again once another is active"
    momentary: ClassVar[bool] = True
    hinders: ClassVar[bool] = False

    host: str = remembered_field("")

    @classmethod
    def absent_from(cls, topology: Topology) -> str:
        """See `Fault.absent_from`."""
        voters = [host.name for host in topology.controllers]
        if len(voters) >= 3:
            return ""
        return (
            f"{topology.name} has {plural(len(voters), 'controller')}, {', '.join(voters)}: "
            "without one of them there is no majority to elect another; it takes 3, as in six-brokers"
        )

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        if why := self.absent_from(topology):
            raise UsageError(why)

    def prepare(self, testbed: Testbed) -> Self:
        """See `Fault.prepare`: remembers which node leads the quorum now."""
        leader = active_controller(testbed)
        voters = testbed.topology.controllers
        running = [h.name for h in voters if (seen := look(testbed.node(h.name))) and not seen.paused]
        if leader is None or leader not in running:
            raise TestbedError(f"{testbed.name} has no active controller now; add the fault again when there is one")
        majority = len(voters) // 2 + 1
        if len(running) - 1 < majority:
            raise TestbedError(
                f"only {', '.join(running)} of {len(voters)} controllers run: without {leader} there is no majority "
                f"({majority}) to elect another"
            )
        return replace(self, host=leader)

    def apply(self, testbed: Testbed) -> None:
        """See `Fault.apply`."""
        testbed.node(self.host).signal("KILL")
        # Started earlier, the node could win the election itself.
        wait_for(
            lambda: active_controller(testbed),
            lambda leader: leader not in (None, self.host),
            timeout_s=ELECTION_S,
            interval_s=_LOOK_S,
            what=f"another controller than {self.host} to become active",
        )
        self.settle(testbed)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`."""
        leader = active_controller(testbed)
        if leader is None:
            return "no controller is active"
        return f"{leader} is the active controller, as before" if leader == self.host else None


def active_controller(testbed: Testbed) -> str | None:
    """Return the host that leads the metadata quorum; None without a leader, or if no broker answers."""
    try:
        with testbed.admin(timeout_s=2.0) as admin:
            leader = admin.cluster().controller_id
    except TestbedError:
        return None  # during an election no broker answers
    return next((host.name for host in testbed.topology.controllers if host.node_id == leader), None)


FAULT = ControllerFailover
