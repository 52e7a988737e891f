"""What the quorum is asked and what is made of its errors."""

from types import SimpleNamespace

import pytest

import testbed.kafka.admin as admin_module
from testbed.kafka import health as module
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.health import describe_quorum

NOT_LEADER, NOT_AUTHORIZED, UNKNOWN = 6, 31, 3


class FakeConnection:
    """Answers with these (error of all, error of the partition), the last of them for ever."""

    timeout_s = 0.03

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []
        self.client = SimpleNamespace(
            describe_cluster=lambda: {
                "cluster_id": "c",
                "brokers": [{"broker_id": 1, "host": "h", "port": 1, "rack": None}],
            }
        )

    def call(self, what, function, *args, **named):
        return function(*args, **named)

    def send(self, what, request, broker_id):
        self.asked.append((what, request.topics[0].topic_name, broker_id))
        top, own = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        partition = {"error_code": own, "leader_id": 0 if own else 7, "high_watermark": 90}
        answer = {"error_code": top, "error_message": None, "topics": [{"partitions": [partition]}]}
        return SimpleNamespace(to_dict=lambda: answer)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "_INTERVAL_S", 0.001)


def test_the_metadata_partition_is_told():
    connection = FakeConnection((0, 0))
    assert describe_quorum(connection)["leader_id"] == 7
    assert connection.asked == [("describe the quorum", "__cluster_metadata", None)]


@pytest.mark.parametrize(
    ("answer", "named"), [((0, UNKNOWN), "UNKNOWN_TOPIC_OR_PARTITION"), ((NOT_AUTHORIZED, 0), "--operation Describe")]
)
def test_an_error_of_the_partition_is_raised_by_its_name_and_so_is_one_of_all(answer, named):
    with pytest.raises(KafkaError, match=named) as raised:
        describe_quorum(FakeConnection(answer))
    assert not isinstance(raised.value, UnreachableError)


def test_while_nobody_leads_it_is_asked_again():
    connection = FakeConnection((0, NOT_LEADER), (0, NOT_LEADER), (0, 0))
    assert describe_quorum(connection)["leader_id"] == 7
    assert len(connection.asked) == 3
    with pytest.raises(
        UnreachableError, match=r"describe the quorum: NOT_LEADER_OR_FOLLOWER \(it has no leader, 0.03 s"
    ):
        describe_quorum(FakeConnection((0, NOT_LEADER)))


def test_a_cluster_whose_quorum_is_an_error_has_no_controller_0(monkeypatch):
    connection = FakeConnection((0, UNKNOWN))
    monkeypatch.setattr(admin_module, "Connection", lambda *_args: connection)
    with pytest.raises(KafkaError, match="describe the quorum: UNKNOWN_TOPIC_OR_PARTITION"):
        Admin("b").cluster()
    connection.answers = [(0, 0)]
    assert Admin("b").cluster().controller_id == 7
