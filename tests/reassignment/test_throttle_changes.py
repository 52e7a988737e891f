import pytest

from testbed.kafka.types import ConfigResource, PartitionMove, TopicPartition
from testbed.throttle.configs import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ConfigChange,
    ThrottleError,
    changes,
    merged,
    throttled_replicas,
    wanted_configs,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC = ConfigResource.topic("t")


def test_lists_existing_replicas_for_leaders_and_adding_ones_for_followers() -> None:
    moves = [
        PartitionMove.between(T1, (2, 3), (3, 4)),
        PartitionMove.between(T0, (1,), (2,)),
        PartitionMove.between(T0, (1, 2), (2, 1)),
    ]
    assert throttled_replicas(moves) == {
        "t": {LEADER_REPLICAS: ["0:1", "1:2", "1:3"], FOLLOWER_REPLICAS: ["0:2", "1:4"]}
    }


def test_a_move_that_adds_nothing_or_shall_stay_unthrottled_lists_nothing() -> None:
    moves = [PartitionMove.between(T0, (1, 2), (1,)), PartitionMove.between(T1, (1,), (2,))]
    assert throttled_replicas(moves, {T1}) == {}


@pytest.mark.parametrize(
    ("present", "entries", "expected"),
    [
        (None, ["0:1"], "0:1"),
        ("", ["0:1"], "0:1"),
        ("5:1, 0:1", ["0:1", "1:1"], "5:1,0:1,1:1"),
        ("*", ["0:1"], "*"),
    ],
)
def test_lists_are_merged_with_what_is_there(present: str | None, entries: list[str], expected: str) -> None:
    assert merged(present, entries) == expected


def test_only_what_differs_is_changed() -> None:
    present = {
        TOPIC: {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "", "retention.ms": "5"},
        ConfigResource.broker(1): {LEADER_RATE: "1000", FOLLOWER_RATE: "7"},
    }
    wanted = wanted_configs([PartitionMove.between(T0, (1,), (2,))], 1000, [1, 2], present)
    assert {change for change in changes(wanted, present) if change.made} == {
        ConfigChange(TOPIC, FOLLOWER_REPLICAS, "", "0:2"),
        ConfigChange(ConfigResource.broker(1), FOLLOWER_RATE, "7", "1000"),
        ConfigChange(ConfigResource.broker(2), LEADER_RATE, None, "1000"),
        ConfigChange(ConfigResource.broker(2), FOLLOWER_RATE, None, "1000"),
    }


@pytest.mark.parametrize("there", ["*", "1:1"])
def test_an_unthrottled_partition_that_is_listed_already_is_refused(there: str) -> None:
    move = PartitionMove.between(T1, (1,), (2,))
    with pytest.raises(ThrottleError, match=r"topic t has leader.*so t-1 cannot stay unthrottled"):
        wanted_configs([move], 1000, [1], {TOPIC: {LEADER_REPLICAS: there}}, {T1})


def test_a_rate_of_zero_is_refused() -> None:
    with pytest.raises(ThrottleError, match="throttle of 0 B/s: must be 1 or more"):
        wanted_configs([], 0, [1], {})
