"""One look at a cluster, as every turn and every status needs it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from testbed.kafka.types import AdminApi, TopicPartition
from testbed.reassignment.batching.turn import Seen
from testbed.reassignment.existing import existing_partitions, is_another


class StepAdmin(AdminApi, Protocol):
    """What steps need of an Admin client beyond a plain move."""

    def elect_preferred(self, tps: Sequence[TopicPartition]) -> None:
        """See `Admin.elect_preferred`."""

    def topic_setting(self, topic: str, key: str) -> str | None:
        """See `Admin.topic_setting`."""


def look(
    admin: StepAdmin, topics: Sequence[str], minimum: Mapping[str, int], topic_ids: Mapping[str, str] | None = None
) -> Seen:
    """What is listed, where replicas are, and who lives; a topic that was deleted is not in it. Raises `KafkaError`.

    Nor is one that has another id than `topic_ids` says: it was made anew.
    """
    listed, states = admin.reassignments(topics), existing_partitions(admin, topics)
    known = topic_ids or {}
    states = {tp: state for tp, state in states.items() if not is_another(known.get(tp.topic), state.topic_id)}
    listed = {tp: running for tp, running in listed.items() if tp in states}
    live = frozenset(broker.id for broker in admin.cluster().brokers)
    return Seen(listed, states, live, minimum)


def min_insync(admin: StepAdmin, topics: Sequence[str]) -> dict[str, int]:
    """`min.insync.replicas` of each topic; 1 of one that was deleted: nothing is left to be moved."""
    return {topic: _minimum(admin, topic) for topic in topics}


def _minimum(admin: StepAdmin, topic: str) -> int:
    try:
        return int(admin.topic_setting(topic, "min.insync.replicas") or 1)
    except KafkaError as error:
        if error.name != UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return 1
