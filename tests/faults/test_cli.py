import json

import pytest

from testbed.cli.main import main
from testbed.faults import kinds, parse_fault
from testbed.faults.journal import FaultJournal
from testbed.provision import upgrade
from testbed.provision.testbed import Testbed
from tests.faults.fakes import DEAD


def test_kinds_are_told_with_their_parameters(capsys):
    assert main(["fault", "kinds"]) == 0
    told = capsys.readouterr().out
    assert "nic-rate host=… rate=… [direction=both] [nic=all]\n    a host's NIC is slower" in told
    assert main(["fault", "kinds", "--json"]) == 0
    assert sorted(json.loads(capsys.readouterr().out)) == sorted(kinds())


def test_faults_are_listed_with_whose_they_are(one, capsys):
    journal = FaultJournal("one")
    journal.add(parse_fault("nic-down host=b1"), None)
    journal.add(parse_fault("broker-kill host=b2"), DEAD)
    assert main(["fault", "list", "one"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("1   nic-down host=b1") and lines[1].endswith("hand")
    assert lines[2].endswith("process 1 (dead: `testbed gc` heals it)")
    assert main(["fault", "list", "one", "--json"]) == 0
    assert [each["id"] for each in json.loads(capsys.readouterr().out)] == [1, 2]


def test_an_upgrade_that_would_end_a_fault_is_refused(one, monkeypatch, capsys):
    upgraded = []

    def rolling_upgrade(_testbed, _to, hosts, *_words, **_named):
        upgraded.append(hosts)
        return upgrade.UpgradeResult((), {})

    monkeypatch.setattr(Testbed, "attach", lambda _name: one)
    monkeypatch.setattr(upgrade, "rolling_upgrade", rolling_upgrade)
    monkeypatch.setattr(one, "close", lambda: None, raising=False)
    FaultJournal("one").add(parse_fault("clock-skew host=b2 by=300s"), None)
    assert main(["upgrade", "one", "--to", "4.3.1"]) == 70
    assert "would end fault 1 (clock-skew host=b2 by=300s)" in capsys.readouterr().err
    assert main(["upgrade", "one", "--to", "4.3.1", "--hosts", "b1,b3"]) == 0
    assert upgraded == [["b1", "b3"]]


def test_a_fault_that_is_over_is_not_active(one, monkeypatch, capsys):
    """`status` said that the testbed was not as declared, until a user cleared the restart of a broker."""
    monkeypatch.setattr(Testbed, "attach", lambda _name: one)
    assert main(["fault", "add", "one", "broker-restart", "host=b2", "nic-rate", "host=b1", "rate=50mbit"]) == 0
    restarted, slower = capsys.readouterr().out.splitlines()
    assert restarted.startswith("1: broker-restart host=b2, in effect after ") and restarted.endswith(" s, and over")
    assert slower.startswith("2: nic-rate host=b1 rate=50mbit, in effect after ") and slower.endswith(" s")
    assert [entry.id for entry in FaultJournal("one").entries()] == [2]


def test_no_faults_is_said(one, capsys):
    assert main(["fault", "list", "one"]) == 0
    assert capsys.readouterr().out == "no faults\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fault", "list", "nowhere"], "there is no testbed nowhere"),
        (["fault", "add", "one", "broker-kil", "host=b1"], "did you mean broker-kill?"),
        (["fault", "add", "one", "nic-rate", "host=b1"], "rate is missing"),
    ],
)
def test_wrong_usage_is_64(one, capsys, words, told):
    assert main(words) == 64
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("words", [["fault"], ["fault", "heal", "one"], ["fault", "clear", "one", "first"]])
def test_wrong_words_are_64(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 64
