"""Broken brokers: loaded where they were asked for, named wherever the testbed is named, healed by a restart."""

import json

import pytest

from testbed.defects import agent, by_host
from testbed.defects.agent import NOTES, notes
from testbed.errors import TestbedError
from testbed.provision.testbed import Testbed
from tests.containers.conftest import cli

pytestmark = pytest.mark.containers


def test_a_defect_is_loaded_where_it_was_asked_for_and_nowhere_else():
    told = cli("up", "two-brokers", "--name", "broken", "--defect", "late-isr@b2:seconds=3")
    try:
        assert told.returncode == 0, told.stderr
        assert "broken on purpose: late-isr seconds=3 on b2" in told.stdout
        with Testbed.attach("broken") as testbed:
            assert [note.what for note in notes(testbed.hosts["b2"])] == ["loaded"]
            assert notes(testbed.hosts["b1"]) == ()
            status = cli("status", "broken", "--json")
            assert (status.returncode, json.loads(status.stdout)["defects"]) == (1, ["late-isr seconds=3 on b2"])
            again = cli("up", "two-brokers", "--name", "broken")
            assert again.returncode == 70
            assert "is up with late-isr seconds=3 on b2" in again.stderr

            wanted = by_host(["leader-throttle-leak@b1", "late-isr@b1"], testbed.topology)
            testbed.reconfigure({}, defects=wanted)
            assert {note.name for note in notes(testbed.hosts["b1"])} == {"late-isr", "leader-throttle-leak"}
            command = testbed.hosts["b2"].run(f"tr '\\0' ' ' < /proc/{testbed.node('b2').pid()}/cmdline").stdout
            assert "testbed-defects" not in command

            testbed.reconfigure({}, defects={})
            assert json.loads(cli("status", "broken", "--json").stdout)["ok"]
    finally:
        cli("down", "broken")


def test_a_broker_that_lost_its_defect_is_no_testbed(monkeypatch):
    """Without the note a broker may run healthy, and its verdict would be taken for a broken one's."""
    monkeypatch.setattr(agent, "agent_flag", lambda _options: "-Dnothing=else")
    with pytest.raises(TestbedError, match=rf"b1 runs without late-isr.*{NOTES} has no such note"):
        Testbed.up("two-brokers", name="unbroken", defects={"b1": ("late-isr",)})


@pytest.mark.nightly
def test_the_selftest_finds_a_defect_on_brokers_and_no_healthy_one(tmp_path):
    told = cli("selftest", "--defect", "target-order-reversed", "--store", str(tmp_path), "--json")
    found = json.loads(told.stdout)
    broken, healthy = found["detections"]
    assert (broken["result"], broken["as_expected"], found["false_alarms"]) == ("found", True, 0), told.stderr
    assert (healthy["result"], told.returncode) == ("no alarm", 0)
