"""Ten thousand partitions: what is asked once a look must not be compared with everything else."""

import time
from collections.abc import Callable
from typing import Any

import pytest

import testbed.kafka.admin as admin_module
from testbed.kafka.admin import Admin
from testbed.kafka.types import ConfigResource, PartitionMove, Reassignment, TopicPartition
from testbed.throttle.configs import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    ListedReplicas,
    ThrottleError,
    merged,
    unthrottled_partitions,
    wanted_configs,
)

MANY = 10_000
TOPICS = [f"t{n}" for n in range(MANY)]
ENTRIES = [f"{n}:1" for n in range(MANY)]


class Client:
    def list_partition_reassignments(self, timeout_ms: int) -> dict[TopicPartition, dict[str, list[int]]]:
        running = {"replicas": [1, 2], "adding_replicas": [2], "removing_replicas": [1]}
        return {TopicPartition(topic, 0): running for topic in TOPICS}


class Connection:
    client = Client()

    def __init__(self, *_args: object) -> None:
        pass

    def call(self, _what: str, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return function(*args, **named)

    def send(self, _what: str, _request: object, _broker: int) -> "Connection":
        return self

    def to_dict(self) -> dict[str, Any]:
        log = {"partition_index": 0, "partition_size": 1, "is_future_key": False}
        topics = [{"name": topic, "partitions": [log]} for topic in TOPICS]
        return {"error_code": 0, "results": [{"error_code": 0, "topics": topics}]}


def admin(monkeypatch: pytest.MonkeyPatch) -> Admin:
    monkeypatch.setattr(admin_module, "Connection", Connection)
    return Admin("b")


def listed() -> int:
    running = {TopicPartition("t", n): Reassignment((1, 2), (2,), ()) for n in range(MANY)}
    lists = {LEADER_REPLICAS: ",".join(ENTRIES), FOLLOWER_REPLICAS: ",".join(f"{n}:2" for n in range(MANY))}
    return MANY - len(unthrottled_partitions(running, ListedReplicas({"t": lists})))


def refused_at_the_last() -> int:
    moves = [PartitionMove.between(TopicPartition("t", n), (1,), (2,)) for n in range(MANY)]
    present = {
        ConfigResource.topic("t"): {LEADER_REPLICAS: ",".join(f"{n}:9" for n in range(MANY - 1)) + f",{MANY - 1}:1"}
    }
    with pytest.raises(ThrottleError, match=f"t-{MANY - 1} cannot stay unthrottled"):
        wanted_configs(moves, 1000, [1, 2], present, frozenset(move.tp for move in moves))
    return MANY


@pytest.mark.parametrize(
    "count",
    [
        lambda asked: len(asked.reassignments(TOPICS)),
        lambda asked: len(asked.log_dirs([1], TOPICS)[1]),
        lambda _asked: len(merged(",".join(ENTRIES[::2]), ENTRIES).split(",")),
        lambda _asked: listed(),
        lambda _asked: refused_at_the_last(),
    ],
    ids=["reassignments", "log_dirs", "merged", "unlisted", "refused"],
)
def test_ten_thousand_take_less_than_half_a_second(
    count: Callable[[Admin], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = admin(monkeypatch)
    begun = time.process_time()
    assert count(asked) == MANY
    assert time.process_time() - begun < 0.5
