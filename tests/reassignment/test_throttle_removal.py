"""The removal of a throttle: exactly its keys, and every failure is named."""

import pytest

from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.types import TopicPartition
from testbed.throttle.configs import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from testbed.throttle.journal import JournalFolder
from testbed.throttle.removal import ClearError, clear
from testbed.throttle.status import read_status
from tests.reassignment.throttled_cluster import ONE, TOPIC, WithDefault


def test_clear_takes_the_throttle_s_keys_and_nothing_else(throttled: WithDefault, journals: JournalFolder) -> None:
    clear(throttled, read_status(throttled, journals))
    assert throttled.configs == {ONE: {"log.cleaner.threads": "2"}, TOPIC: {"retention.ms": "5"}}
    assert read_status(throttled, journals).set_now() == {}


def test_clear_tries_everything_and_says_what_stayed(throttled: WithDefault, journals: JournalFolder) -> None:
    state = read_status(throttled, journals)

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "alter_configs" and args[0] == ONE:
            raise KafkaError("alter the configuration of broker 1", "CLUSTER_AUTHORIZATION_FAILED")

    throttled.hook = hook
    with pytest.raises(ClearError, match="--operation AlterConfigs --cluster"):
        clear(throttled, state)
    assert throttled.configs == {ONE: {LEADER_RATE: "10", "log.cleaner.threads": "2"}, TOPIC: {"retention.ms": "5"}}


def test_clear_does_not_claim_what_it_could_not_ask_also_when_nothing_else_is_set(
    throttled: WithDefault, journals: JournalFolder
) -> None:
    throttled.configs = {}
    throttled.assignment[TopicPartition("t", 0)] = (1, 7)

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "broker_configs" and args == (3,):
            raise UnreachableError("broker 3", "REQUEST_TIMED_OUT")

    throttled.hook = hook
    with pytest.raises(ClearError) as caught:
        clear(throttled, read_status(throttled, journals))
    assert str(caught.value).splitlines()[1:] == [
        "  broker 3 could not be asked whether it has a throttle: broker 3: REQUEST_TIMED_OUT; clear again once it "
        "answers",
        "  broker 7 could not be asked whether it has a throttle: it has replicas, but is not alive; clear again once "
        "it answers",
    ]


def test_brokers_that_are_only_listed_are_named_and_the_rest_is_cleared_all_the_same(
    throttled: WithDefault, journals: JournalFolder
) -> None:
    throttled.configs[TOPIC] = {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "0:2,0:8"}
    with pytest.raises(ClearError, match="broker 8 could not be asked"):
        clear(throttled, read_status(throttled, journals))
    assert throttled.configs == {ONE: {"log.cleaner.threads": "2"}}
