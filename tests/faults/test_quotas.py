import itertools
from dataclasses import replace

import pytest

from testbed.errors import TestbedError
from testbed.faults import parse_fault
from testbed.faults.catalogue.quota_alter import QuotaAlter
from testbed.faults.quotas import Layer, Setting, at_rest, corrections, stacked, wanted
from testbed.kafka.types import ConfigResource, PartitionMove, TopicPartition
from testbed.throttle.configs import FOLLOWER_RATE, LEADER_RATE, RATES, ConfigChange
from testbed.throttle.journal import JournalFolder, ThrottleJournal, open_journals
from testbed.throttle.recovery import RecoveryOutcome, recover
from testbed.throttle.throttle import Throttle
from tests.faults.fakes import DEAD, Crash

B1 = ConfigResource.broker(1)


def throttle(value="10000000", original=None):
    """A move's throttle in force on broker 1, journaled as the driver does it."""
    changes = tuple(ConfigChange(B1, key, original, value) for key in (LEADER_RATE, FOLLOWER_RATE))
    journal = ThrottleJournal.new("fake:9092", "fake-cluster", changes)
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


SET = Setting(1, LEADER_RATE)


def layer(value, original=None, **others):
    return Layer({SET: value}, {SET: original}, **others)


def test_the_topmost_layer_counts_then_what_was_there():
    fault, other = layer("1"), Layer({Setting(2, LEADER_RATE): "3"}, {})
    assert wanted(SET, "5", [layer("10"), fault, layer(None)]) is None
    assert wanted(SET, "5", [layer("10"), fault, other]) == "1"
    assert wanted(SET, "5", [fault, layer("10")]) == "10"
    assert wanted(SET, "5", [other]) == "5"


def test_what_is_there_outside_of_throttles_and_faults_is_what_the_lowest_found():
    assert at_rest(SET, "7", []) == "7"
    assert at_rest(SET, "10", [layer("10", "7"), layer("1", "10")]) == "7"
    assert at_rest(SET, "10", [Layer({Setting(2, LEADER_RATE): "3"}, {})]) == "10"


def test_a_throttle_lies_beneath_the_faults_that_were_put_over_it_and_over_the_others():
    early, late = throttle("10"), throttle("20")
    faults = [layer("1"), layer("2", beneath=(early.id,)), layer("3", beneath=(early.id, "one that is over"))]
    order = [each.throttle or each.rates[SET] for each in stacked(faults, [late, early])]
    assert order == ["1", early.id, "2", "3", late.id]


def test_only_the_throttle_right_above_a_fault_has_read_what_that_had_set():
    def corrected(*stack):
        return {name: found[SET] for name, found in corrections(stack).items()}

    taken = layer("1", "7", leaving=True)
    assert corrected(taken, layer("10", "1", throttle="t")) == {"t": "7"}
    assert corrected(layer("2", "7"), taken, layer("10", "1", throttle="t")) == {"t": "2"}
    assert corrected(layer("2", "7", leaving=True), taken, layer("10", "1", throttle="t")) == {"t": "7"}
    # Not the second throttle, not one over another fault, and not one that had been there before.
    assert corrected(taken, layer("10", "1", throttle="t"), layer("20", "1", throttle="u")) == {"t": "7"}
    assert corrected(taken, layer("2", "7"), layer("10", "1", throttle="t")) == {}
    assert corrected(layer("10", "1", throttle="t"), taken) == {}
    # Somebody else has changed it in between: what was read is nobody's to correct.
    assert corrected(taken, layer("10", "4", throttle="t")) == {}


MOVE = [PartitionMove.between(TopicPartition("orders", 0), (1,), (2,))]
SPANS = {
    "FTft": "the throttle is set and ends beneath no fault: the fault is healed in between",
    "FTtf": "the throttle is set and ends while the fault lasts",
    "TFft": "the fault comes and goes within the throttle",
    "TFtf": "the fault is put over the throttle and outlasts it",
}


@pytest.mark.parametrize("before", [None, "7", "1000000", "10000000"])
@pytest.mark.parametrize("rate", ["1MB/s", "none", "10MB/s"])
@pytest.mark.parametrize("order", SPANS)
def test_a_fault_and_a_throttle_in_every_order_end_where_they_began(one, faults, order, rate, before):
    fault = parse_fault(f"quota-alter brokers=b1 rate={rate}")
    bad = None if fault.rate is None else str(fault.rate)
    one.cluster.assignment = {TopicPartition("orders", 0): (1,)}
    one.cluster.configs = {B1: dict.fromkeys(RATES, before)} if before else {}
    throttle = Throttle(one.cluster, JournalFolder())
    steps = {
        "F": lambda: faults.add(fault),
        "T": lambda: throttle.set(MOVE, 10_000_000),
        "f": faults.clear,
        "t": lambda: throttle.restore(1.0),
    }
    # What an operator finds after each step: whoever came last counts, and what is left when that one has gone.
    after = {
        "FTft": [bad, "10000000", "10000000", before],
        "FTtf": [bad, "10000000", bad, before],
        "TFft": ["10000000", bad, "10000000", before],
        # A throttle that found its own rate there has changed nothing, and puts nothing back.
        # Nor does it set again what another client has removed.
        "TFtf": ["10000000", bad, bad if before == "10000000" or bad is None else before, before],
    }[order]
    there = before
    for step, expected in zip(order, after, strict=True):
        if step == "F" and bad == there:  # refused: nothing would change
            with pytest.raises(TestbedError, match="nothing would change"):
                steps[step]()
            return
        steps[step]()
        there = one.cluster.configs.get(B1, {}).get(LEADER_RATE)
        assert there == expected, f"{order} after {step}"
    assert one.cluster.configs.get(B1, {}) == (dict.fromkeys(RATES, before) if before else {})
    assert JournalFolder().ids() == []


@pytest.mark.parametrize("clearing", list(itertools.permutations(range(2))))
def test_two_faults_beneath_a_throttle_are_healed_in_any_order(one, faults, clearing):
    one.cluster.assignment = {TopicPartition("orders", 0): (1,)}
    ids = [faults.add(parse_fault(f"quota-alter brokers=b1 rate={rate}")) for rate in ("1MB/s", "2MB/s")]
    throttle = Throttle(one.cluster, JournalFolder())
    throttle.set(MOVE, 10_000_000)
    for which in clearing:
        faults.clear(ids[which])
        assert one.cluster.configs[B1] == dict.fromkeys(RATES, "10000000")
    throttle.restore(1.0)
    assert one.cluster.configs == {}


def test_faults_beneath_and_over_a_throttle_are_healed_together(one, faults):
    one.cluster.assignment = {TopicPartition("orders", 0): (1,)}
    throttle = Throttle(one.cluster, JournalFolder())
    faults.add(parse_fault("quota-alter brokers=b1 rate=1MB/s"))
    throttle.set(MOVE, 10_000_000)
    faults.add(parse_fault("quota-alter brokers=b1,b2 rate=2MB/s"))
    faults.clear()
    assert one.cluster.configs[B1] == dict.fromkeys(RATES, "10000000")
    throttle.restore(1.0)
    assert one.cluster.configs == {}


def test_a_throttle_changed_while_it_is_in_force_keeps_what_was_corrected(one, faults):
    one.cluster.assignment = {TopicPartition("orders", 0): (1,)}
    throttle = Throttle(one.cluster, JournalFolder())
    fault = faults.add(parse_fault("quota-alter brokers=b1 rate=1MB/s"))
    throttle.set(MOVE, 10_000_000)
    faults.clear(fault)
    throttle.change_rate(20_000_000, 1.0)
    assert one.cluster.configs[B1] == dict.fromkeys(RATES, "20000000")
    throttle.restore(1.0)
    assert one.cluster.configs == {}


def test_healed_and_killed_before_the_end_it_is_healed_again(one, faults, monkeypatch):
    one.cluster.assignment = {TopicPartition("orders", 0): (1,)}
    throttle = Throttle(one.cluster, JournalFolder())
    faults.add(parse_fault("quota-alter brokers=b1 rate=1MB/s"))
    throttle.set(MOVE, 10_000_000)
    with monkeypatch.context() as killed:
        killed.setattr(QuotaAlter, "settle", _die)
        with pytest.raises(Crash):
            faults.clear()
    faults.clear()
    assert faults.list() == ()
    throttle.restore(1.0)
    assert one.cluster.configs == {}


def _die(*_args):
    raise Crash("killed between the journal and the brokers")


def test_a_throttle_that_a_dead_process_left_over_a_fault_is_recovered_to_what_was_before_both(one, faults):
    one.cluster.assignment = {TopicPartition("orders", 0): (1,)}
    folder = JournalFolder()
    faults.add(parse_fault("quota-alter brokers=b1 rate=1MB/s"))
    Throttle(one.cluster, folder).set(MOVE, 10_000_000)
    (journal,) = open_journals(folder)
    folder.write(replace(journal, owner=DEAD))
    faults.clear()
    (found,) = recover(lambda _bootstrap: one.cluster, folder)
    assert found.outcome is RecoveryOutcome.RESTORED
    assert one.cluster.configs == {}
