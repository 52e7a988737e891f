"""The heap that follows from an experiment's partitions."""

import pytest

from testbed.errors import UsageError
from testbed.experiments.broker_memory import MIB, heap_bytes, with_heap
from testbed.topology.find import find

GIB = 1024 * MIB


@pytest.mark.parametrize(
    ("partitions", "brokers", "heap"),
    [(100, 2, None), (500, 2, None), (501, 2, 640 * MIB), (2000, 2, 1280 * MIB), (10_000, 10, 2304 * MIB)],
)
def test_it_grows_with_the_replicas_of_a_broker(partitions, brokers, heap):
    assert heap_bytes(partitions, brokers) == heap


def test_brokers_get_it_and_a_declared_heap_stays():
    topology = find("two-brokers")
    assert with_heap(topology, {"partitions": 100}, 8 * GIB) == topology
    assert with_heap(topology, {}, 8 * GIB) == topology
    made = with_heap(topology, {"partitions": 2000}, 8 * GIB)
    assert [host.jvm.heap_bytes for host in made.brokers] == [1280 * MIB] * 2
    declared = topology.with_heap(3 * GIB)
    assert with_heap(declared, {"partitions": 2000}, 8 * GIB) == declared


def test_heaps_that_the_machine_does_not_carry_are_refused():
    with pytest.raises(UsageError, match="2 brokers need 2.68GB of heap, and this machine has 3.22GB"):
        with_heap(find("two-brokers"), {"partitions": 2000}, 3 * GIB)
