import json

import pytest

from testbed.errors import TestbedError
from testbed.faults import Faults, parse_fault
from testbed.faults import active_faults as module
from testbed.faults import journal as journals
from testbed.faults.catalogue.broker_restart import BrokerRestart
from testbed.faults.journal import FaultJournal, FaultJournalError, active
from testbed.faults.network import NetworkFault
from testbed.owner import Owner
from testbed.provision import state as states
from tests.faults.fakes import DEAD


def test_what_is_written_is_read_with_its_notes_and_its_owner(one):
    journal = FaultJournal("one")
    entry = journal.add(BrokerRestart("b2", before=7), Owner.this_process())
    assert journal.entries() == (entry,)
    assert entry.fault == BrokerRestart("b2", before=7)
    assert not entry.dead
    assert journal.add(BrokerRestart("b2"), DEAD).dead
    assert not journal.add(BrokerRestart("b2"), None).dead


def test_an_id_is_never_used_twice(one):
    journal = FaultJournal("one")
    first = journal.add(BrokerRestart("b1"), None)
    journal.healed(first)
    assert journal.add(BrokerRestart("b1"), None).id == first.id + 1
    assert (states.folder("one") / "faults" / "1.healed").exists()


def test_the_last_healed_faults_stay_and_the_others_go(one, monkeypatch):
    monkeypatch.setattr(journals, "HEALED_MOST", 2)
    journal = FaultJournal("one")
    kept = journal.add(BrokerRestart("b1"), None)
    for _ in range(4):
        journal.healed(journal.add(BrokerRestart("b1"), None))
    assert [entry.id for entry in journal.history()] == [kept.id, 4, 5]
    assert journal.add(BrokerRestart("b1"), None).id == 6


def test_what_is_being_healed_is_listed_but_not_active(one):
    journal = FaultJournal("one")
    entry = journal.add(parse_fault("nic-down host=b1"), None)
    assert len(active("one", NetworkFault)) == 1
    journal.healing(entry)
    assert active("one", NetworkFault) == ()
    assert [each.healing for each in journal.entries()] == [True]


def test_it_is_on_disk_before_the_fault_is_put_in(one, faults, monkeypatch):
    seen = []
    monkeypatch.setattr(
        type(one.nodes["b2"]), "signal", lambda node, name: seen.append(FaultJournal("one").entries()) or None
    )
    monkeypatch.setattr("testbed.faults.active_faults._LOOK_S", 0.01)
    monkeypatch.setattr(parse_fault("broker-kill host=b2").__class__, "deadline_s", 0.05)
    with pytest.raises(TestbedError):
        faults.add(parse_fault("broker-kill host=b2"))
    assert [str(entry) for entry in seen[0]] == ["1 (broker-kill host=b2)"]


def test_nothing_is_put_in_when_it_cannot_be_written(one, faults):
    states.forget("one")
    with pytest.raises(FaultJournalError, match="is testbed one still up?"):
        faults.add(parse_fault("broker-kill host=b2"))
    assert one.kernel.changes == []
    assert not states.folder("one").exists()


@pytest.mark.parametrize("content", ["", "[]", '{"schema": 9}', '{"schema": 1, "fault": "no-such host=b1"}'])
def test_a_damaged_entry_says_what_to_do_and_clearing_heals_everything(one, faults, content):
    faults.add(parse_fault("broker-kill host=b2"))
    faults.add(parse_fault("nic-down host=b3"))
    (states.folder("one") / "faults" / "1.json").write_text(content)
    with pytest.raises(FaultJournalError, match="`testbed fault clear one` sets it aside and heals everything"):
        faults.list()
    faults.clear()
    assert one.nodes["b2"].state == "S"
    assert one.kernel.down == set()
    assert faults.list() == ()


def test_a_restore_that_failed_is_made_again_by_the_next_clear(one, faults, monkeypatch):
    faults.add(parse_fault("nic-down host=b3"))
    (states.folder("one") / "faults" / "1.json").write_text("")
    restore = module._put_back_everything

    def failing(_testbed):
        raise TestbedError("no answer")

    monkeypatch.setattr(module, "_put_back_everything", failing)
    with pytest.raises(TestbedError, match="no answer"):
        faults.clear()
    assert one.kernel.down
    monkeypatch.setattr(module, "_put_back_everything", restore)
    faults.clear()
    assert one.kernel.down == set()
    assert faults.add(parse_fault("nic-down host=b3")) == 2


def test_an_entry_is_plain_to_read(one, faults):
    faults.add(parse_fault("broker-restart host=b2"))
    document = json.loads((states.folder("one") / "faults" / "1.json").read_text())
    assert (document["fault"], document["notes"]) == ("broker-restart host=b2", {"before": 100})


def test_faults_are_the_testbeds_own(one):
    from tests.faults.fakes import THREE, FakeTestbed

    Faults(one).add(parse_fault("nic-down host=b1"))
    assert Faults(FakeTestbed(THREE, "two")).list() == ()
