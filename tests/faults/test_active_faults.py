"""The life of a fault, of every kind: put in, seen, healed; also after a crash at any point."""

import itertools

import pytest

from testbed.errors import KafkaStuck, TestbedError, UsageError
from testbed.faults import FaultDidNotFire, Faults, parse_fault
from testbed.faults.active_faults import Faults as Door
from testbed.faults.active_faults import collect_faults, heal_leftovers, reconfigure
from testbed.faults.journal import FaultJournal
from testbed.wait import WaitTimeout
from tests.faults.fakes import DEAD, Crash, FakeTestbed, declared

ON_RACKS = [
    "broker-kill host=b4",
    "broker-term host=b4",
    "broker-pause host=b4",
    "broker-restart host=b4",
    "controller-failover",
    "nic-rate host=b2 rate=50mbit",
    "nic-down host=b4",
    "nic-cut hosts=b1,b2 peers=b3,b4",
    "uplink-cut rack=r2",
    "uplink-rate rack=r2 rate=50mbit",
    "uplink-rate rack=r1 rate=50mbit",
    "cpu-limit host=b4 cpus=0.25",
    "quota-alter brokers=b1,b4 rate=1MB/s",
]


@pytest.fixture
def quick(monkeypatch):
    """Deadlines that a test can wait for."""
    monkeypatch.setattr("testbed.faults.active_faults._LOOK_S", 0.01)
    for text in ON_RACKS:
        monkeypatch.setattr(type(parse_fault(text)), "deadline_s", 0.05)


@pytest.mark.parametrize("text", ON_RACKS)
def test_it_takes_effect_and_is_healed(racks, text):
    faults = Faults(racks)
    with faults.injected(parse_fault(text)) as entry_id:
        assert [entry.id for entry in faults.list()] == [entry_id]
        assert racks.kernel.changes
        during = racks.snapshot()
    assert racks.snapshot() == declared(racks)
    assert faults.list() == ()
    changes_nothing = ("broker-restart", "controller-failover")
    assert (during == declared(racks)) == text.startswith(changes_nothing)


@pytest.mark.parametrize("text", ON_RACKS)
def test_a_crash_at_any_change_is_healed_by_whoever_comes_next(racks, monkeypatch, text):
    for crash_at in itertools.count():
        testbed = racks
        start = len(testbed.kernel.changes)
        testbed.kernel.crash_at = start + crash_at
        faults = Faults(testbed)
        with monkeypatch.context() as patch:
            # As after a kill -9: no handler runs, the owner is dead.
            patch.setattr(Door, "_heal", lambda _self, _entries: None)
            patch.setattr(faults, "_owner", DEAD)
            try:
                faults.add(parse_fault(text))
                crashed = False
            except Crash:
                crashed = True
        testbed.kernel.crash_at = None
        assert len(faults.list()) == 1
        said = []
        heal_leftovers(testbed, said.append)
        assert said[0].startswith(f"healed {text}")
        assert testbed.snapshot() == declared(testbed)
        assert faults.list() == ()
        if not crashed:
            break
    assert crash_at > 0


@pytest.mark.parametrize("text", ON_RACKS)
def test_a_crash_while_healing_is_healed_too(racks, monkeypatch, text):
    for crash_at in itertools.count():
        faults = Faults(racks)
        faults.add(parse_fault(text))
        racks.kernel.crash_at = len(racks.kernel.changes) + crash_at
        try:
            faults.clear()
            crashed = False
        except Crash:
            crashed = True
        racks.kernel.crash_at = None
        faults.clear()
        assert racks.snapshot() == declared(racks)
        if not crashed:
            break


@pytest.mark.parametrize("text", [t for t in ON_RACKS if "quota" not in t and "failover" not in t])
def test_one_that_does_not_take_effect_is_an_error_and_leaves_nothing(racks, quick, text):
    racks.kernel.deaf = True
    faults = Faults(racks)
    with pytest.raises(TestbedError) as error:
        faults.add(parse_fault(text))
    assert faults.list() == ()
    # The network and the cgroup are read back by `apply` already.
    if text.startswith("broker"):
        assert isinstance(error.value, FaultDidNotFire)
        assert str(error.value).startswith(
            f"{text} did not take effect within 0.05 s: process 100 is there, in state S"
        )


def test_a_signal_that_is_ignored_did_not_fire(one, faults, quick):
    one.nodes["b2"].deaf_to = {"TERM"}
    with pytest.raises(FaultDidNotFire, match="broker-term host=b2 did not take effect within 0.05 s: process 100"):
        faults.add(parse_fault("broker-term host=b2"))
    assert one.snapshot() == declared(one)


def test_packets_that_arrive_all_the_same_did_not_fire(one, faults, quick, monkeypatch):
    monkeypatch.setattr(FakeTestbed, "reaches", lambda *_args: True)
    with pytest.raises(FaultDidNotFire, match="b1 still reaches b2"):
        faults.add(parse_fault("nic-cut hosts=b1 peers=b2"))
    assert one.snapshot() == declared(one)


def test_what_cannot_be_healed_stays_in_the_journal(one, faults):
    faults.add(parse_fault("broker-kill host=b2"))
    one.kernel.deaf = True
    with pytest.raises(
        TestbedError, match=r"not back to what its topology declares:\n  fault 1 \(broker-kill host=b2\)"
    ):
        faults.clear()
    assert [(entry.id, entry.healing) for entry in faults.list()] == [(1, True)]
    one.kernel.deaf = False
    faults.clear(1)
    assert one.snapshot() == declared(one)


def test_a_broker_that_does_not_come_back_is_told_and_tried_again(one, faults):
    faults.add(parse_fault("broker-kill host=b2"))
    one.nodes["b3"].state = None  # another one, by itself
    with pytest.raises(TestbedError, match="Kafka on b3 does not run; the end of its log"):
        faults.clear()
    assert [entry.id for entry in faults.list()] == [1]
    one.nodes["b3"].state = "S"
    faults.clear()
    assert faults.list() == ()


def test_the_error_of_a_broker_that_is_late_has_its_cause(one, faults):
    """A run that restarted another broker could not see that only the time was over: Kafka was blamed."""
    one.nodes["b3"].state = "T"
    with (
        pytest.raises(TestbedError, match="not back to what its topology declares") as caught,
        faults.injected(parse_fault("broker-restart host=b2")),
    ):
        pass
    stuck = caught.value.__cause__
    assert isinstance(stuck, KafkaStuck) and isinstance(stuck.__cause__, WaitTimeout)


def test_healing_waits_for_brokers_only_when_nothing_else_keeps_them_away(one, faults):
    first = faults.add(parse_fault("broker-kill host=b1"))
    second = faults.add(parse_fault("broker-kill host=b2"))
    faults.clear(first)
    assert one.served == 0
    faults.clear(second)
    assert one.served == 1


def test_what_is_over_keeps_no_broker_away(one, faults):
    faults.add(parse_fault("broker-restart host=b3"))
    faults.clear(faults.add(parse_fault("broker-kill host=b2")))
    assert one.served == 1


def test_brokers_first_then_what_asks_them(one, faults):
    faults.add(parse_fault("quota-alter brokers=b2 rate=1MB/s"))
    quota = faults.list()[0].id
    faults.add(parse_fault("broker-kill host=b2"))
    with pytest.raises(TestbedError, match="broker 2 does not answer"):
        faults.clear(quota)
    faults.clear()
    assert one.snapshot() == declared(one)


def test_an_error_in_the_block_heals(one, faults):
    with pytest.raises(KeyError), faults.injected(parse_fault("nic-down host=b2")):
        raise KeyError
    assert one.snapshot() == declared(one)


def test_what_was_cleared_within_the_block_is_no_error(one, faults):
    with faults.injected(parse_fault("nic-down host=b2")) as entry_id:
        faults.clear(entry_id)


def test_an_id_that_there_is_not(one, faults):
    with pytest.raises(UsageError, match="testbed one has no fault 7; active are: none"):
        faults.clear(7)
    faults.add(parse_fault("nic-down host=b2"))
    with pytest.raises(UsageError, match=r"active are: 1 \(nic-down host=b2\)"):
        faults.clear(7)


def test_faults_of_a_run_that_goes_on_are_only_cleared_by_their_id(one, faults, monkeypatch):
    faults.add(parse_fault("nic-down host=b2"))
    other = Faults(one)
    monkeypatch.setattr("testbed.faults.active_faults.Owner.this_process", classmethod(lambda _cls: DEAD))
    assert other.clear() == ()
    assert [entry.id for entry in other.clear(1)] == [1]


def test_what_was_put_in_by_hand_stays_when_others_are_collected(one):
    Faults(one, by_hand=True).add(parse_fault("nic-down host=b2"))
    said = []
    heal_leftovers(one, said.append)
    assert said == [
        "fault 1 (nic-down host=b2) is active, added by a user: `testbed fault clear one 1` heals it",
    ]
    assert collect_faults(lambda _name: one, dry_run=False) == []
    assert len(Faults(one).clear()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "broker-kill host=b2",
        "broker-pause host=b2",
        "broker-stall host=b2 pause=1s every=2s",
        "clock-skew host=b2 by=300s",
    ],
)
def test_a_restart_that_would_end_a_fault_is_refused(one, monkeypatch, text):
    """The cluster of a paused broker stayed down; the others ran without the fault, which was listed as active."""
    restarted = []
    monkeypatch.setattr(one, "reconfigure", lambda overlay, **_named: restarted.append(overlay), raising=False)
    monkeypatch.setattr(one, "is_configured", lambda overlay, **_named: overlay == {"a": "1"}, raising=False)
    FaultJournal("one").add(parse_fault("nic-rate host=b2 rate=50mbit"), None)
    entry = FaultJournal("one").add(parse_fault(text), None)
    with pytest.raises(TestbedError) as error:
        reconfigure(one, {}, None, print)
    told = f"Kafka has to be restarted, which would end fault 2 ({text}); `testbed fault clear one` heals first"
    assert str(error.value) == told
    assert restarted == []
    reconfigure(one, {"a": "1"}, None, print)
    FaultJournal("one").healed(entry)
    FaultJournal("one").add(parse_fault(text.replace("b2", "b9")), None)  # b9 has left the testbed
    reconfigure(one, {}, None, print)
    assert restarted == [{"a": "1"}, {}]


def test_gc_heals_the_dead_and_says_so(one, faults, monkeypatch):
    monkeypatch.setattr(one, "close", lambda: None, raising=False)
    monkeypatch.setattr(faults, "_owner", DEAD)
    faults.add(parse_fault("broker-pause host=b2"))
    told = "healed of broker-pause host=b2, whose process is dead"
    assert collect_faults(lambda _name: one, dry_run=True) == [f"one: would be {told}"]
    assert one.nodes["b2"].state == "T"
    assert collect_faults(lambda _name: one, dry_run=False) == [f"one: {told}"]
    assert one.snapshot() == declared(one)


def test_gc_goes_on_after_one_that_cannot_be_healed(one, faults, monkeypatch):
    monkeypatch.setattr(faults, "_owner", DEAD)
    faults.add(parse_fault("broker-pause host=b2"))

    def attach(name):
        raise TestbedError(f"testbed {name} is not whole")

    with pytest.raises(TestbedError, match="one: testbed one is not whole"):
        collect_faults(attach, dry_run=False)
