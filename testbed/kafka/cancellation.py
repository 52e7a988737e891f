"""The cancellation of running reassignments, which may end meanwhile."""

from collections.abc import Iterable

from testbed.kafka.admin import Admin
from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, ReassignmentError
from testbed.kafka.types import TopicPartition

_ENDED = {"NO_REASSIGNMENT_IN_PROGRESS", UNKNOWN_TOPIC_OR_PARTITION}


def cancel_running(admin: Admin, tps: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
    """Cancel the reassignments of these partitions, and return those that the controller cancelled.

    One that has ended since the caller listed it, also by the deletion of its topic, is no error. Raise
    `ReassignmentError` when the controller refuses another one, and `KafkaError`.
    """
    wanted = dict.fromkeys(tps)
    if not wanted:
        return frozenset()
    try:
        admin.alter_reassignments(wanted)
    except ReassignmentError as error:
        if set(error.errors.values()) - _ENDED:
            raise
        return frozenset(wanted.keys() - error.errors.keys())
    return frozenset(wanted)
