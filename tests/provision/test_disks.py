"""Disks are found by the file behind them, whatever else was lost."""

import pytest

from testbed.errors import TestbedError
from testbed.network.namespaces import run_program
from testbed.provision import machine
from testbed.provision.containers import HostContainer
from testbed.topology import loads


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def loop(root, number, file):
    folder = root / f"loop{number}" / "loop"
    folder.mkdir(parents=True)
    (folder / "backing_file").write_text(f"{file}\n")


def test_loop_devices_are_found_by_their_file(tmp_path):
    blocks = tmp_path / "block"
    loop(blocks, 0, machine.disk_file("one", "b1"))
    loop(blocks, 1, machine.disk_file("one-more", "b1"))
    loop(blocks, 7, f"{machine.disk_file('one', 'b2')} (deleted)")
    (blocks / "loop3").mkdir()
    loop(blocks, 4, "/somewhere/else.img")
    assert list(machine.attached_devices("one", blocks)) == ["/dev/loop0", "/dev/loop7"]
    assert list(machine.attached_devices("two", blocks)) == []


class FakeEngine:
    """An engine without volumes, whose limits are in `limits`; it refuses to change those of `refuses`."""

    def __init__(self, *refuses):
        self.limits, self.refuses = {"b1": 0.5, "b2": 1.5}, refuses

    def volumes(self, _testbed):
        return []

    def containers(self, _testbed):
        return [HostContainer(host, {"testbed.host": host}, True) for host in self.limits]

    def place(self, container):
        return None

    def cpus(self, container):
        return self.limits[container]

    def limit_cpus(self, container, cpus):
        if container in self.refuses and cpus is not None:
            raise TestbedError(f"container {container}: the limit was refused")
        self.limits[container] = cpus


def test_the_file_of_a_removed_hosts_disk_is_removed_and_no_other(tmp_path):
    for host in ("b1", "b12"):
        machine.disk_file("one", host).parent.mkdir(parents=True, exist_ok=True)
        machine.disk_file("one", host).write_bytes(b"data")
    machine.remove_disks(FakeEngine(), "one", "b1")
    assert not machine.disk_file("one", "b1").exists()
    assert machine.disk_file("one", "b12").exists()


def test_a_program_that_does_not_end_is_an_error_that_names_it():
    with pytest.raises(TestbedError, match=r"^`sleep 60` was not done after 0\.1 s$"):
        run_program(["sleep", "60"], timeout_s=0.1)


def test_each_host_gets_its_limit_of_cpus_back_although_one_is_refused():
    topology = loads("""
name: two
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts: {b1: {role: both, cpus: 0.5}, b2: {role: broker, cpus: 1.5}}
""")
    engine = FakeEngine("b1")
    refused = pytest.raises(TestbedError, match="container b1: the limit was refused")
    with refused, machine.without_cpu_limits(engine, "two", topology.hosts):
        assert engine.limits == {"b1": None, "b2": None}
    assert engine.limits == {"b1": None, "b2": 1.5}
