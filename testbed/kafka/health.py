"""The health of a cluster: the quorum, under-replicated partitions, and each node's progress in the metadata log.

`testbed.provision.kafka_nodes` asks each node whether it serves.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import DescribeQuorumRequest

from results.contract.texts import shortened
from testbed.kafka.connection import Connection
from testbed.kafka.errors import KafkaError, UnreachableError, protocol_name
from testbed.kafka.types import TopicPartition
from testbed.wait import WaitTimeout, wait_for

_WHAT = "describe the quorum"
_ELECTING = "NOT_LEADER_OR_FOLLOWER"
_INTERVAL_S = 0.1
_Answer = tuple[str, str | None, Mapping[str, Any]]


def describe_quorum(connection: Connection) -> Mapping[str, Any]:
    """Return the metadata partition as DescribeQuorum returns it: `leader_id`, `high_watermark`, voters, observers.

    The request is repeated while the partition has no leader, until the connection's timeout (`UnreachableError`).
    Raise `KafkaError` when the answer or its partition has any other error: such a partition names node 0 as leader.
    """
    try:
        name, message, partition = wait_for(
            lambda: _ask(connection),
            lambda answer: answer[0] != _ELECTING,
            connection.timeout_s,
            _INTERVAL_S,
            "a leader of the quorum",
        )
    except WaitTimeout as error:
        raise UnreachableError(_WHAT, _ELECTING, f"it has no leader, {connection.timeout_s:g} s long") from error
    if name != "NONE":
        raise KafkaError(_WHAT, name, message)
    return partition


def _ask(connection: Connection) -> _Answer:
    """Return the name of the error, its message, and the partition."""
    topic = DescribeQuorumRequest.TopicData
    request = DescribeQuorumRequest(
        topics=[topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)])]
    )
    # The client's own function reduces the partition's error to a sentence.
    answer = connection.send(_WHAT, request, None).to_dict()
    if answer["error_code"]:
        return protocol_name(answer["error_code"]), answer.get("error_message"), {}
    partition = answer["topics"][0]["partitions"][0]
    return protocol_name(partition["error_code"]), partition.get("error_message"), partition


@dataclass(frozen=True, slots=True)
class Health:
    """One observation of a cluster, as one of its brokers reports it."""

    controller: int | None
    """The active controller's id; None while none is elected."""
    high_watermark: int
    """The high watermark of the metadata log. It grows twice a second, also without changes."""
    followed: Mapping[int, int]
    """Node → its end offset of the metadata log, as the active controller knows it."""
    under_replicated: tuple[TopicPartition, ...]
    """Partitions without a leader, or with a replica out of the ISR that is not just being added."""
    led_as_preferred: frozenset[TopicPartition]
    """Partitions whose leader is their first replica."""

    def __str__(self) -> str:
        shown = ", ".join(shortened(self.under_replicated, 5))
        return (
            f"controller {self.controller}, metadata log {self.high_watermark} "
            f"(followed {dict(self.followed)}), under-replicated: {shown or 'none'}"
        )


def health(bootstrap: Sequence[str], *, timeout_s: float = 5.0) -> Health:
    """Return one observation of the cluster. Raise `KafkaError`, as `UnreachableError` if no broker answers."""
    with closing(Connection(bootstrap, timeout_s, "testbed-health")) as connection:
        client, call = connection.client, connection.call
        quorum = describe_quorum(connection)
        topics = call("describe all topics", client.describe_topics)
        moving = call("list reassignments", client.list_partition_reassignments, timeout_ms=int(timeout_s * 1000))
    adding = {TopicPartition(tp.topic, tp.partition): frozenset(r["adding_replicas"]) for tp, r in moving.items()}
    leader: int = quorum["leader_id"]
    partitions = [(TopicPartition(t["name"], p["partition_index"]), p) for t in topics for p in t["partitions"]]
    return Health(
        controller=None if leader < 0 else leader,
        high_watermark=quorum["high_watermark"],
        followed={
            node["replica_id"]: node["log_end_offset"] for node in (*quorum["observers"], *quorum["current_voters"])
        },
        under_replicated=tuple(sorted(tp for tp, p in partitions if not _is_whole(p, adding.get(tp, frozenset())))),
        led_as_preferred=frozenset(
            tp for tp, p in partitions if p["replica_nodes"] and p["leader_id"] == p["replica_nodes"][0]
        ),
    )


def _is_whole(partition: Mapping[str, Any], adding: frozenset[int]) -> bool:
    in_sync = set(partition["isr_nodes"])
    return partition["leader_id"] >= 0 and set(partition["replica_nodes"]) - adding <= in_sync
