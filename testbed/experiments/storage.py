"""Where an experiment's topics have their logs: on the brokers' disks, tiered, or in AutoMQ's streams.

`disk` and `tiered` are settings of topics, on the very same brokers. AutoMQ is other software.
"""

from collections.abc import Mapping, Sequence

from results.contract.relocation import LOCAL_MOST, STORAGES, Storage
from testbed.errors import UsageError
from testbed.experiments.experiment import Parameter, Value, one_of
from testbed.experiments.scene import Scene
from testbed.tiered.topics import LEAST_SEGMENT, tiered_topic
from testbed.topology.model import Topology
from testbed.units import format_size

SEGMENT_BYTES = LEAST_SEGMENT
"""Of a tiered topic: the smallest that Kafka takes. The segment that is written to is never sent to the store."""
SETTLED_S = 120.0


def storage_parameter(*allowed: Storage) -> Parameter:
    """Where logs lie; `allowed` or, without any, all three."""
    words = "disk: on the brokers; tiered: in the object store but for the last segments (KIP-405)"
    more = "; automq: in its streams" if not allowed or "automq" in allowed else ""
    return Parameter("storage", "disk", one_of(*(allowed or STORAGES)), words + more)


def storage_of(settings: Mapping[str, Value]) -> Storage:
    """The chosen one; of an experiment without the parameter, `disk`."""
    return next((each for each in STORAGES if each == settings.get("storage")), "disk")


def check_storage(storage: Storage, topology: Topology) -> None:
    """Raises `UsageError` when the topology cannot hold logs so."""
    if (storage == "automq") != (topology.automq is not None):
        runs = "AutoMQ" if topology.automq is not None else "Apache Kafka"
        raise UsageError(f"storage={storage} does not fit {topology.name}, which runs {runs}")
    if storage == "tiered" and topology.remote_storage is None:
        raise UsageError(
            f"storage=tiered needs brokers with remote storage, and {topology.name} has none: give it "
            "`remote_storage: {}` and a host of role objectstore, or use the topology s3"
        )


def topic_settings(storage: Storage, local_bytes: int = 0) -> dict[str, str]:
    """What a topic is made with; of each tiered partition `local_bytes` stay on disk, beside what is written to."""
    if storage != "tiered":
        return {}
    return tiered_topic(segment_bytes=SEGMENT_BYTES, local_bytes=max(1, local_bytes))


def least_bytes(storage: Storage, partitions: int) -> int:
    """How much so many partitions must hold for the segments that are written to, to be under a tenth of the rest."""
    return round(partitions * SEGMENT_BYTES * (1 / LOCAL_MOST + 1)) if storage == "tiered" else 0


def mostly_remote(scene: Scene, storage: Storage) -> tuple[Scene, int]:
    """The scene, and how much of it stays on disk: of a tiered one what it had, with as much more that it is a tenth.

    So a throttle has as much to hold back as on disk, where that is all there is.
    """
    if storage != "tiered":
        return scene, 0
    local = sum(group.bytes for group in scene.listed if group.adding)
    return scene.sized(round(1.1 * local / LOCAL_MOST) + least_bytes(storage, scene.partitions)), local


def check_size(storage: Storage, size_bytes: float, partitions: int) -> None:
    """Raises `UsageError` when a tenth of the logs would not hold the segments that are written to."""
    least = least_bytes(storage, partitions)
    if size_bytes < least:
        raise UsageError(
            f"{partitions} tiered partitions keep a segment of {format_size(SEGMENT_BYTES)} each on disk: for that to "
            f"be under a tenth they must hold {format_size(least)} or more, not {format_size(int(size_bytes))}"
        )


def log_bytes_of(values_bytes: int, sample_values_bytes: int, sample_log_bytes: float | None) -> int:
    """The log that so many bytes of values make, from a log of like records; without that, the values alone."""
    if not sample_log_bytes or sample_values_bytes <= 0:
        return values_bytes
    return round(values_bytes * max(1.0, sample_log_bytes / sample_values_bytes))


def hosts_of(topology: Topology) -> Sequence[str]:
    """The hosts of the object store."""
    return [host.name for host in topology.objectstores]
