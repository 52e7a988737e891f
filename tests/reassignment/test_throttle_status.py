"""The throttles that a cluster has: rates, lists, who reports them, and whether they are left behind."""

import pytest

from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.throttle.configs import EVERY_BROKER, FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from testbed.throttle.journal import JournalFolder, ThrottleJournal
from testbed.throttle.status import read_status
from tests.reassignment.throttled_cluster import ONE, TOPIC, WithDefault


def test_the_state_has_every_rate_with_its_level_and_every_list(
    throttled: WithDefault, journals: JournalFolder
) -> None:
    state = read_status(throttled, journals)
    assert [(b.rate(LEADER_RATE), b.rate(FOLLOWER_RATE), dict(b.own), dict(b.default)) for b in state.brokers] == [
        (10, 20, {LEADER_RATE: 10}, {FOLLOWER_RATE: 20}),
        (None, 20, {}, {FOLLOWER_RATE: 20}),
        (None, 20, {}, {FOLLOWER_RATE: 20}),
    ]
    assert state.lists == {"t": {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"}}
    assert state.left_behind
    throttled.running = {TopicPartition("t", 0): (2,)}
    assert not read_status(throttled, journals).left_behind


@pytest.mark.parametrize(
    ("lists", "rates", "catches_up"),
    [
        (
            {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"},
            {EVERY_BROKER: {FOLLOWER_RATE: "20", LEADER_RATE: "20"}},
            True,
        ),
        ({LEADER_REPLICAS: "0:1"}, {ONE: {LEADER_RATE: "10"}}, True),
        ({FOLLOWER_REPLICAS: "0:2"}, {ConfigResource.broker(2): {FOLLOWER_RATE: "10"}}, True),
        ({LEADER_REPLICAS: "0:2", FOLLOWER_REPLICAS: "0:1"}, {EVERY_BROKER: {FOLLOWER_RATE: "20"}}, False),
        ({LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"}, {}, False),
        ({LEADER_REPLICAS: "0:1"}, {ONE: {FOLLOWER_RATE: "10"}}, False),
    ],
)
def test_a_throttle_of_a_replica_that_catches_up_is_not_left_behind(
    lists: dict[str, str], rates: dict[ConfigResource, dict[str, str]], catches_up: bool, journals: JournalFolder
) -> None:
    """KIP-73's bootstrapping broker: nothing is reassigned, and the throttle holds it back all the same."""
    cluster = WithDefault({TopicPartition("t", 0): (1, 2), TopicPartition("control", 0): (1,)})
    cluster.configs = {TOPIC: dict(lists), **rates}
    assert read_status(cluster, journals).left_behind
    cluster.isr_lacks = frozenset({2})
    state = read_status(cluster, journals)
    assert state.catching_up == ((TopicPartition("t", 0),) if catches_up else ())
    assert state.left_behind is not catches_up
    cluster.running = {TopicPartition("t", 0): (1, 3)}
    assert read_status(cluster, journals).catching_up == ()


@pytest.mark.parametrize("dead", [False, True])
def test_a_listed_replica_of_a_broker_without_an_answer_may_be_throttled(dead: bool, journals: JournalFolder) -> None:
    """Only the broker itself reports its rate: `status` said that what is set throttles nothing."""
    cluster = WithDefault({TopicPartition("t", 0): (1, 2)})
    cluster.configs = {TOPIC: {FOLLOWER_REPLICAS: "0:2"}, ConfigResource.broker(2): {FOLLOWER_RATE: "10"}}
    cluster.isr_lacks = frozenset({2})

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "broker_configs" and args == (2,):
            raise UnreachableError("broker 2", "REQUEST_TIMED_OUT")

    if dead:
        cluster.broker_ids = (1, 3)
    cluster.hook = hook
    state = read_status(cluster, journals)
    assert (state.catching_up, state.left_behind) == ((TopicPartition("t", 0),), False)


def test_a_broker_that_has_not_applied_a_list_or_gives_no_answer_is_named(
    throttled: WithDefault, journals: JournalFolder
) -> None:
    throttled.deaf_brokers = frozenset({2})

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "broker_configs" and args == (3,):
            raise UnreachableError("broker 3", "REQUEST_TIMED_OUT")

    throttled.hook = hook
    one, two, three = read_status(throttled, journals).brokers
    assert (one.differs, two.differs, three.differs) == ((), ("t",), ())
    assert (one.why, two.why, three.why) == (None, None, "broker 3: REQUEST_TIMED_OUT")


def test_a_topic_deleted_between_two_questions_is_asked_for_no_more(
    throttled: WithDefault, journals: JournalFolder
) -> None:
    left = iter(range(2))

    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "partitions" and next(left, None) is not None:
            raise KafkaError("describe topic 'gone'", "UNKNOWN_TOPIC_OR_PARTITION")

    throttled.hook = hook
    assert [broker.why for broker in read_status(throttled, journals).brokers] == [None] * 3


def test_the_journals_of_this_cluster_are_part_of_the_state(throttled: WithDefault, journals: JournalFolder) -> None:
    here, elsewhere = (ThrottleJournal.new("b:1", cluster, ()) for cluster in ("fake-cluster", "another"))
    journals.write(here)
    journals.write(elsewhere)
    assert read_status(throttled, journals).journals == (here,)


def test_what_a_living_process_has_set_is_not_left_behind_between_two_batches(
    throttled: WithDefault, journals: JournalFolder
) -> None:
    journals.write(ThrottleJournal.new("b:1", "fake-cluster", ()))
    assert not read_status(throttled, journals).left_behind
