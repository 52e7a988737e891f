"""The heap that an experiment's brokers need, from its partitions. Pure."""

from collections.abc import Mapping

from testbed.errors import UsageError
from testbed.experiments.experiment import Value
from testbed.topology.model import Topology
from testbed.units import format_size

MIB = 1 << 20
OWN_REPLICAS = 500
"""Replicas of a broker that the testbed's default heap of 512 MiB carries."""
HEAP_BYTES, REPLICA_BYTES = 512 * MIB, MIB // 2
"""Chosen after one measurement (docs/measurements/scale.md): a broker that receives 2,008 replicas collects without end
in 512 MiB, and spends 8 % of the time in collections in 1 GiB. Half a MiB for each replica above 500 is 1.25 GiB."""
STEP_BYTES = 128 * MIB
MOST_OF_MEMORY = 0.75
"""The share of the machine's memory that the heaps of all brokers may have together."""


def heap_bytes(partitions: int, brokers: int) -> int | None:
    """Return the heap of each broker in bytes, in steps of 128 MiB; None: the testbed's default is enough.

    A broker gets at most all partitions; of many brokers at most four times the mean, as replicas move.
    """
    replicas = min(partitions, -(-4 * partitions // brokers))
    if replicas <= OWN_REPLICAS:
        return None
    wanted = HEAP_BYTES + (replicas - OWN_REPLICAS) * REPLICA_BYTES
    return -(-wanted // STEP_BYTES) * STEP_BYTES


def with_heap(topology: Topology, settings: Mapping[str, Value], memory_bytes: int) -> Topology:
    """Return the topology with the heap that its brokers need for these settings; a declared heap stays.

    Raise `UsageError` when the heaps need more than the machine's memory, `memory_bytes`, allows.
    """
    partitions = settings.get("partitions")
    brokers = len(topology.brokers)
    needed = heap_bytes(partitions, brokers) if isinstance(partitions, int) and brokers else None
    if needed is None:
        return topology
    made = topology.with_heap(needed)
    whole = sum(host.jvm.heap_bytes or 0 for host in made.brokers)
    if whole > MOST_OF_MEMORY * memory_bytes:
        raise UsageError(
            f"partitions={partitions}: {brokers} brokers need {format_size(whole, 3)} of heap, and this machine has "
            f"{format_size(memory_bytes, 3)} of memory: fewer partitions, or declare kafka.jvm.heap in the topology"
        )
    return made
