"""A move on storage that brokers share, with the steps of each partition's handover timed beside it."""

from results.contract.handover import HandoverSeen
from results.contract.live import LiveLoad
from results.contract.manifest import Records
from testbed.experiments.mover import Transferred, preloaded
from testbed.experiments.relocate import Relocator
from testbed.experiments.scene import plan
from testbed.handover.probe import Probe
from testbed.handover.run import HandoverWatch, moved
from testbed.probes.recorder import now_us
from testbed.reassignment.plan import moves
from testbed.workload.preload import audit


class HandedOver(Relocator):
    """A probe writes to and reads from every partition while it goes over; its records are audited like any other."""

    _probe: Probe | None = None
    _seen: HandoverSeen | None = None

    def __exit__(self, *error: object) -> None:
        if self._probe is not None:
            self._probe.stop()
        super().__exit__(*error)

    def ready(self) -> None:
        """See `Relocator.ready`: the probe is part of the load."""
        wanted = plan(self.scene.moving, self.ids)
        self._probe = Probe(self.testbed.bootstrap, list(wanted.targets), len(self.fills) + 1)
        self._probe.start()

    def transfer(self, timeout_s: float) -> Transferred:
        """See `Mover.transfer`."""
        wanted = plan(self.scene.moving, self.ids)
        asked = moves(wanted, self.admin.partitions(wanted.topics()))
        watch, asked_us = HandoverWatch(self.testbed), now_us()
        watch.start()
        found = super().transfer(timeout_s)
        self.alone("handed")  # the new brokers' first records are written and read in this time
        hosts = {broker: host for host, broker in self.ids.items()}
        if self._probe is not None:
            self._probe.stop()
        self._seen = watch.finish(moved(asked, hosts), asked_us, self._probe)
        return found

    def handover(self) -> HandoverSeen | None:
        """See `Relocator.handover`."""
        return self._seen

    def audit(self) -> tuple[Records, LiveLoad | None]:
        """See `Mover.audit`; the probe's records, too."""
        load, probed = self.load.result, () if self._probe is None else self._probe.written()
        found = audit(self.testbed.bootstrap, self.fills, (*(() if load is None else load.written), *probed))
        if found.complaints:
            self.recorder.event("note", "what the audit found", {"first": list(found.complaints)})
        return preloaded(found), None if load is None else load.live(found)
