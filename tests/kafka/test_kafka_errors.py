import pytest

from testbed.kafka.admin import Admin
from testbed.kafka.errors import ReassignmentError, UnreachableError, protocol_name
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
        "INVALID_REPLICA_ASSIGNMENT for t-0, t-1, t-2, t-3, t-4 and 2 more"
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
