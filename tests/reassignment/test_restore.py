"""Putting back what was there on many topics: in few questions, each one tried whatever becomes of the others."""

import pytest
from fakes.admin import FakeAdmin

from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.throttle.configs import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, ConfigChange
from testbed.throttle.recovery import Interference, RestoreError, restore

TOPICS = 300
KEYS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
B1 = ConfigResource.broker(1)


def topic(number: int) -> ConfigResource:
    return ConfigResource.topic(f"t{number}")


@pytest.fixture
def throttled() -> FakeAdmin:
    """Every topic's lists are set, and a broker's rate; the even topics had lists before."""
    admin = FakeAdmin({TopicPartition(f"t{n}", 0): (1,) for n in range(TOPICS)})
    admin.configs = {topic(n): dict.fromkeys(KEYS, "0:1") for n in range(TOPICS)} | {B1: {LEADER_RATE: "1000"}}
    return admin


def changes() -> list[ConfigChange]:
    lists = [ConfigChange(topic(n), key, None if n % 2 else "9:9", "0:1") for n in range(TOPICS) for key in KEYS]
    return [*lists, ConfigChange(B1, LEADER_RATE, None, "1000")]


BEFORE = {topic(n): dict.fromkeys(KEYS, "9:9") for n in range(0, TOPICS, 2)}


def test_topics_are_read_together(throttled: FakeAdmin) -> None:
    assert restore(throttled, changes(), 0).interferences == ()
    assert throttled.configs == BEFORE
    reads = [args for call, args in throttled.calls if call in ("topic_configs", "topics_configs")]
    assert [len(args[0]) for args in reads] == [TOPICS] * 2  # type: ignore[arg-type]
    assert sorted(reads[0][1]) == sorted(KEYS)  # type: ignore[call-overload]


def test_what_another_tool_has_changed_is_put_back_and_what_it_has_removed_is_left(throttled: FakeAdmin) -> None:
    """`kafka-reassign-partitions --verify` ends a throttle of before: to put its lists back would begin it again."""
    throttled.configs[topic(4)][LEADER_REPLICAS] = "5:5"
    del throttled.configs[topic(6)]
    del throttled.configs[topic(7)]
    del throttled.configs[topic(8)][FOLLOWER_REPLICAS]
    found = restore(throttled, changes(), 0).interferences
    assert [str(each) for each in found] == [
        f"topic t4: {LEADER_REPLICAS} was '5:5', not '0:1' as set; restored to '9:9'",
        f"topic t8: {FOLLOWER_REPLICAS} was not set, not '0:1' as set; left so",
        f"topic t6: {LEADER_REPLICAS} was not set, not '0:1' as set; left so",
        f"topic t6: {FOLLOWER_REPLICAS} was not set, not '0:1' as set; left so",
    ]
    left = {each: keys for each, keys in BEFORE.items() if each != topic(6)}
    assert throttled.configs == {**left, topic(8): {LEADER_REPLICAS: "9:9"}}


def test_what_the_throttle_has_removed_itself_is_put_back(throttled: FakeAdmin) -> None:
    del throttled.configs[B1]
    mine = [ConfigChange(B1, LEADER_RATE, "77", "1000", removed=True)]
    assert restore(throttled, mine, 0).interferences == ()
    assert throttled.configs[B1] == {LEADER_RATE: "77"}


@pytest.mark.parametrize("numbers", [(4, 5), (0, 1, 2, 3)])
def test_topics_that_are_gone_have_nothing_to_put_back(throttled: FakeAdmin, numbers: tuple[int, ...]) -> None:
    for number in numbers:
        del throttled.assignment[TopicPartition(f"t{number}", 0)], throttled.configs[topic(number)]
    done = restore(throttled, changes(), 0)
    assert set(done.gone) == {f"t{number}" for number in numbers}
    assert done.interferences == ()
    assert throttled.configs == {resource: keys for resource, keys in BEFORE.items() if resource in throttled.configs}


def test_a_topic_that_is_deleted_once_it_was_put_back_is_not_waited_for(throttled: FakeAdmin) -> None:
    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "alter_configs" and args[0] == B1:
            del throttled.assignment[TopicPartition("t4", 0)], throttled.configs[topic(4)]

    throttled.hook = hook
    assert restore(throttled, changes(), 0).gone == ("t4",)


def test_when_they_cannot_be_read_together_each_is_tried_by_itself(throttled: FakeAdmin) -> None:
    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "topics_configs" or (call == "topic_configs" and args[0] == "t7"):
            raise KafkaError("describe the configuration of topic t7", "TOPIC_AUTHORIZATION_FAILED")

    throttled.hook = hook
    with pytest.raises(RestoreError, match="t7: TOPIC_AUTHORIZATION_FAILED") as raised:
        restore(throttled, changes(), 0)
    assert len(raised.value.problems) == 1
    assert throttled.configs == {**BEFORE, topic(7): dict.fromkeys(KEYS, "0:1")}


def test_what_cannot_be_altered_and_what_never_shows_is_named_and_all_else_is_put_back(throttled: FakeAdmin) -> None:
    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "alter_configs" and args[0] == topic(9):
            raise UnreachableError("alter the configuration of topic t9", "REQUEST_TIMED_OUT")
        if call == "alter_configs" and args[0] == B1:
            throttled.configs[topic(2)] = {}  # as if it were never applied

    throttled.hook = hook
    with pytest.raises(RestoreError) as raised:
        restore(throttled, changes(), 0.01)
    assert raised.value.problems[0] == "alter the configuration of topic t9: REQUEST_TIMED_OUT"
    assert "waited 0.01 s for the originals of topic t2; last seen: [" in raised.value.problems[1]
    assert len(raised.value.problems) == 2


@pytest.mark.parametrize("changed", [False, True])
def test_who_may_not_write_has_nothing_to_put_back_where_nothing_was_changed(
    throttled: FakeAdmin, changed: bool
) -> None:
    throttled.configs = {B1: {LEADER_RATE: "1000"}} if changed else {}

    def refuse(call: str, _args: tuple[object, ...]) -> None:
        if call == "alter_configs":
            raise KafkaError("alter the configuration of broker 1", "CLUSTER_AUTHORIZATION_FAILED")

    throttled.hook = refuse
    mine = [ConfigChange(B1, LEADER_RATE, None, "1000")]
    if not changed:
        assert restore(throttled, mine, 0).interferences == ()
        return
    with pytest.raises(RestoreError, match="CLUSTER_AUTHORIZATION_FAILED"):
        restore(throttled, mine, 0)


def test_a_long_list_of_replicas_is_cut_off_where_it_is_named(throttled: FakeAdmin) -> None:
    """The whole list of thousands of partitions stood in the message, in the manifest and in the report."""
    long = ",".join(f"{partition}:1" for partition in range(5000))
    change = ConfigChange(topic(2), LEADER_REPLICAS, None, long)
    assert len(str(Interference(change, f"{long},9:9"))) < 300

    def stays(call: str, _args: tuple[object, ...]) -> None:
        if call == "topics_configs":
            throttled.configs[topic(2)] = {LEADER_REPLICAS: long}

    throttled.hook = stays
    with pytest.raises(RestoreError) as raised:
        restore(throttled, [change], 0.01)
    assert "last seen: [\"leader.replication.throttled.replicas is '0:1,1:1,2:1," in str(raised.value)
    assert len(str(raised.value)) < 500
