"""How `Admin` asks and what it makes of the answers, with the client library's place taken by a stub."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import kafka.errors as client_errors
import pytest
from kafka import TopicPartition as ClientTopicPartition

import testbed.kafka.admin as admin_module
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError, LogDirError, ReassignmentError, TopicConfigsError, UnreachableError
from testbed.kafka.types import ConfigResource, ReplicaLog, TopicPartition

Answer = Mapping[ClientTopicPartition, type[Exception] | None]


class StubClient:
    """Answers reassignments from a list of functions of the request, the last of them for ever."""

    def __init__(self, answers: Sequence[Callable[[Mapping[ClientTopicPartition, Any]], Answer]]) -> None:
        self.answers = list(answers)
        self.sizes: list[int] = []

    def alter_partition_reassignments(self, request: Mapping[ClientTopicPartition, Any], timeout_ms: int) -> Answer:
        self.sizes.append(len(request))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(request)


class StubConnection:
    client: Any = None
    response: Any = None
    sent: list[tuple[Any, int | None]]

    def __init__(self, bootstrap: str, timeout_s: float, client_id: str, security: object) -> None:
        self.sent = []

    def call(self, what: str, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return function(*args, **named)

    def send(self, what: str, request: Any, broker_id: int | None) -> Any:
        self.sent.append((request, broker_id))
        return self

    def to_dict(self) -> Any:
        return self.response


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> type[StubConnection]:
    monkeypatch.setattr(admin_module, "Connection", StubConnection)
    monkeypatch.setattr(admin_module, "_RETRY_INTERVAL_S", 0.001)
    return StubConnection


def _all(error: type[Exception] | None) -> Callable[[Mapping[ClientTopicPartition, Any]], Answer]:
    return lambda request: dict.fromkeys(request, error)


def test_partitions_without_a_leader_are_named_and_the_others_counted(
    connection: type[StubConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 10,000 stood in the one line that says why a run ended early."""
    connection.client = SimpleNamespace(create_topics=lambda *_topics, **_named: {"topics": []})
    monkeypatch.setattr(Admin, "partitions", lambda _self, _topics: {})
    with pytest.raises(UnreachableError) as raised:
        Admin("b", timeout_s=0.01).create_topic("t", {partition: [1] for partition in range(10_000)})
    assert str(raised.value) == (
        "create topic 't': LEADER_NOT_AVAILABLE (partitions without leader: 0, 1, 2, 3, 4, 5, 6, 7, and 9992 more)"
    )


def test_reassignments_go_in_chunks_of_a_thousand(connection: type[StubConnection]) -> None:
    connection.client = StubClient([_all(None)])
    Admin("b").alter_reassignments({TopicPartition("t", p): [1] for p in range(2300)})
    assert connection.client.sizes == [1000, 1000, 300]


def test_later_chunks_are_sent_also_after_one_was_refused(connection: type[StubConnection]) -> None:
    connection.client = StubClient([_all(client_errors.InvalidReplicationAssignmentError), _all(None)])
    with pytest.raises(ReassignmentError, match="for 1000 of 1001 partitions: INVALID_REPLICA_ASSIGNMENT for t-0,"):
        Admin("b").alter_reassignments({TopicPartition("t", p): [1] for p in range(1001)})
    assert connection.client.sizes == [1000, 1]


def test_what_met_a_former_controller_is_asked_again(connection: type[StubConnection]) -> None:
    first, second = ClientTopicPartition("t", 0), ClientTopicPartition("t", 1)

    connection.client = StubClient(
        [lambda _request: {first: None, second: client_errors.NotControllerError}, _all(None)]
    )
    Admin("b").alter_reassignments({TopicPartition("t", p): [1] for p in (0, 1)})
    assert connection.client.sizes == [2, 1]


def test_a_controller_that_is_never_found_is_an_error_in_time(connection: type[StubConnection]) -> None:
    connection.client = StubClient([_all(client_errors.NotControllerError)])
    with pytest.raises(ReassignmentError, match="NOT_CONTROLLER for t-0"):
        Admin("b", timeout_s=0.02).alter_reassignments({TopicPartition("t", 0): [1]})


def test_a_partition_without_an_answer_is_an_error(connection: type[StubConnection]) -> None:
    connection.client = StubClient([lambda _request: {}])
    with pytest.raises(ReassignmentError, match="NO_ANSWER for t-0"):
        Admin("b").alter_reassignments({TopicPartition("t", 0): [1]})


def test_a_broker_s_configuration_is_asked_from_it_and_told_by_level(
    connection: type[StubConnection],
) -> None:
    def config(name: str, *levels: tuple[int, str | None]) -> dict[str, Any]:
        return {"name": name, "synonyms": [{"source": s, "value": v} for s, v in levels]}

    connection.response = {
        "results": [
            {
                "error_code": 0,
                "configs": [
                    config("a", (2, "1"), (3, "2"), (5, "0")),
                    config("b", (4, "9")),
                    config("c", (2, None)),
                ],
            }
        ]
    }
    admin = Admin("b")
    told = admin.broker_configs(7)
    assert (told.broker, told.default) == ({"a": "1"}, {"a": "2"})
    stub: Any = admin._connection
    assert [broker for _, broker in stub.sent] == [7]


@pytest.mark.parametrize(
    ("resource", "broker"),
    [(ConfigResource.broker(7), 7), (ConfigResource("broker", ""), None), (ConfigResource.topic("t"), None)],
)
def test_a_broker_s_configuration_is_altered_at_that_broker(
    connection: type[StubConnection], resource: ConfigResource, broker: int | None
) -> None:
    connection.response = {"responses": [{"error_code": 42, "error_message": "must be at least 0"}]}
    admin = Admin("b")
    with pytest.raises(KafkaError, match=rf"alter the configuration of {resource}: INVALID_REQUEST \(must be"):
        admin.alter_configs(resource, {"rate": "-1"}, ["other"])
    stub: Any = admin._connection
    [(request, sent_to)] = stub.sent
    assert sent_to == broker
    _type, name, changes = request.resources[0]
    assert (name, changes) == (resource.name, [("rate", 0, "-1"), ("other", 1, None)])


def test_nothing_to_alter_asks_nothing(connection: type[StubConnection]) -> None:
    admin = Admin("b")
    admin.alter_configs(ConfigResource.topic("t"), {}, [])
    stub: Any = admin._connection
    assert stub.sent == []


def test_log_folders_that_may_not_be_seen_are_an_error_and_not_none(connection: type[StubConnection]) -> None:
    connection.response = {"error_code": 31, "results": []}
    with pytest.raises(KafkaError, match=r"broker 7: CLUSTER_AUTHORIZATION_FAILED .*--operation Describe --cluster"):
        Admin("b").log_dirs([7])


def test_a_log_folder_that_is_offline_is_an_error_that_has_the_other_folders(connection: type[StubConnection]) -> None:
    there = {"partition_index": 0, "partition_size": 9, "is_future_key": False}
    offline = {"error_code": 56, "log_dir": "/disk1", "topics": []}
    whole = {"error_code": 0, "log_dir": "/disk2", "topics": [{"name": "t", "partitions": [there]}]}
    connection.response = {"error_code": 0, "results": [offline, whole]}
    with pytest.raises(LogDirError, match=r"log folders of broker 7, /disk1: KAFKA_STORAGE_ERROR") as caught:
        Admin("b").log_dirs([7])
    assert caught.value.found == {7: {TopicPartition("t", 0): ReplicaLog(9, False)}}


def test_brokers_are_listed_without_a_quorum(connection: type[StubConnection], monkeypatch: pytest.MonkeyPatch) -> None:
    named = [{"broker_id": b, "host": "h", "port": 1, "rack": None, "is_fenced": b == 3} for b in (2, 3, 1)]
    client = type("Client", (), {"describe_cluster": lambda _self: {"brokers": named}})()
    monkeypatch.setattr(connection, "client", client)
    admin = Admin("b")
    assert [broker.id for broker in admin.brokers()] == [1, 2]
    stub: Any = admin._connection
    assert stub.sent == []


def test_topics_configurations_are_asked_together_and_only_what_is_set_there_is_told(
    connection: type[StubConnection],
) -> None:
    def topic(name: str, code: int, *configs: tuple[str, str | None, int]) -> dict[str, Any]:
        named = [{"name": key, "value": value, "config_source": source} for key, value, source in configs]
        return {"error_code": code, "error_message": "", "resource_name": name, "configs": named}

    connection.response = {"results": [topic("a", 0, ("k", "1", 1), ("l", "2", 5)), topic("gone", 3), topic("b", 0)]}
    admin = Admin("b")
    assert admin.topics_configs(["a", "gone", "b"], ["k", "l"], 4) == {"a": {"k": "1"}}
    stub: Any = admin._connection
    [(request, broker)] = stub.sent
    assert (broker, request.resources) == (4, [(2, name, ["k", "l"]) for name in ("a", "gone", "b")])
    connection.response = {"results": [topic("a", 29), topic("b", 0, ("k", "2", 1))]}
    with pytest.raises(
        TopicConfigsError, match=r"topics: a: TOPIC_AUTHORIZATION_FAILED .*--operation DescribeConfigs"
    ) as caught:
        admin.topics_configs(["a", "b"], ["k"])
    assert (caught.value.refused, caught.value.found) == (("a",), {"b": {"k": "2"}})


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ({"topic_id": "d6df80bc-8670-4ae2-bddf-326b431c77cc"}, "d6df80bc-8670-4ae2-bddf-326b431c77cc"),
        ({"topic_id": "00000000-0000-0000-0000-000000000000"}, ""),
        ({"topic_id": None}, ""),
        ({}, ""),
    ],
)
def test_a_topics_id_is_told_where_there_is_one(
    connection: type[StubConnection], monkeypatch: pytest.MonkeyPatch, told: dict[str, str | None], known: str
) -> None:
    partition = {"partition_index": 0, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}
    answer = [{"name": "t", "error_code": 0, "partitions": [partition], **told}]
    client = type("Client", (), {"describe_topics": lambda _self, _topics: answer})()
    monkeypatch.setattr(connection, "client", client)
    [state] = Admin("b:9092").partitions(["t"]).values()
    assert (state.topic_id, state.leader) == (known, 1)


class GroupClient:
    """Answers commits of offsets with these errors, and has one group."""

    def __init__(self, *errors: type[Exception]) -> None:
        self.errors = errors
        self.given: dict[str, Mapping[ClientTopicPartition, Any]] = {}

    def alter_group_offsets(self, group: str, offsets: Mapping[ClientTopicPartition, Any]) -> Answer:
        self.given[group] = offsets
        return dict(zip(offsets, self.errors, strict=True))

    def list_group_offsets(self, groups: list[str]) -> Mapping[str, Mapping[ClientTopicPartition, Any]]:
        return {group: self.given.get(group, {}) for group in groups}


def test_a_group_s_offsets_are_committed_and_read(connection: type[StubConnection]) -> None:
    connection.client = GroupClient(client_errors.NoError, client_errors.NoError)
    offsets = {TopicPartition("t", 0): 7, TopicPartition("t", 1): 8}
    admin = Admin("b")
    admin.commit_offsets("g", offsets)
    assert admin.committed_offsets(("g", "none")) == {"g": offsets, "none": {}}


def test_a_commit_that_is_refused_is_an_error(connection: type[StubConnection]) -> None:
    connection.client = GroupClient(client_errors.NoError, client_errors.NotCoordinatorError)
    with pytest.raises(KafkaError, match="commit offsets of group g: NOT_COORDINATOR"):
        Admin("b").commit_offsets("g", {TopicPartition("t", 0): 7, TopicPartition("t", 1): 8})
