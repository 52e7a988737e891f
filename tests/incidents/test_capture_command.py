"""`testbed capture`, on a cluster in memory: its options, the plan's file, and what an error leaves."""

import pytest

from testbed.cli.commands.capture import _brokers_and_bytes
from testbed.cli.main import main
from testbed.incidents.captured_file import INCIDENT
from testbed.incidents.read import load
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import LEADER_RATE
from tests.fakes.admin import FakeAdmin

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    admin = FakeAdmin({ORDERS: (1, 2)})
    admin.alter_configs(ConfigResource.broker(2), {LEADER_RATE: "20000000"})
    admin.calls.clear()
    monkeypatch.setattr("testbed.cli.options.admin_of", lambda _args: admin)
    (tmp_path / "plan.json").write_text(Plan({ORDERS: (3, 2)}).to_json().replace("\n", "\r\n"), encoding="utf-8-sig")

    def command(*words, plan="plan.json"):
        code = main(["capture", "seen", "--bootstrap", "x:1", "--measure", "10ms", "--plan", plan, *words])
        return code, admin.calls

    return command


def test_a_plan_with_a_byte_order_mark_and_other_line_ends_is_captured(run, tmp_path):
    assert run()[0] == 0
    assert load(tmp_path / "seen" / INCIDENT).broken.entries[0].actions[0].hosts == [["b3", "b2"]]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--scale-down", "3"], "--scale-down: 3 is not a number of brokers and a size; allowed: both with a comma"),
        (["--scale-down", "x,1GB"], "--scale-down: x,1GB is not a number"),
        (["--scale-down", "3,1"], "--scale-down: 1 has no unit"),
        (["--rates", "0.5"], "--rates is for a smaller cluster; give --scale-down, too"),
        (["--measure-for", "x"], "--measure-for: x is not a number with a unit"),
        (["--measure-for", "0s"], "--measure-for 0s: expected more than 0s"),
        (["--nic", "400"], "--nic: 400 has no unit"),
        (["--nic", "0mbit"], "0bit is too slow; allowed: 8kbit to 100gbit"),
        (["--kafka", "2.4.0"], "2.4.0 is too old; allowed: 3.9.0"),
    ],
)
def test_a_wrong_option_is_refused_before_the_cluster_is_asked(run, words, told, tmp_path, capsys):
    assert run(*words) == (64, [])
    assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize("content", [b"", b"{", b"\x1f\x8b\x08", b"Topic: orders\tPartitionCount: 1\tConfigs:\n"])
def test_another_file_than_a_plan_is_refused_with_its_name(run, content, tmp_path, capsys):
    (tmp_path / "other.txt").write_bytes(content)
    assert run(plan="other.txt") == (64, [])
    assert "testbed capture: other.txt" in capsys.readouterr().err
    assert not (tmp_path / "seen").exists()


@pytest.mark.parametrize("rates", ["nan", "inf", "0"])
def test_rates_that_are_no_factor_leave_nothing(run, rates, tmp_path, capsys):
    assert run("--scale-down", "3,1GB", "--rates", rates)[0] == 64
    assert "each must be above 0, and finite" in capsys.readouterr().err
    assert not (tmp_path / "seen").exists()


@pytest.mark.parametrize("rates", ["1", "0.5", "0.03", "2"])
def test_the_nic_stays_as_many_times_the_throttle_as_it_was(run, rates, tmp_path):
    assert run("--nic", "1600mbit", "--scale-down", "3 brokers, 1 GB", "--rates", rates)[0] == 0
    broken = load(tmp_path / "seen" / INCIDENT).broken
    throttle = broken.entries[0].actions[0].throttle
    assert {host.nic.tx_bps / 8 / throttle for host in broken.topology.brokers} == {10.0}


@pytest.mark.parametrize("text", ["3,1GB", "3, 1GB", "3 brokers, 1 GB", "3brokers,1 GB"])
def test_a_smaller_size_is_read_with_and_without_its_noun(text):
    assert _brokers_and_bytes(text) == (3, 10**9)


@pytest.mark.parametrize("text", ["3", "x,1GB", "3 machines, 1GB", "-3,1GB", ",1GB"])
def test_another_size_is_refused(text):
    with pytest.raises(ValueError, match="is not a number of brokers and a size"):
        _brokers_and_bytes(text)
