"""What a topology asks of the machine is looked for before anything is made, and the refusal names who asks."""

import sys
from types import SimpleNamespace

import pytest

from testbed.errors import TestbedError
from testbed.hosts import CommandResult
from testbed.provision import machine
from testbed.provision.fleet import MachineNotReady, _require
from testbed.provision.machine import MachineLacks, Need, asked_for, refusals, require_machine
from testbed.provision.plan_text import describe
from testbed.provision.testbed import Testbed
from testbed.software.distribution import Distribution
from testbed.topology import loads
from testbed.topology.find import READY, find, load

FAR = """
name: far
kafka: {version: 4.3.1}
racks: {left: {}, right: {uplink: {rate: 1gbit, rx_loss: 1%}}}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both, rack: left, nic: {rx_delay: 20ms}, disk: {size: 1GB, bandwidth: 50MB/s}}
  b2: {role: broker, rack: right, disk: {size: 1GB}}
"""


def test_what_is_asked_for_and_by_whom():
    assert asked_for(loads(FAR)) == {
        Need.NETEM: ("b1 (data0)", "rack right (uplink)"),
        Need.DISK: ("b1", "b2"),
        Need.BANDWIDTH: ("b1",),
    }


def test_ready_topologies_ask_for_nothing_special():
    assert all(asked_for(load(path)) == {} for path in READY.glob("*.yaml"))


def test_a_machine_that_can_is_not_refused_and_asked_only_what_is_needed():
    require_machine(loads(FAR), dict.fromkeys(Need, lambda: ""))
    require_machine(load(READY / "two-brokers.yaml"), {})


def test_all_that_is_missing_is_told_at_once():
    with pytest.raises(MachineLacks) as refused:
        require_machine(
            loads(FAR), {Need.NETEM: lambda: "no netem", Need.DISK: lambda: "", Need.BANDWIDTH: lambda: "too old"}
        )
    assert str(refused.value).split("\n") == [
        "far cannot be brought up on this machine:",
        "  this machine cannot provide delay, jitter and loss, declared by b1 (data0), rack right (uplink): no netem",
        "  this machine cannot provide a disk's bandwidth, declared by b1: too old",
    ]


TWO = """
name: two
machines: {here: {engine: local}, m1: {engine: "ssh://h1"}}
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both, machine: here, nic: {delay: 1ms}, cpus: 2}
  b2: {role: broker, machine: m1, nic: {delay: 5ms}, cpus: 300}
"""


def test_each_machine_is_asked_for_what_its_own_hosts_need(monkeypatch):
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 2)
    two = loads(TWO)
    assert asked_for(two) == {Need.NETEM: ("b1 (data0)",)}
    require_machine(two, {Need.NETEM: lambda: ""})
    assert refusals(two, "m1", 300, {Need.NETEM: lambda: ""}) == []
    assert refusals(two, "m1", 299, {Need.NETEM: lambda: "no netem"}) == [
        "it cannot provide 300 CPUs, declared by b2: it has 299",
        "it cannot provide delay, jitter and loss, declared by b2 (data0): no netem",
    ]


@pytest.mark.parametrize(("said", "cpus"), [("", 512), ("Error: Specified qdisc kind is unknown.\n", 64)])
def test_another_machine_that_cannot_have_a_host_is_refused_before_anything_is_made(said, cpus):
    def run(command, **_settings):
        out = "0\n" if command.startswith("id -u") else said if "netem" in command else ""
        return CommandResult(command, 0, out, "", 0.0)

    asked = loads(TWO), "m1", SimpleNamespace(run=run), SimpleNamespace(info=lambda: {"NCPU": cpus})
    if not said:
        _require(*asked)
        return
    with pytest.raises(MachineNotReady) as refused:
        _require(*asked)
    assert str(refused.value) == (
        "machine m1 cannot have hosts: it cannot provide 300 CPUs, declared by b2: it has 64; "
        "it cannot provide delay, jitter and loss, declared by b2 (data0): "
        "its kernel has no netem (Error: Specified qdisc kind is unknown.); `modprobe sch_netem` loads it there"
    )


class NoEngine:
    def __getattr__(self, name):
        raise AssertionError(f"the engine was asked to {name}")


def test_an_object_store_needs_its_extra_before_anything_is_made(monkeypatch):
    """MinIO was built and the hosts were made before the first bucket needed it."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(TestbedError, match=r"this needs boto3: pip install 'testbed\[s3\]'"):
        Testbed._make(NoEngine(), find("s3"), "s3", {}, {}, False, print)  # type: ignore[arg-type]


def test_nothing_is_made_when_something_is_missing(monkeypatch):
    monkeypatch.setattr(machine, "try_kind", lambda kind: "Specified qdisc kind is unknown")
    monkeypatch.setattr(machine, "no_disk", lambda: "")
    with pytest.raises(
        TestbedError, match="the kernel has no netem .Specified qdisc kind is unknown.; `modprobe sch_netem`"
    ):
        Testbed._make(NoEngine(), loads(FAR), "far", {}, {}, False, print)  # type: ignore[arg-type]


def test_control_groups_of_version_1_do_not_hold_what_kafka_writes(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "CONTROLLERS", tmp_path / "cgroup.controllers")
    assert "version 1" in machine.no_bandwidth()
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    assert "no io controller" in machine.no_bandwidth()
    (tmp_path / "cgroup.controllers").write_text("cpu io memory\n")
    assert machine.no_bandwidth() == ""


def test_a_kernel_without_loop_devices_or_ext4(monkeypatch, tmp_path):
    monkeypatch.setattr(machine.shutil, "which", lambda program, path: None if program == "debugfs" else "/x")
    monkeypatch.setattr(machine, "this_distribution", lambda: Distribution.of({"ID": "fedora"}))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert machine.no_disk() == ("debugfs not installed; `sudo dnf install --setopt=install_weak_deps=False e2fsprogs`")
    monkeypatch.setattr(machine.shutil, "which", lambda program, path: "/x")
    monkeypatch.setattr(machine, "LOOP_CONTROL", tmp_path / "loop-control")
    assert "`modprobe loop`" in machine.no_disk()
    (tmp_path / "loop-control").touch()
    monkeypatch.setattr(machine, "FILE_SYSTEMS", tmp_path / "filesystems")
    (tmp_path / "filesystems").write_text("nodev tmpfs\n\txfs\n")
    assert "`modprobe ext4`" in machine.no_disk()
    (tmp_path / "filesystems").write_text("nodev tmpfs\n\text4\n")
    assert machine.no_disk() == ""


def test_plan_shows_uplinks_disks_and_what_is_asked_of_the_machine():
    told = describe(loads(FAR))
    assert "core ── right: transmit 1gbit (burst 125KiB), receive 1gbit (burst 125KiB) loss 1%" in told
    assert "receive 400mbit (burst 50KiB) delay 20ms" in told
    assert "disk: ext4 of 1GB, 50MB/s each way" in told
    assert "delay, jitter and loss: by b1 (data0), rack right (uplink)" in told
    assert "asked of this machine" not in describe(load(READY / "two-brokers.yaml"))
