"""What a host can do: a kind that the machine or the topology lacks something for says what, and is refused."""

import json
from types import SimpleNamespace

import pytest

from results.criteria.replay_events import KEEPS_QUOTA
from testbed.cgroups import no_disk_rate, no_memory_limit
from testbed.cli.main import main
from testbed.errors import TestbedError
from testbed.faults import Faults, clocks, disks, kinds, parse_fault
from testbed.faults.catalogue import disk_slow, memory_limit, nic_impair, objectstore_errors
from testbed.hosts import CommandFailed, CommandResult
from testbed.network.namespaces import run_program
from testbed.provision import state as states
from testbed.provision.machine import MachineLacks
from testbed.provision.testbed import Testbed
from testbed.software import faketime
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


def test_a_kind_says_whether_brokers_processes_go_on():
    """Recorded replays without that in their events are judged by a list of the kinds of then."""
    assert {name for name, kind in kinds().items() if kind.keeps_quota} == {*KEEPS_QUOTA}


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
    monkeypatch.setattr(faketime, "no_library", lambda: "no apt")


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


class Reader:
    """A host with a C library that answers what `date` does with libfaketime."""

    name = "b1"

    def __init__(self, skewed_s=None, said=""):
        self.skewed_s, self.said, self.files = skewed_s, said, {}

    def put(self, content, path):
        self.files[path] = content

    def run(self, command):
        if self.said:
            raise CommandFailed(self.name, CommandResult(command, 127, "", self.said, 0.0))
        return CommandResult(command, 0, f"100.0\n{100.001 + self.skewed_s}\n100.002\n", "", 0.0)


@pytest.fixture
def fetched(monkeypatch, tmp_path):
    (tmp_path / clocks.LIBRARY).write_bytes(b"library")
    monkeypatch.setattr(clocks, "library", lambda: tmp_path / clocks.LIBRARY)


def test_a_host_that_can_use_the_library_gets_it(fetched):
    host = Reader(skewed_s=-30)
    clocks.put_library(host, -30_000_000)
    assert host.files == {clocks.PATH: b"library"}


TOO_NEW = "date: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /opt/testbed/lib)"


@pytest.mark.parametrize(
    ("host", "why"), [(Reader(said=f"\n{TOO_NEW}\n"), TOO_NEW), (Reader(skewed_s=0), "its clock is off by 0.0 s")]
)
def test_a_host_that_cannot_use_the_library_of_clock_skew_is_refused(fetched, host, why):
    """Its C library is older, or its architecture is another one: the loader ignores the library then."""
    with pytest.raises(TestbedError) as refused:
        clocks.put_library(host, 2_000_000)
    assert f"a program on b1 cannot use {clocks.LIBRARY} of Debian bookworm ({why}): clock-skew needs" in str(
        refused.value
    )


def test_kafka_is_not_restarted_on_a_host_that_cannot_use_the_library(one, monkeypatch):
    def refuse(host, offset_us):
        raise TestbedError(f"a program on {host.name} cannot use it for {offset_us} µs")

    monkeypatch.setattr(clocks, "put_library", refuse)
    with pytest.raises(TestbedError, match="a program on b1 cannot use it for 2000000 µs"):
        Faults(one).add(parse_fault("clock-skew host=b1 by=2s"))
    assert (one.kernel.changes, Faults(one).list()) == ([], ())


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
