"""Where partitions are, while their topics may be deleted."""

from collections.abc import Sequence

from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from testbed.kafka.types import AdminApi, PartitionState, TopicPartition


def is_another(before: str | None, now: str) -> bool:
    """Whether a topic's id says that it was deleted and made again; not where one of the two is not known."""
    return bool(before) and bool(now) and before != now


def existing_partitions(admin: AdminApi, topics: Sequence[str]) -> dict[TopicPartition, PartitionState]:
    """As `Admin.partitions`; topics that do not exist have none. Raises `KafkaError`."""
    try:
        return admin.partitions(topics)
    except KafkaError as error:
        if error.name != UNKNOWN_TOPIC_OR_PARTITION:
            raise
        there = set(admin.topics())
        return admin.partitions([topic for topic in topics if topic in there])
