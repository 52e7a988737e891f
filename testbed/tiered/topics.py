"""Tiered topics: their settings, and the share of a topic that is still on the brokers."""

from collections.abc import Mapping
from dataclasses import dataclass

from testbed.errors import UsageError
from testbed.kafka.admin import Admin
from testbed.tiered.remote_log import RemoteLog
from testbed.units import format_size
from testbed.wait import wait_for

LEAST_SEGMENT, LARGEST_SEGMENT = 1 << 20, 1 << 30
LOCAL_SHARE = 0.10
"""A tiered topic is moved only when less than this share of it is on the brokers."""


def tiered_topic(*, segment_bytes: int = 1 << 20, local_bytes: int = 1) -> dict[str, str]:
    """Return the configuration of a tiered topic.

    A broker uploads a full segment. It deletes the local copy once more than `local_bytes` of the partition stay
    without it; the active segment always stays. Smaller segments leave earlier; 1 MiB is Kafka's lower limit.
    Raise `UsageError` when Kafka would refuse a value.
    """
    if not LEAST_SEGMENT <= segment_bytes <= LARGEST_SEGMENT:
        raise UsageError(
            f"segments of {format_size(segment_bytes)}: must be {format_size(LEAST_SEGMENT)} to "
            f"{format_size(LARGEST_SEGMENT)} (Kafka's limit, and a broker's memory)"
        )
    if local_bytes < 1:
        raise UsageError(f"local_bytes {local_bytes}: must be above 0; 1 leaves only the active segment")
    return {
        "remote.storage.enable": "true",
        "segment.bytes": str(segment_bytes),
        "local.retention.bytes": str(local_bytes),
        # A test's data does not expire.
        "retention.ms": "-1",
        "retention.bytes": "-1",
        # Kafka deletes a segment's file at once, so that the disk has only what the log has.
        "file.delete.delay.ms": "0",
    }


def largest_local(segment_bytes: int, local_bytes: int) -> int:
    """Return the most bytes of one partition on a broker once all its full segments are uploaded.

    Kafka deletes the oldest segments first, and keeps a segment without which fewer than `local_bytes` would be left.
    """
    return local_bytes + segment_bytes


@dataclass(frozen=True, slots=True)
class TopicBytes:
    """A topic's bytes on the brokers and in the store.

    `replicas` has the local log of each (partition, broker); `remote` each partition's bytes in the store.
    """

    replicas: Mapping[tuple[int, int], int]
    remote: Mapping[int, int]

    @property
    def share(self) -> float:
        """Return the largest share of a partition's bytes that any replica has on its broker.

        The bytes in the store count as all bytes. So the share is too large by the bytes that are not uploaded yet.
        """
        return max((self._share(*replica) for replica in self.replicas), default=float("inf"))

    def __str__(self) -> str:
        if not self.replicas:
            return "no broker has a replica of it"
        partition, broker = max(self.replicas, key=lambda replica: self._share(*replica))
        return (
            f"partition {partition} has {self.replicas[partition, broker]:,} bytes on broker {broker} and "
            f"{self.remote.get(partition, 0):,} in the store ({len(self.replicas)} replicas, "
            f"{sum(self.replicas.values()):,} bytes on brokers)"
        )

    def _share(self, partition: int, broker: int) -> float:
        return self.replicas[partition, broker] / max(1, self.remote.get(partition, 0))


def topic_bytes(admin: Admin, remote: RemoteLog, topic: str) -> TopicBytes:
    """Return the topic's present bytes."""
    brokers = sorted({broker for state in admin.partitions([topic]).values() for broker in state.replicas})
    logs = admin.log_dirs(brokers, [topic])
    sizes = {(tp.partition, broker): log.size_bytes for broker, found in logs.items() for tp, log in found.items()}
    return TopicBytes(sizes, remote.copied_bytes(topic))


def wait_local(admin: Admin, remote: RemoteLog, topic: str, *, timeout_s: float = 60.0) -> TopicBytes:
    """Wait until each broker has less than `LOCAL_SHARE` of its replica. Raise `WaitTimeout`."""
    return wait_for(
        lambda: topic_bytes(admin, remote, topic),
        lambda seen: seen.share < LOCAL_SHARE,
        timeout_s,
        0.3,
        f"the local log of every replica of {topic} to be under {LOCAL_SHARE:.0%} of the whole",
    )
