"""The samples of in-sync replicas: how many there are, and which of before the move lag."""

from types import SimpleNamespace

from testbed.experiments.samplers import isr_samples
from testbed.kafka.types import TopicPartition


def test_a_replica_of_before_lags_when_it_is_assigned_and_not_in_sync():
    whole, late, gone = (TopicPartition("t", p) for p in range(3))
    states = {
        whole: SimpleNamespace(replicas=(1, 2, 3), isr=(1, 2)),  # 3 is added and not in sync yet
        late: SimpleNamespace(replicas=(1, 2, 3), isr=(1, 3)),
        gone: SimpleNamespace(replicas=(1, 3), isr=(1, 3)),  # 2 was removed by the move
    }
    admin = SimpleNamespace(partitions=lambda _topics: states)
    found = isr_samples(admin, ["t"], dict.fromkeys(states, (1, 2)))
    assert [(each.metric, each.partition, each.value) for each in found] == [
        ("isr.size", 0, 2.0),
        ("isr.size", 1, 2.0),
        ("isr.lagging", 1, 1.0),
        ("isr.size", 2, 2.0),
    ]
