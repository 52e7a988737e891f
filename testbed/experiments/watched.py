"""A reassignment watched from outside while it is carried out, by whom and however that may be."""

from dataclasses import astuple

from results.contract.batching import BatchingSeen
from results.contract.batching import Limits as SeenLimits
from results.contract.schema import Sample
from testbed.experiments.batch_watch import BatchWatch
from testbed.experiments.looks import DRIVER
from testbed.experiments.mover import Mover, Transferred
from testbed.experiments.scene import plan
from testbed.probes.recorder import Poller, now_us
from testbed.reassignment.batching.turn import min_insync
from testbed.reassignment.plan import Plan
from testbed.wait import WaitTimeout, wait_for

STEP_POLL_S = 0.3
"""How often the controller's list is asked for; a step that only drops replicas is over sooner."""
SETTLED_S = 10.0


class Watched(Mover):
    """The same move, and what the controller's list said of it."""

    _watch: BatchWatch | None = None
    _poller: Poller | None = None

    @property
    def wanted(self) -> Plan:
        """The plan of what is listed; the control is beside it."""
        return plan([group for group in self.scene.moving if group is not self.scene.control], self.ids)

    def transfer(self, timeout_s: float) -> Transferred:
        """See `Mover.transfer`."""
        moved = super().transfer(timeout_s)
        self.watch_no_more()
        if moved.done.ok:
            try:
                self.see_the_end()
            except WaitTimeout as error:
                self.recorder.event("note", "another end than the plan has", {"error": str(error)})
        return Transferred(moved.done, moved.in_force, moved.restored, self.seen())

    def begun(self) -> None:
        """See `Mover.begun`; from here on the list is polled."""
        self.watch_steps()
        super().begun()

    def watch_steps(self) -> None:
        """Begin to poll the controller's list."""
        limits, wanted = self.setup.limits, self.wanted
        asked = SeenLimits(limits.replicas, limits.partitions, limits.leaders)
        self._watch = BatchWatch(wanted, self.setup.mode, asked, min_insync(self.admin, wanted.topics()))
        self._poller = self.recorder.poll("steps", STEP_POLL_S, self._look)

    def watch_no_more(self) -> None:
        """End it."""
        if self._poller is not None:
            self._poller.stop()
            self._poller = None

    def see_the_end(self) -> None:
        """Look until the last step is seen to be the target: a broker's metadata may be behind the controller's.

        To be called when the polling has ended. Raises `WaitTimeout`.
        """
        wait_for(self._astray, lambda wrong: not wrong, SETTLED_S, STEP_POLL_S, "the last step")

    def seen(self) -> BatchingSeen | None:
        """What all looks came to; None when nobody looked."""
        return None if self._watch is None else self._watch.seen()

    def _astray(self) -> tuple[str, ...]:
        self.recorder.add(self._look())
        found = self.seen()
        return () if found is None else found.astray

    def _look(self) -> list[Sample]:
        """What is listed now; every change of a partition is an event."""
        if self._watch is None:
            return []
        topics, hosts = self.wanted.topics(), {broker: host for host, broker in self.ids.items()}
        asked, listed = now_us(), self.admin.reassignments(topics)
        samples = []
        for entry in self._watch.look(asked, listed, self.admin.partitions(topics)):
            seen = {name: getattr(entry, name) for name in ("replicas", "adding", "removing", "isr", "leader")}
            self.recorder.event("partition.seen", str(entry.tp), seen)
            if entry.leader in hosts:
                samples.append(Sample(asked, hosts[entry.leader], "partition.led", 1.0, *astuple(entry.tp)))
        told = {"move.listed": float(len(listed)), "move.leaders": float(self._watch.leaders)}
        return [*samples, *(Sample(asked, DRIVER, metric, value) for metric, value in told.items())]
