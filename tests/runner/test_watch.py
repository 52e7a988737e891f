"""The live view: what changed, rates of counters, and the reading of a cluster."""

from types import SimpleNamespace

import pytest

from results.contract.schema import Sample
from testbed.kafka.errors import UnreachableError
from testbed.kafka.types import ConfigResource, PartitionState, Reassignment, TopicPartition
from testbed.runner.watch import CounterRates, ObservedCluster, Watch, changes
from testbed.throttle.configs import LEADER_RATE
from testbed.topology.find import find
from tests.fakes.admin import FakeAdmin


def tp(number):
    return TopicPartition("t", number)


def state(number, leader=1, isr=(1, 2)):
    return PartitionState(tp(number), leader, 0, (1, 2), isr)


def test_every_kind_of_change_is_one_sentence():
    before = ObservedCluster(
        {tp(9): Reassignment((1, 2), (2,), ())},
        {tp(n): state(n) for n in range(4)},
        {("b1", "leader"): None, ("b1", "follower"): "5000000"},
        ("b1", "b2"),
    )
    after = ObservedCluster(
        {tp(n): Reassignment((1, 2, 3), (3,), ()) for n in range(5)},
        {tp(0): state(0, isr=(1,)), tp(1): state(1, leader=2), tp(2): state(2), tp(3): state(3, isr=(1, 2, 3))},
        {("b1", "leader"): "10000000", ("b1", "follower"): None},
        ("b1", "b3"),
    )
    assert changes(before, after) == [
        "b3 serves",
        "b2 does not serve",
        "the leader quota of b1 is set to 10MB/s",
        "the follower quota of b1 is removed",
        "t-0, t-1, t-2, and 2 more begin to move",
        "t-9 has moved",
        "t-0 has lost replicas in sync",
        "t-3 has more replicas in sync",
        "t-1 has another leader",
    ]
    assert changes(after, after) == []


def test_a_counter_gives_a_rate_and_one_that_begins_again_gives_none():
    rates = CounterRates()
    rates.add([Sample(1_000_000, "b1", "nic.tx.bytes", 1000.0)])
    assert rates.value("b1", "nic.tx.bytes") is None
    rates.add([Sample(3_000_000, "b1", "nic.tx.bytes", 5000.0), Sample(3_000_000, "b1", "broker.produce.p99_ms", 7.0)])
    assert rates.value("b1", "nic.tx.bytes") == 2000.0
    assert rates.value("b1", "broker.produce.p99_ms") == 7.0
    assert rates.value("b2", "broker.produce.p99_ms") is None
    rates.add([Sample(4_000_000, "b1", "nic.tx.bytes", 10.0)])
    assert rates.value("b1", "nic.tx.bytes") is None


@pytest.fixture
def watch():
    admin = FakeAdmin({tp(0): (1, 2), tp(1): (2, 1)})
    return Watch(SimpleNamespace(topology=find("three-brokers"), hosts={}), admin), admin


def test_a_reading_has_quotas_and_the_move_and_the_next_one_has_the_changes(watch):
    view, admin = watch
    first = view.read()
    assert first.move is None and first.partitions == 2 and first.under_replicated == 0
    assert [broker.host for broker in first.brokers] == ["b1", "b2", "b3"]
    assert first.brokers[0].sends_at_most == find("three-brokers").brokers[0].nics[0].tx_bps / 8
    admin.alter_configs(ConfigResource.broker(1), {LEADER_RATE: "3000000"})
    admin.polls_needed = 10
    admin.alter_reassignments({tp(0): (3,)})
    second = view.read()
    assert second.brokers[0].leader_quota == 3_000_000.0
    assert (second.move.partitions, second.move.partitions_done) == (1, 0)
    assert [change.text for change in view.latest(second)] == [
        "the leader quota of b1 is set to 3MB/s",
        "t-0 begins to move",
    ]


def test_a_broker_that_is_back_with_the_quota_of_before_has_no_change_of_it(watch):
    view, admin = watch
    admin.alter_configs(ConfigResource.broker(1), {LEADER_RATE: "3000000"})

    def read(*serving):
        admin.broker_ids = serving
        return [change.text for change in view.latest(view.read())]

    assert read(1, 2, 3) == []
    assert read(2, 3) == ["b1 does not serve"]
    assert read(1, 2, 3) == ["b1 serves"]
    read(2, 3)
    admin.alter_configs(ConfigResource.broker(1), {LEADER_RATE: "5000000"})
    assert read(1, 2, 3) == ["b1 serves", "the leader quota of b1 is set to 5MB/s"]


def test_a_cluster_that_does_not_answer_is_a_reading_and_not_a_change(watch):
    """One hung broker is enough for it, and every broker was shown as down."""
    view, admin = watch
    view.read()

    def deaf(call, _args):
        raise UnreachableError("NO_ANSWER", f"{call}: no answer")

    admin.hook = deaf
    silent = view.read()
    assert "no answer" in silent.problem
    assert {broker.serves for broker in silent.brokers} == {None}
    admin.hook = lambda _call, _args: None
    again = view.read()
    assert again.problem == "" and view.latest(again) == []


def test_following_ends_in_time(watch):
    view, _admin = watch
    assert len(list(view.follow(0.05, 0.02))) in (2, 3)
