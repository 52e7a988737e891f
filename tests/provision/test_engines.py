"""The engines of several machines as one: each resource on its machine, its labels, and its removal."""

from ipaddress import IPv4Network
from types import SimpleNamespace

import pytest

from testbed.errors import TestbedError
from testbed.hosts.clock import ClockOffset, closest, offset_of
from testbed.owner import Owner
from testbed.provision import state as states
from testbed.provision.containers import STATE, Engine, HostContainer, Labels, NetworkTaken
from testbed.provision.copied_files import FOLDER, CopiedFiles, content_digest
from testbed.provision.engines import EngineGroup, labels_on, on_each
from testbed.provision.fleet import MachineNotReady, _require_several, engine_identity
from testbed.provision.liveness import why_not_whole
from testbed.provision.resources import remove
from tests.provision.states import make

LABELS = Labels("two", 0, Owner.this_process(), "/state")
SUBNET = IPv4Network("198.18.0.0/24")


class FakeMember(Engine):
    def __init__(self, machine, *, taken=False, dead=False):
        super().__init__(machine=machine)
        self.made, self.networks_made = {}, {}
        self.taken, self.dead = taken, dead

    def _answer(self):
        if self.dead:
            raise TestbedError("machine m2: no SSH connection to 10.0.0.5:22 within 15 s")

    def wait_answering(self, timeout_s=0.0):
        self._answer()

    def close(self):
        pass

    def create_network(self, name, subnet, labels):
        if self.taken:
            raise NetworkTaken(f"{subnet} is in use")
        self.networks_made[name] = labels

    def networks(self, name=None):
        self._answer()
        return list(self.networks_made.items())

    def remove_network(self, network):
        self.networks_made.pop(network, None)

    def volumes(self, name):
        return []

    def containers(self, name=None):
        self._answer()
        return [HostContainer(identity, labels, True) for identity, labels in self.made.items()]

    def remove_container(self, container):
        self.made.pop(container, None)

    def pid(self, container):
        return len(container)


def group(*, m2=None):
    members = {"": FakeMember(""), "m2": m2 or FakeMember("machine m2")}
    members[""].made = {"f": LABELS.of("fabric"), "c1": LABELS.of("host", "b1")}
    members["m2"].made = {"f2": LABELS.of("fabric", "@m2"), "c22": LABELS.of("host", "b2")}
    return EngineGroup(members, {"m2": object()})


@pytest.fixture
def known(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("testbed.provision.resources.SETTLE_S", 0.0)
    state = make("two", topology={"hosts": {"b1": {}, "b2": {}}}, machine_keys={"m2": "ssh-ed25519 AAAA"})
    states.save(state)
    return state


def test_a_container_is_found_on_its_machine_and_its_namespace_is_there():
    engines = group()
    places = {found.host: engines.place(found) for found in engines.containers("two")}
    assert places["b1"] == 2
    assert places["b2"].pid == 3
    assert places["@m2"].name == "the fabric on m2"


def test_a_network_whose_addresses_one_machine_uses_is_left_on_none():
    engines = group(m2=FakeMember("m2", taken=True))
    with pytest.raises(NetworkTaken):
        engines.create_network("net", SUBNET, LABELS.of("management"))
    assert engines.members[""].networks_made == {}


def test_labels_on_another_machine_never_pass_for_those_of_its_own_state_folder():
    assert labels_on("", {STATE: "/state"}) == {STATE: "/state"}
    told = labels_on("m2", {STATE: "/state"})[STATE]
    assert told.endswith(":/state")
    assert told != "/state"


def test_down_removes_from_every_machine(known):
    engines = group()
    engines.create_network("net", SUBNET, LABELS.of("management"))
    removed = remove(engines, "two")
    assert {"container b1", "container b2", "container @m2", "state and keys"} <= set(removed)
    for member in engines.members.values():
        assert (member.made, member.networks_made) == ({}, {})
    assert states.load("two") is None


def test_down_with_a_machine_that_does_not_answer_removes_the_rest_and_keeps_the_state(known):
    engines = group(m2=FakeMember("machine m2", dead=True))
    with pytest.raises(TestbedError, match=r"not wholly removed:\n  on machine m2: .*no SSH connection"):
        remove(engines, "two")
    assert engines.members[""].made == {}
    assert states.load("two") is not None


def test_a_machine_that_does_not_answer_makes_a_testbed_not_whole(known):
    engines = group()
    assert why_not_whole(engines, known) == ""
    del engines.members["m2"].made["f2"]
    assert why_not_whole(engines, known) == "the fabric on m2 has no running container"
    engines.members["m2"].dead = True
    assert "no SSH connection" in why_not_whole(engines, known)


def test_every_machine_that_fails_is_told():
    def work(name):
        raise TestbedError(f"{name} lacks tc")

    with pytest.raises(TestbedError, match="m1 lacks tc\n  m2 lacks tc"):
        on_each(["m1", "m2"], work)
    assert on_each(["m1"], len) == {"m1": 2}


def test_copied_files_are_named_by_their_content(tmp_path):
    for name, content in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        (tmp_path / name / "libs").mkdir(parents=True)
        (tmp_path / name / "libs" / "x.jar").write_bytes(content)
    assert content_digest(tmp_path / "a" / "libs") == content_digest(tmp_path / "b" / "libs")
    assert content_digest(tmp_path / "a" / "libs") != content_digest(tmp_path / "c" / "libs")


def test_only_artefacts_in_use_are_copied_into_one_folder_and_once(tmp_path):
    (tmp_path / "kafka" / "4.3.1-1").mkdir(parents=True)
    (tmp_path / "kafka" / "3.9.2-1").mkdir()
    (tmp_path / "minio").write_bytes(b"program")
    there, asked = set(), []

    class Shell:
        def run(self, command, *, check=True, timeout_s=0.0, stdin=b""):
            asked.append(command)
            if command[0] == "test":
                return SimpleNamespace(exit_status=0 if command[2] in there else 1)
            there.add(command.rpartition(" || test -e ")[2].partition(";")[0])
            return SimpleNamespace(exit_status=0)

    copied = CopiedFiles(SimpleNamespace(shells={"m2": Shell()}), [tmp_path / "kafka" / "4.3.1-1"])
    mounts = {str(tmp_path / "kafka"): "/opt/kafka/releases", str(tmp_path / "minio"): "/usr/bin/minio"}
    found = copied.mounts("m2", mounts)
    minio = f"{FOLDER}/{content_digest(tmp_path / 'minio')}/minio"
    assert found == {f"{FOLDER}/kafka": "/opt/kafka/releases", minio: "/usr/bin/minio"}
    assert there == {f"{FOLDER}/kafka/4.3.1-1", minio}
    del asked[:]
    assert copied.mounts("m2", mounts) == found
    assert [command[0] for command in asked] == ["test", "test"]


def test_two_machines_with_one_engine_are_refused():
    _require_several({"": "A", "m2": "B"})
    with pytest.raises(MachineNotReady, match="this machine and m2 have the same container engine"):
        _require_several({"": "A", "m2": "A"})


def test_two_clones_of_a_machine_are_two_although_their_engines_have_one_id():
    """A template of a virtual machine has the file of its engine's id."""
    engine = SimpleNamespace(info=lambda: {"ID": "from-the-template"})

    def booted(boot):
        return SimpleNamespace(run=lambda _command: SimpleNamespace(stdout=f"{boot}\n"))

    _require_several({"": engine_identity(engine, booted("b-1")), "m2": engine_identity(engine, booted("b-2"))})
    assert engine_identity(engine, booted("b-1")) == engine_identity(engine, booted("b-1"))


def test_of_several_exchanges_with_a_clock_the_shortest_counts():
    exchanges = [(0, 5_000_000, 8_000_000), (10_000_000, 12_000_000, 12_000_000)]
    assert closest(offset_of(*each) for each in exchanges) == ClockOffset(offset_s=pytest.approx(0.001), unsure_s=0.001)
