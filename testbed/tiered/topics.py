"""What makes a topic tiered: its own settings. Pure."""

from testbed.errors import UsageError
from testbed.units import format_size

LEAST_SEGMENT, LARGEST_SEGMENT = 1 << 20, 1 << 30
LOCAL_SHARE = 0.10
"""A tiered topic is moved only when less than this share of it lies on the brokers."""


def tiered_topic(*, segment_bytes: int = 1 << 20, local_bytes: int = 1) -> dict[str, str]:
    """The configuration of a tiered topic.

    A segment that is full is uploaded, and leaves the brokers once more than `local_bytes` of a partition would be left
    without it; the active segment always stays. The smaller the segments, the sooner; 1 MiB is Kafka's lower limit.
    Raises `UsageError` for what Kafka would refuse.
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
    """The bytes that one partition has on a broker at most, once all its full segments are uploaded.

    Kafka deletes from the oldest on, and keeps the one without which fewer than `local_bytes` would be left.
    """
    return local_bytes + segment_bytes
