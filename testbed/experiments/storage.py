"""The storage of an experiment's topics: the brokers' disks, tiered storage, or AutoMQ's streams.

`disk` and `tiered` are topic settings on the same brokers. AutoMQ is different software.
"""

from collections import Counter

from results.contract.relocation import LOCAL_MOST, STORAGES, Storage
from results.contract.texts import counted
from testbed.errors import UsageError
from testbed.experiments.experiment import Parameter, Settings, one_of
from testbed.experiments.layout import Layout
from testbed.probes.brokers import sampled_bps
from testbed.tiered.topics import LEAST_SEGMENT, tiered_topic
from testbed.topology.model import Topology
from testbed.units import format_size

SEGMENT_BYTES = LEAST_SEGMENT
"""Segment size of a tiered topic: the smallest that Kafka accepts. The active segment is never uploaded."""
SETTLED_S, SETTLED_TIMES = 120.0, 2
"""The seconds until the object store has the logs, and how many times their bytes ÷ NIC come on top. Nothing else uses
the NICs then. 3 GB over 200 Mbit/s came within less than 1.3 times, of which 42 s were those of the preload."""


def storage_parameter(*allowed: Storage) -> Parameter:
    """Return the parameter of the storage; its values are `allowed`, or all three without `allowed`."""
    words = "disk: on the brokers; tiered: in the object store but for the last segments (KIP-405)"
    more = "; automq: in its streams" if not allowed or "automq" in allowed else ""
    return Parameter("storage", "disk", one_of(*(allowed or STORAGES)), words + more)


def storage_of(settings: Settings) -> Storage:
    """Return the storage of the settings; `disk` without the parameter."""
    return next((each for each in STORAGES if each == settings.get("storage")), "disk")


def check_storage(storage: Storage, topology: Topology) -> None:
    """Raise `UsageError` when the topology does not have this storage."""
    brokers = len(topology.brokers)
    shared, stored = topology_with("automq", brokers), topology_with("tiered", brokers)
    if storage == "automq" and topology.automq is None:
        raise UsageError(
            f"storage=automq needs AutoMQ, and {topology.name} runs Apache Kafka here: leave --kafka out, which names "
            f"one, or use a topology with `software: {{automq: {{}}}}`, such as {shared}"
        )
    if storage != "automq" and topology.automq is not None:
        raise UsageError(
            f"storage={storage} needs Apache Kafka, and {topology.name} runs AutoMQ: set storage=automq, or use "
            f"another topology, such as {stored}"
        )
    if storage == "tiered" and topology.remote_storage is None:
        raise UsageError(
            f"storage=tiered needs brokers with remote storage, and {topology.name} has none: give it "
            f"`remote_storage: {{}}` and a host of role objectstore, or use the topology {stored}"
        )


def topology_with(storage: Storage, brokers: int) -> str:
    """Return the ready topology with this storage and 2 or 3 brokers: experiments that take a storage need so many."""
    name = "automq" if storage == "automq" else "s3"
    return f"{name}-three-brokers" if brokers > 2 else name


def topic_settings(storage: Storage, local_bytes: int = 0) -> dict[str, str]:
    """Return the topic settings. Each tiered partition keeps `local_bytes` on disk, besides the active segment."""
    if storage != "tiered":
        return {}
    return tiered_topic(segment_bytes=SEGMENT_BYTES, local_bytes=max(1, local_bytes))


def least_bytes(storage: Storage, partitions: int) -> int:
    """Return the bytes with which the active segments of these partitions are less than a tenth of the rest."""
    return round(partitions * SEGMENT_BYTES * (1 / LOCAL_MOST + 1)) if storage == "tiered" else 0


def mostly_remote(layout: Layout, storage: Storage) -> tuple[Layout, int]:
    """Return the layout and the bytes that stay on disk; a tiered layout grows until its old size is a tenth.

    A throttle then limits as many bytes as with `disk`.
    """
    if storage != "tiered":
        return layout, 0
    local = sum(group.bytes for group in layout.throttled if group.adding)
    return layout.sized(round(1.1 * local / LOCAL_MOST) + least_bytes(storage, layout.partitions)), local


def check_size(storage: Storage, size_bytes: float, partitions: int) -> None:
    """Raise `UsageError` when the active segments are more than a tenth of the logs."""
    least = least_bytes(storage, partitions)
    if size_bytes < least:
        raise UsageError(
            f"{counted(partitions, 'tiered partition', 'keeps')} a segment of {format_size(SEGMENT_BYTES)} each on "
            f"disk. That must be less than a tenth of the logs: they must have {format_size(least)} or more, and have "
            f"{format_size(int(size_bytes))}"
        )


def upload_s(layout: Layout, topology: Topology) -> float:
    """Return the seconds for which the busiest NIC, of a leader or of a store, carries the logs to the store."""
    sent = Counter[str]()
    for group in layout.throttled:
        sent[group.leader] += group.bytes
    seconds = [8 * size / sampled_bps(topology.host(leader))[0] for leader, size in sent.items()]
    seconds += [8 * sent.total() / sampled_bps(store)[1] for store in topology.objectstores]
    return max(seconds, default=0.0)


def replication_s(layout: Layout, topology: Topology) -> float:
    """Return the seconds for which the busiest NIC carries the logs to the followers in sync."""
    sent, received = Counter[str](), Counter[str]()
    for group in layout.groups:
        for follower in group.in_sync:
            sent[group.leader] += group.bytes
            received[follower] += group.bytes
    seconds = [8 * size / sampled_bps(topology.host(leader))[0] for leader, size in sent.items()]
    seconds += [8 * size / sampled_bps(topology.host(follower))[1] for follower, size in received.items()]
    return max(seconds, default=0.0)


def log_bytes_of(values_bytes: int, sample_values_bytes: int, sample_log_bytes: float | None) -> int:
    """Return the log size in bytes of these values, from a log of similar records; `values_bytes` without one."""
    if not sample_log_bytes or sample_values_bytes <= 0:
        return values_bytes
    return round(values_bytes * max(1.0, sample_log_bytes / sample_values_bytes))
