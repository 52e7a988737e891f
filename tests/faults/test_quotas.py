import pytest

from testbed.errors import TestbedError
from testbed.faults import parse_fault
from testbed.faults.quotas import Setting, at_rest, wanted
from testbed.kafka.types import ConfigResource
from testbed.reassignment.changes import FOLLOWER_RATE, LEADER_RATE, Change
from testbed.reassignment.journal import Journal, JournalFolder

B1 = ConfigResource.broker(1)


def throttle(value="10000000", original=None):
    """A move's throttle in force on broker 1, journaled as the driver does it."""
    changes = tuple(Change(B1, key, original, value) for key in (LEADER_RATE, FOLLOWER_RATE))
    journal = Journal.new("fake:9092", "fake-cluster", changes)
    JournalFolder().write(journal)
    return journal


def test_rates_are_altered_through_the_broker_itself_and_put_back(one, faults):
    with faults.injected(parse_fault("quota-alter brokers=b1,b2 rate=1MB/s side=follower")):
        for broker in (1, 2):
            assert one.cluster.configs[ConfigResource.broker(broker)] == {FOLLOWER_RATE: "1000000"}
    assert one.cluster.configs == {}


def test_what_somebody_had_set_before_is_put_back(one, faults):
    one.cluster.configs[B1] = {LEADER_RATE: "7"}
    with faults.injected(parse_fault("quota-alter brokers=b1 rate=1MB/s")):
        pass
    assert one.cluster.configs == {B1: {LEADER_RATE: "7"}}


def test_a_throttle_in_force_is_in_force_again(one, faults):
    throttle()
    one.cluster.configs[B1] = {LEADER_RATE: "10000000", FOLLOWER_RATE: "10000000"}
    with faults.injected(parse_fault("quota-alter brokers=b1 rate=none")):
        assert B1 not in one.cluster.configs
    assert one.cluster.configs[B1] == {LEADER_RATE: "10000000", FOLLOWER_RATE: "10000000"}


def test_a_throttle_that_has_ended_meanwhile_does_not_come_back(one, faults):
    journal = throttle()
    one.cluster.configs[B1] = {LEADER_RATE: "10000000", FOLLOWER_RATE: "10000000"}
    faults.add(parse_fault("quota-alter brokers=b1 rate=1MB/s"))
    del one.cluster.configs[B1]  # as the driver puts it back
    JournalFolder().remove(journal.id)
    faults.clear()
    assert one.cluster.configs == {}


def test_a_broker_that_does_not_take_it_is_an_error(one, faults):
    one.cluster.deaf_brokers = frozenset({2})
    with pytest.raises(TestbedError, match="the rates to be broker 2 leader.replication.throttled.rate=1000000"):
        faults.add(parse_fault("quota-alter brokers=b2 rate=1MB/s"))


def test_the_last_fault_counts_then_the_throttle_then_what_was_there():
    setting = Setting(1, LEADER_RATE)
    changes = [Change(B1, LEADER_RATE, None, "10")]
    assert wanted(setting, "5", [{setting: "1"}, {setting: None}], changes) is None
    assert wanted(setting, "5", [{setting: "1"}, {Setting(2, LEADER_RATE): "3"}], changes) == "1"
    assert wanted(setting, "5", [], changes) == "10"
    assert wanted(setting, "5", [], []) == "5"


def test_what_is_there_outside_of_throttles_and_faults(one, faults):
    setting = Setting(1, LEADER_RATE)
    assert at_rest(setting, "7", [], []) == "7"
    assert at_rest(setting, "10", [], [Change(B1, LEADER_RATE, "7", "10")]) == "7"
    faults.add(parse_fault("quota-alter brokers=b1 rate=1MB/s"))
    first = faults.list()[0].fault
    assert at_rest(setting, "1000000", [first], []) is None
