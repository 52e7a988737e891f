"""What is looked at regularly while data moves, beside what the hosts tell of themselves."""

from collections.abc import Sequence

from results.contract.schema import Sample
from testbed.experiments.scene import Scene
from testbed.kafka.types import AdminApi
from testbed.probes.recorder import Recorder, now_us

DRIVER = "driver"


def isr_samples(admin: AdminApi, topics: Sequence[str]) -> list[Sample]:
    """How many replicas of each partition are in sync."""
    asked, states = now_us(), admin.partitions(topics)
    return [
        Sample(asked, DRIVER, "isr.size", float(len(state.isr)), tp.topic, tp.partition) for tp, state in states.items()
    ]


def lag_samples(recorder: Recorder, scene: Scene) -> list[Sample]:
    """Σ (leader's log end offset − adding replica's) over the listed partitions, in records, as sampled last."""
    total = 0.0
    for group in scene.listed:
        for tp in group.tps() if group.adding else ():
            where = tp.topic, tp.partition
            ends = [recorder.latest(host, "log.end_offset", *where) for host in group.current]
            leader = max((end for end in ends if end is not None), default=0.0)
            for host in group.adding:
                # Once the old replica is gone the adding one is the leader, and lags behind nobody.
                total += max(0.0, leader - (recorder.latest(host, "log.end_offset", *where) or 0.0))
    return [Sample(now_us(), DRIVER, "move.lag", total)]
