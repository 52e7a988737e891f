"""Tiered topics: their settings, and how much of one still lies on the brokers."""

from collections.abc import Mapping
from dataclasses import dataclass

from testbed.errors import UsageError
from testbed.kafka.admin import Admin
from testbed.tiered.remote import RemoteLog
from testbed.units import format_size
from testbed.wait import wait_for

LEAST_SEGMENT, LARGEST_SEGMENT = 1 << 20, 1 << 30
LOCAL_SHARE = 0.10
"""A tiered topic is moved only when less than this share of it lies on the brokers."""


def tiered_topic(*, segment_bytes: int = 1 << 20, local_bytes: int = 1) -> dict[str, str]:
    """Return the configuration of a tiered topic.

    A segment that is full is uploaded, and leaves the brokers once more than `local_bytes` of a partition would be left
    without it; the active segment always stays. The smaller the segments, the sooner; 1 MiB is Kafka's lower limit.
    Raise `UsageError` for what Kafka would refuse.
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
        # A test's data does not grow old.
        "retention.ms": "-1",
        "retention.bytes": "-1",
        # A deleted segment's file goes at once: what is on the disk is then what the log has.
        "file.delete.delay.ms": "0",
    }


def largest_local(segment_bytes: int, local_bytes: int) -> int:
    """Return the bytes that one partition has on a broker at most, once all its full segments are uploaded.

    Kafka deletes from the oldest on, and keeps the one without which fewer than `local_bytes` would be left.
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
        """Return the largest share that any replica has on its broker, of all its partition's bytes.

        What is in the store counts as all of them: the share is rather too large, by what is not uploaded yet.
        """
        shares = [size / max(1, self.remote.get(partition, 0)) for (partition, _b), size in self.replicas.items()]
        return max(shares, default=float("inf"))

    def __str__(self) -> str:
        if not self.replicas:
            return "no broker has a replica of it"
        (partition, broker), size = max(
            self.replicas.items(), key=lambda item: item[1] / max(1, self.remote.get(item[0][0], 0))
        )
        return (
            f"partition {partition} has {size:,} bytes on broker {broker} and {self.remote.get(partition, 0):,} in the "
            f"store ({len(self.replicas)} replicas, {sum(self.replicas.values()):,} bytes on brokers)"
        )


def topic_bytes(admin: Admin, remote: RemoteLog, topic: str) -> TopicBytes:
    """Look once."""
    brokers = sorted({broker for state in admin.partitions([topic]).values() for broker in state.replicas})
    logs = admin.log_dirs(brokers, [topic])
    sizes = {(tp.partition, broker): log.size_bytes for broker, found in logs.items() for tp, log in found.items()}
    return TopicBytes(sizes, remote.copied_bytes(topic))


def wait_local(
    admin: Admin, remote: RemoteLog, topic: str, *, share: float = LOCAL_SHARE, timeout_s: float = 60.0
) -> TopicBytes:
    """Wait until less than `share` of every replica is on its broker. Raise `WaitTimeout` with what was seen."""
    return wait_for(
        lambda: topic_bytes(admin, remote, topic),
        lambda seen: seen.share < share,
        timeout_s,
        0.3,
        f"the local log of every replica of {topic} to be under {share:.0%} of the whole",
    )
