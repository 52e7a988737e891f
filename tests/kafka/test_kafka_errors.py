import pytest

from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError, ReassignmentError, UnreachableError, protocol_name
from testbed.kafka.types import BrokerConfigs, ConfigResource, TopicPartition


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (-1, "UNKNOWN_SERVER_ERROR"),
        (3, "UNKNOWN_TOPIC_OR_PARTITION"),
        (39, "INVALID_REPLICA_ASSIGNMENT"),
        (85, "NO_REASSIGNMENT_IN_PROGRESS"),
        (9999, "ERROR_9999"),
    ],
)
def test_errors_have_the_protocol_s_names(code: int, name: str) -> None:
    assert protocol_name(code) == name


def test_refused_partitions_are_grouped_by_error_and_all_kept() -> None:
    errors = {TopicPartition("t", p): "INVALID_REPLICA_ASSIGNMENT" for p in range(7)}
    errors[TopicPartition("a", 0)] = "UNKNOWN_TOPIC_OR_PARTITION"
    error = ReassignmentError("alter reassignments", errors, 100)
    assert str(error) == (
        "alter reassignments failed for 8 of 100 partitions: UNKNOWN_TOPIC_OR_PARTITION for a-0; "
        "INVALID_REPLICA_ASSIGNMENT for t-0, t-1, t-2, t-3, t-4, and 2 more"
    )
    assert error.errors == errors


def test_a_cluster_that_does_not_answer_is_an_error_in_time() -> None:
    with pytest.raises(UnreachableError, match=r"cluster at 127\.0\.0\.1:1 within 0.3 s: NO_ANSWER"):
        Admin("127.0.0.1:1", timeout_s=0.3)


def test_a_broker_s_own_level_wins_over_the_default() -> None:
    configs = BrokerConfigs({"a": "1"}, {"a": "2", "b": "3"})
    assert (configs.in_force("a"), configs.in_force("b"), configs.in_force("c")) == ("1", "3", None)


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [("group", "g", "must be of a 'broker' or a 'topic'"), ("broker", "b1", "must be a broker id")],
)
def test_an_unknown_resource_is_refused(kind: str, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConfigResource(kind, name)


@pytest.mark.parametrize(
    ("what", "right"),
    [
        ("list reassignments", "--operation Describe --cluster"),
        ("describe the log folders of broker 3", "--operation Describe --cluster"),
        ("describe the configuration of broker 1 from broker 1", "--operation DescribeConfigs --cluster"),
        ("describe the configuration of topic t", "--operation DescribeConfigs --topic …"),
        ("alter the configuration of topic t", "--operation AlterConfigs --topic …"),
        ("alter the configuration of default of all brokers", "--operation AlterConfigs --cluster"),
        ("alter reassignments", "--operation Alter --cluster"),
    ],
)
def test_a_right_that_is_lacking_is_named_with_the_command_that_grants_it(what: str, right: str) -> None:
    told = str(KafkaError(what, "CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed."))
    assert told.startswith(f"{what}: CLUSTER_AUTHORIZATION_FAILED (the user of this connection lacks a permission")
    assert right in told


def test_an_unknown_request_without_the_right_says_so() -> None:
    assert str(KafkaError("dance", "TOPIC_AUTHORIZATION_FAILED")) == (
        "dance: TOPIC_AUTHORIZATION_FAILED (the user of this connection lacks the permission)"
    )
