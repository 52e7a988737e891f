"""The samples of a move that the driver takes: in-sync replicas and the lag."""

from collections.abc import Collection, Mapping, Sequence

from results.contract.schema import Sample
from results.criteria.quantities import DRIVER
from testbed.experiments.layout import Layout
from testbed.kafka.admin import Admin
from testbed.kafka.types import TopicPartition
from testbed.probes.recorder import Recorder, now_us

SAMPLE_S = 1.0
QUOTA_POLL_S = 0.3
ISR_POLL_S = 0.5


def isr_samples(admin: Admin, topics: Sequence[str], placed: Mapping[TopicPartition, Collection[int]]) -> list[Sample]:
    """Return the number of in-sync replicas of each partition, and how many replicas of before the move lag.

    `placed` are those, by node id. They lag when they are still assigned and not in sync; 0 has no sample. An ISR with
    an added replica in place of one that lags is as large as before.
    """
    asked, states = now_us(), admin.partitions(topics)
    found = []
    for tp, state in states.items():
        found.append(Sample(asked, DRIVER, "isr.size", float(len(state.isr)), tp.topic, tp.partition))
        if lagging := len({*placed.get(tp, ())} & {*state.replicas} - {*state.isr}):
            found.append(Sample(asked, DRIVER, "isr.lagging", float(lagging), tp.topic, tp.partition))
    return found


def lag_samples(recorder: Recorder, layout: Layout) -> list[Sample]:
    """Return Σ (bytes of the leader's log − the adding replica's) of the throttled partitions, from the latest samples.

    Bytes of files cost a broker nothing; end offsets are an MBean for each partition, 2,000 of which fill its heap.
    """
    total = 0.0
    for group in layout.throttled:
        for tp in group.tps() if group.adding else ():
            where = tp.topic, tp.partition
            sizes = [recorder.latest(host, "log.bytes", *where) for host in group.current]
            leader = max((size for size in sizes if size is not None), default=0.0)
            for host in group.adding:
                # After the move the added replica is the leader: its lag is 0.
                total += max(0.0, leader - (recorder.latest(host, "log.bytes", *where) or 0.0))
    return [Sample(now_us(), DRIVER, "move.lag", total)]
