"""What a host can do: a kind that the machine or the topology lacks something for says what, and is refused."""

import json
import os
from types import SimpleNamespace

import pytest

from testbed.cgroups import no_disk_rate, no_memory_limit
from testbed.cli.main import main
from testbed.errors import TestbedError
from testbed.faults import Faults, clocks, disks, kinds, parse_fault
from testbed.faults.catalogue import disk_slow, memory_limit, nic_impair, objectstore_errors
from testbed.network.namespaces import run_program
from testbed.provision import state as states
from testbed.provision.machine import MachineLacks
from testbed.provision.testbed import Testbed
from testbed.topology import loads
from tests.faults.fakes import RACKS, THREE
from tests.provision.states import make
from tests.provision.test_inventory import LAB
from tests.provision.test_requirements import TWO

ABSENT = {
    "controller-failover": "three has 1 controller",
    "disk-full": "no broker of three has a disk of its own",
    "disk-read-only": "no broker of three has a disk of its own",
    "disk-slow": "no broker of three has a disk of its own",
    "uplink-cut": "three has one rack",
    "uplink-rate": "three has one rack",
}


def test_what_a_topology_lacks_is_named():
    found = {name: why for name, kind in kinds().items() if (why := kind.absent_from(THREE))}
    stores = {name for name in kinds() if name.startswith("objectstore-")}
    assert set(found) == set(ABSENT) | stores
    assert all(found[name].startswith(text) for name, text in ABSENT.items())
    assert {found[name] for name in stores} == {"three has no object store (role objectstore)"}
    assert {name for name, kind in kinds().items() if kind.absent_from(RACKS)} == stores


def test_a_kind_that_the_machine_lacks_is_refused_before_anything_is_changed(one, monkeypatch):
    monkeypatch.setattr(nic_impair.NicImpair, "lacking", classmethod(lambda _kind: "the kernel has no netem (x)"))
    with pytest.raises(MachineLacks, match=r"nic-impair host=b1 corrupt=1%: the machine cannot have it: the kernel"):
        Faults(one).add(parse_fault("nic-impair host=b1 corrupt=1%"))
    assert (one.kernel.changes, Faults(one).list()) == ([], ())


@pytest.mark.parametrize(("topology", "asked"), [(TWO, "m1"), (LAB, "b2")])
def test_the_kernel_that_has_the_hosts_nic_is_asked_for_netem(monkeypatch, topology, asked):
    said = {"m1": "", "b1": "", "b2": ""}

    def shell(name):
        return SimpleNamespace(run=lambda _line, check: SimpleNamespace(stdout=said[name]))

    on = SimpleNamespace(topology=loads(topology), machine_shells={name: shell(name) for name in said})
    impair = parse_fault("nic-impair host=b2 corrupt=1%")
    monkeypatch.setattr(nic_impair, "no_netem", lambda: "the kernel here has no netem")
    assert impair.lacking_in(on) == ""
    monkeypatch.setattr(nic_impair, "no_netem", lambda: "")
    said[asked] = "Error: Specified qdisc kind is unknown.\n"
    assert impair.lacking_in(on).startswith("its kernel has no netem (Error: Specified qdisc kind is unknown.)")


def shells(said):
    """Shells of other machines that answer with these lines when they are asked for netem."""

    def shell(name):
        return SimpleNamespace(run=lambda _line, check: SimpleNamespace(stdout=said[name]))

    return {name: shell(name) for name in said}


MISSING = "Error: Specified qdisc kind is unknown.\n"


def netem(topology, said, monkeypatch, here=""):
    monkeypatch.setattr(nic_impair, "no_netem", lambda: here)
    monkeypatch.setattr(nic_impair.NicImpair, "lacking", classmethod(lambda _kind: nic_impair.no_netem()))
    return nic_impair.NicImpair.unavailable(loads(topology), shells(said))


def test_a_kind_is_available_where_the_kernel_of_one_host_can(monkeypatch):
    assert netem(LAB, {"b1": "", "b2": MISSING}, monkeypatch, "no netem here") == ""
    why = netem(LAB, {"b1": MISSING, "b2": MISSING}, monkeypatch)
    assert why.startswith("its kernel has no netem (Error: Specified qdisc kind is unknown.)")
    assert netem(TWO, {"m1": ""}, monkeypatch, "no netem here") == ""
    assert netem(TWO, {"m1": MISSING}, monkeypatch) == ""
    assert netem(TWO, {"m1": MISSING}, monkeypatch, "no netem here").startswith("no netem here; m1: its kernel")


def test_machines_of_a_topology_that_is_not_up_are_not_asked(monkeypatch):
    assert netem(LAB, {}, monkeypatch, "no netem here") == ""


def test_a_machine_that_does_not_answer_says_so(monkeypatch):
    def run(_line, check):
        raise TestbedError("b1 does not answer")

    silent = {name: SimpleNamespace(run=run) for name in ("b1", "b2")}
    assert nic_impair.NicImpair.unavailable(loads(LAB), silent) == "b1 does not answer"


def test_what_only_this_machines_kernel_can_do_is_absent_from_machines_that_exist():
    why = memory_limit.MemoryLimit.absent_from(loads(LAB))
    assert why == "b1, b2 are no containers of this machine: memory-limit cannot change the kernel of another one"
    assert memory_limit.MemoryLimit.absent_from(loads(TWO)) == ""
    store = LAB + "  s1: {role: objectstore, ssh: {address: 198.18.5.4}}\n"
    assert objectstore_errors.ObjectstoreErrors.absent_from(loads(store)).startswith("s1 is not a container of this")


def test_the_command_asks_the_machines_of_a_testbed_that_is_up(capsys, monkeypatch, tmp_path):
    lab = make("lab", topology=loads(LAB).to_document())
    states.save(lab)
    asked = SimpleNamespace(machine_shells=shells({"b1": MISSING, "b2": MISSING}), close=lambda: None)
    monkeypatch.setattr(Testbed, "attach", lambda name, *, whole: asked)
    monkeypatch.setattr("testbed.cli.commands.fault._no_engine", lambda: "")
    assert main(["fault", "kinds", "lab", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["nic-impair"]["why_not"].startswith("its kernel has no netem")
    assert told["broker-kill"]["available"]


@pytest.fixture
def lacks_everything(monkeypatch):
    """A machine with none of the features."""
    monkeypatch.undo()
    monkeypatch.setattr(nic_impair, "no_netem", lambda: "no netem")
    monkeypatch.setattr(disks, "no_disk", lambda: "no loop devices")
    monkeypatch.setattr(disk_slow, "no_disk_rate", lambda: "no throttle")
    monkeypatch.setattr(memory_limit, "no_memory_limit", lambda: "no memory controller")
    monkeypatch.setattr(objectstore_errors, "no_redirect", lambda: "no iptables")
    monkeypatch.setattr(clocks, "no_library", lambda: "no apt")


def test_the_command_says_why(lacks_everything, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("testbed.cli.commands.fault._no_engine", lambda: "")
    assert main(["fault", "kinds", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {name: each["why_not"] for name, each in told.items() if not each["available"]} == {
        "nic-impair": "no netem",
        "disk-full": "no loop devices",
        "disk-read-only": "no loop devices",
        "disk-slow": "no loop devices",
        "memory-limit": "no memory controller",
        "objectstore-errors": "no iptables",
        "clock-skew": "no apt",
    }
    assert main(["fault", "kinds", "three-brokers"]) == 0
    assert "    not here: three-brokers has one rack: no host's traffic" in capsys.readouterr().out


def test_without_an_engine_no_kind_can_be_had(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    assert main(["fault", "kinds", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert all("container engine does not answer" in each["why_not"] for each in told.values())
    lab = tmp_path / "lab.yaml"
    lab.write_text(LAB)
    assert main(["fault", "kinds", str(lab), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["broker-kill"]["available"]  # machines that exist need no engine


def test_the_library_of_clock_skew_is_fetched_through_the_users_proxy(monkeypatch, tmp_path):
    for name, script in (
        ("apt-get", 'test "$http_proxy" = http://proxy:3128 && touch libfaketime.deb'),
        ("dpkg", f"mkdir lib && echo library > lib/{clocks.LIBRARY}"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert clocks.library() == b"library\n"


def test_the_kernels_features_are_read_from_its_files(tmp_path):
    (tmp_path / "bdi").mkdir()
    assert "cannot throttle a block device" in no_disk_rate(tmp_path, tmp_path / "bdi")
    (tmp_path / "blkio").mkdir()
    (tmp_path / "blkio" / "blkio.throttle.write_bps_device").touch()
    assert "before 6.2" in no_disk_rate(tmp_path, tmp_path / "bdi")
    (tmp_path / "bdi" / "7:0").mkdir()
    (tmp_path / "bdi" / "7:0" / "strict_limit").touch()
    assert no_disk_rate(tmp_path, tmp_path / "bdi") == ""
    assert "no memory controller" in no_memory_limit(tmp_path)
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    assert no_memory_limit(tmp_path) == ""
    assert "no io controller" in no_disk_rate(tmp_path, tmp_path / "bdi")


def test_a_program_of_the_machine_that_is_missing_is_named():
    with pytest.raises(TestbedError, match="no-such-program is not installed"):
        run_program(["no-such-program"])
