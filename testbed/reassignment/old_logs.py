"""What is left on the brokers that lose a replica: a move is not done before that is gone."""

from collections.abc import Sequence

from testbed.kafka.errors import UnreachableError
from testbed.kafka.types import AdminApi, ReplicaLog, TopicPartition
from testbed.reassignment.plan import Move
from testbed.reassignment.progress import not_removed, removing_brokers


def old_logs(admin: AdminApi, moves: Sequence[Move]) -> dict[int, dict[TopicPartition, ReplicaLog]]:
    """The logs of the moving topics on each broker that loses one; a broker that does not answer is not there."""
    topics = sorted({move.tp.topic for move in moves})
    found: dict[int, dict[TopicPartition, ReplicaLog]] = {}
    for broker in removing_brokers(moves):
        try:
            found |= admin.log_dirs([broker], topics)
        except UnreachableError:
            continue  # said by `not_removed`, which names the broker
    return found


def left_behind(admin: AdminApi, moves: Sequence[Move]) -> list[str]:
    """Which replicas that are to be removed are not seen to be gone. Raises `KafkaError`."""
    return not_removed(moves, old_logs(admin, moves))
