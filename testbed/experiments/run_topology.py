"""The topology that a run of an experiment provisions for itself, with the heap that its replicas need."""

from results.contract.texts import plural
from testbed.errors import UsageError
from testbed.experiments.experiment import Experiment, Settings
from testbed.paths import free_bytes
from testbed.probes.machine import fingerprint
from testbed.software.engine import engine_folder
from testbed.software.source import parse_source
from testbed.topology.find import find
from testbed.topology.model import Topology
from testbed.units import format_size

MIB = 1 << 20
OWN_REPLICAS = 500
"""Replicas of a broker that the testbed's default heap of 512 MiB carries."""
HEAP_BYTES, REPLICA_BYTES = 512 * MIB, MIB // 2
"""Chosen after one measurement (docs/measurements/scale.md): a broker that receives 2,008 replicas collects without end
in 512 MiB, and spends 8 % of the time in collections in 1 GiB. Half a MiB for each replica above 500 is 1.25 GiB."""
STEP_BYTES = 128 * MIB
FEW_BYTES, MOST_OF_DISK = 12_000_000_000, 0.9
"""A run of so many bytes is made whatever is free: the largest scenario of a suite has 11 GB. The part of the free
space that a run may have: clients write while partitions move, and brokers log."""
MOST_OF_MEMORY = 0.75
"""The share of the machine's memory that the heaps of all brokers may have together."""


def heap_bytes(replicas: int) -> int | None:
    """Return the heap in bytes of a broker with so many replicas, in steps of 128 MiB; None: the default is enough."""
    if replicas <= OWN_REPLICAS:
        return None
    wanted = HEAP_BYTES + (replicas - OWN_REPLICAS) * REPLICA_BYTES
    return -(-wanted // STEP_BYTES) * STEP_BYTES


def with_heap(topology: Topology, replicas: int, memory_bytes: int) -> Topology:
    """Return the topology whose brokers have the heap for `replicas` each at most; a declared heap stays.

    Raise `UsageError` when the heaps on this machine need more than its memory, `memory_bytes`, allows. Other machines
    have memory of their own, of which nothing is known here. Heaps that are all declared are the user's decision.
    """
    needed = heap_bytes(replicas)
    if needed is None:
        return topology
    made = topology.with_heap(needed)
    here = [host for host in made.brokers if not made.exists and not made.remote_machine_of(host)]
    whole = sum(host.jvm.heap_bytes or 0 for host in here)
    if made != topology and whole > MOST_OF_MEMORY * memory_bytes:
        need = "needs" if len(here) == 1 else "need"
        raise UsageError(
            f"a broker has up to {replicas} replicas: {plural(len(here), 'broker')} {need} {format_size(whole, 3)} "
            f"of heap, and this machine has {format_size(memory_bytes, 3)} of memory: set fewer partitions, or declare "
            "kafka.jvm.heap in the topology"
        )
    return made


def short_of_heap(topology: Topology, replicas: int) -> str:
    """Return which brokers have a heap that is too small for `replicas` each at most, in words; empty for none."""
    needed = heap_bytes(replicas) or 0
    short = [host.name for host in topology.brokers if (host.jvm.heap_bytes or HEAP_BYTES) < needed]
    if not short:
        return ""
    return (
        f"a broker gets up to {replicas} replicas, which need {format_size(needed)} of heap, and {', '.join(short)} "
        f"{'has' if len(short) == 1 else 'have'} less: declare kafka.jvm.heap in the topology, or leave --on out"
    )


def check_space(topology: Topology, stored: int, free: int) -> None:
    """Raise `UsageError` when a run stores more bytes than this machine, which has `free`, may give it.

    Other machines have disks of their own, of which nothing is known here.
    """
    here = not topology.exists and not any(topology.remote_machine_of(host) for host in topology.hosts)
    if here and stored > MOST_OF_DISK * free:
        raise UsageError(
            f"brokers and object stores would have {format_size(stored, 3)} on their disks, and this machine's engine "
            f"has {format_size(free, 3)} free: lower preload, rate or size, or free space there"
        )


def require_space(experiment: Experiment, settings: Settings, topology: Topology) -> None:
    """Raise `UsageError` when a run on this topology would fill the disk of this machine's engine."""
    stored = experiment.stored(settings)
    if stored > FEW_BYTES:
        check_space(topology, stored, free_bytes(engine_folder()))


def run_topology(
    experiment: Experiment, settings: Settings, topology: str | None = None, kafka: str | None = None
) -> Topology:
    """Return the topology of a run: `topology`, or the experiment's own, with this `kafka` and the heap that it needs.

    Raise `UsageError`, or the topology's own error, when it, or the disk of this machine, cannot host the experiment.
    """
    found = find(topology or experiment.ready_topology(settings))
    if kafka:
        found = found.with_kafka_version(str(parse_source(kafka)))
    experiment.fits(found, settings)
    require_space(experiment, settings, found)
    return with_heap(found, experiment.replicas(settings), fingerprint()["memory_bytes"])
