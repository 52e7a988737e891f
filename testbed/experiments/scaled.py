"""Scaling out and in, as movers: the load that rises before brokers are added, the broker that is taken away."""

from collections.abc import Sequence
from dataclasses import replace

from testbed.experiments.experiment import Context
from testbed.experiments.load import Load, load_specs
from testbed.experiments.mover import MoveSetup
from testbed.experiments.relocate import Relocator
from testbed.experiments.scene import Scene
from testbed.faults import Faults
from testbed.faults.catalogue.broker_term import BrokerTerm
from testbed.kafka.admin import Admin
from testbed.probes.logwatch import Allowance, during
from testbed.probes.recorder import Recorder
from testbed.workload.outcome import WorkloadResult
from testbed.workload.spec import ProducerSpec
from testbed.workload.workload import Workload

BACK_S = 20.0
"""How long the load runs after the move, for its latencies to be seen to be as before."""
QUIET_S = 5.0
"""How long the load runs before it rises."""


class RisingLoad(Load):
    """A load that begins with half of what is declared, and rises to all of it, once."""

    def __init__(self, bootstrap: Sequence[str], scene: Scene, token: str, seed: int, recorder: Recorder) -> None:
        halves = (replace(group, inbound_bytes_per_s=group.inbound_bytes_per_s / 2) for group in scene.listed)
        half = replace(scene, listed=tuple(halves))
        super().__init__(bootstrap, half, token, seed, recorder)
        specs = load_specs(half, token)
        more = [replace(spec, name=f"more-{spec.name}") for spec in specs if isinstance(spec, ProducerSpec)]
        first = len(specs) + 1
        adding = recorder.add, recorder.event
        self._more = Workload(bootstrap, more, seed + first, *adding, first_producer=first) if more else None
        self._rest: WorkloadResult | None = None

    def rise(self) -> None:
        """Write twice as much from now on."""
        if self._more is not None:
            self._more.start()

    @property
    def result(self) -> WorkloadResult | None:
        """See `Load.result`: both halves."""
        first = super().result
        if first is None or self._rest is None:
            return first
        return WorkloadResult((*first.processes, *self._rest.processes))

    def __exit__(self, *error: object) -> None:
        try:
            super().__exit__(*error)
        finally:
            if self._more is not None:
                self._rest = self._more.stop()


class ScaledOut(Relocator):
    """Brokers that are up and empty take their share, when more is written than before."""

    balanced = True
    after_s = BACK_S

    def __init__(self, context: Context, setup: MoveSetup, admin: Admin) -> None:
        super().__init__(context, setup, admin)
        seed = int.from_bytes(context.run_id.encode()[-4:]) + len(self.fills)
        self.rising = RisingLoad(self.testbed.bootstrap, self.scene, context.run_id[-6:], seed, self.recorder)
        self.load = self.rising

    def ready(self) -> None:
        """See `Relocator.ready`: the load rises."""
        self.alone("quiet", QUIET_S)
        self.rising.rise()
        self.recorder.event("load.risen", "load")


class ScaledIn(Relocator):
    """A broker is drained, and then stopped: nobody misses it."""

    balanced = True
    after_s = BACK_S
    _stopped: int | None = None

    def __exit__(self, *error: object) -> None:
        if self._stopped is not None:
            Faults(self.testbed).clear(self._stopped)
            self._stopped = None
        super().__exit__(*error)

    def allowances(self) -> list[Allowance]:
        """See `Mover.allowances`."""
        return [*super().allowances(), *during([BrokerTerm.kind])]

    def moved(self) -> None:
        """See `Relocator.moved`: stop the broker that has nothing any more."""
        host = leaving(self.scene)
        self.context.progress(f"stopping {host}, which is drained")
        self.recorder.event("broker.removed", "drained", host=host)
        self._stopped = Faults(self.testbed).add(BrokerTerm(host=host))


def leaving(scene: Scene) -> str:
    """The host that all partitions leave."""
    (host,) = {group.leader for group in scene.listed if group.moves}
    return host
