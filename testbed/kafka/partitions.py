"""The partitions of topics that may be deleted meanwhile."""

from collections.abc import Sequence

from testbed.kafka.admin import Admin
from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from testbed.kafka.types import PartitionState, TopicPartition

_DELETED_MEANWHILE = 3
"""So many topics may be deleted while the partitions are requested."""


def existing_partitions(admin: Admin, topics: Sequence[str]) -> dict[TopicPartition, PartitionState]:
    """Return the partitions of the topics that exist; see `Admin.partitions`. Raise `KafkaError`."""
    there = list(topics)
    for tries_left in range(_DELETED_MEANWHILE, -1, -1):
        try:
            return admin.partitions(there)
        except KafkaError as error:
            if error.name != UNKNOWN_TOPIC_OR_PARTITION or not tries_left:
                raise
            # A topic was deleted, perhaps between these two requests.
            known = set(admin.topics())
            there = [topic for topic in topics if topic in known]
    raise AssertionError("the last try returns or raises")
