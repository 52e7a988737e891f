from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition as ClientTopicPartition

from testbed.kafka import health as module
from testbed.kafka.health import health
from testbed.kafka.types import TopicPartition


def partition(number: int, leader: int, replicas: list[int], isr: list[int]) -> dict[str, Any]:
    return {"partition_index": number, "leader_id": leader, "replica_nodes": replicas, "isr_nodes": isr}


class FakeConnection:
    """Answers as kafka-python's client does."""

    def __init__(self, bootstrap, timeout_s, client_id) -> None:
        self.timeout_s = timeout_s
        voters = [{"replica_id": 1, "log_end_offset": 90}]
        observers = [{"replica_id": 2, "log_end_offset": 88}, {"replica_id": 3, "log_end_offset": 12}]
        self.quorum = {
            "error_code": 0,
            "leader_id": 1,
            "high_watermark": 90,
            "current_voters": voters,
            "observers": observers,
        }
        topic = {
            "name": "t",
            "partitions": [
                partition(0, 1, [1, 2], [1, 2]),
                partition(1, 2, [1, 2], [2]),
                partition(2, -1, [1], []),
                partition(3, 1, [1, 2, 3], [1, 2]),
            ],
        }
        moving = {
            ClientTopicPartition("t", 3): {"adding_replicas": [3], "removing_replicas": [], "replicas": [1, 2, 3]}
        }
        self.client = SimpleNamespace(
            describe_topics=lambda: [topic], list_partition_reassignments=lambda timeout_ms: moving
        )

    def call(self, what, function, *args, **named):
        return function(*args, **named)

    def send(self, what, request, broker_id):
        answer = {"error_code": 0, "topics": [{"partitions": [self.quorum]}]}
        return SimpleNamespace(to_dict=lambda: answer)

    def close(self) -> None:
        pass


def test_an_observation_holds_who_leads_who_follows_and_what_is_not_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Connection", FakeConnection)
    seen = health(["198.19.0.11:9092"])
    assert (seen.controller, seen.high_watermark) == (1, 90)
    assert seen.followed == {1: 90, 2: 88, 3: 12}
    # Partition 3's third replica is just being added: that it is not in sync is no harm.
    assert seen.under_replicated == (TopicPartition("t", 1), TopicPartition("t", 2))
    assert seen.led_as_preferred == {TopicPartition("t", 0), TopicPartition("t", 3)}
