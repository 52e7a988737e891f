"""What the metadata quorum says of itself: who leads it, and how far every node has its log."""

from collections.abc import Mapping
from typing import Any

from kafka.protocol.admin import DescribeQuorumRequest

from testbed.kafka.connection import Connection
from testbed.kafka.errors import KafkaError, UnreachableError, protocol_name
from testbed.wait import WaitTimeout, wait_for

_WHAT = "describe the quorum"
_ELECTING = "NOT_LEADER_OR_FOLLOWER"
_INTERVAL_S = 0.1
_Told = tuple[str, str | None, Mapping[str, Any]]


def describe_quorum(connection: Connection) -> Mapping[str, Any]:
    """Return the metadata partition as DescribeQuorum tells it: `leader_id`, `high_watermark`, voters, observers.

    Asks again while nobody leads it, until the connection's timeout (`UnreachableError`). Any other error of the
    answer, or of its partition, is a `KafkaError` with the protocol's name: such a partition names node 0 as leader.
    """
    try:
        name, message, partition = wait_for(
            lambda: _ask(connection),
            lambda told: told[0] != _ELECTING,
            connection.timeout_s,
            _INTERVAL_S,
            "a leader of the quorum",
        )
    except WaitTimeout as error:
        raise UnreachableError(_WHAT, _ELECTING, f"nobody leads it, {connection.timeout_s:g} s long") from error
    if name != "NONE":
        raise KafkaError(_WHAT, name, message)
    return partition


def _ask(connection: Connection) -> _Told:
    """The name of the error, its message, and the partition."""
    topic = DescribeQuorumRequest.TopicData
    request = DescribeQuorumRequest(
        topics=[topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)])]
    )
    # The client's own function keeps of the partition's error nothing but a sentence.
    answer = connection.send(_WHAT, request, None).to_dict()
    if answer["error_code"]:
        return protocol_name(answer["error_code"]), answer.get("error_message"), {}
    partition = answer["topics"][0]["partitions"][0]
    return protocol_name(partition["error_code"]), partition.get("error_message"), partition
