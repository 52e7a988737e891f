"""Two testbeds on one engine: their names never meet, and no command removes what is another's."""

from dataclasses import replace
from types import SimpleNamespace

import docker.errors
import pytest

from testbed.errors import TestbedError
from testbed.network.addresses import AddressPlan
from testbed.owner import Owner
from testbed.paths import cache_dir, state_dir
from testbed.provision import containers, fleet, machine
from testbed.provision import state as states
from testbed.provision import testbed as facade
from testbed.provision.container_provider import ContainerProvider
from testbed.provision.containers import STATE, Labels, NetworkTaken, name_of_fabric, name_of_host
from testbed.provision.engines import remote_engine
from testbed.provision.machine import MachineLacks
from testbed.provision.plan import fabric_spec
from testbed.software import engine as engines
from testbed.topology.find import find
from tests.provision.engine_api import FullApi
from tests.provision.states import make

THEIRS = Labels("three", 7, Owner(1, 0, "boot"), "/another/folder")


def test_hyphens_in_names_never_make_one_name_of_two():
    assert name_of_host("a-c", "b") != name_of_host("a", "c-b")
    assert name_of_host("a", "fabric") != name_of_fabric("a")


def test_a_name_that_another_state_folder_has_is_refused_before_anything_is_made(use):
    api = use(FullApi("nothing", 0))
    api.made["theirs"] = THEIRS.of("fabric")
    with pytest.raises(TestbedError, match=r"a testbed three of another state folder, /another/folder: .*--name"):
        facade.Testbed.up(find("three-brokers"), name="three")
    assert list(api.made) == ["theirs"]
    assert api.nets == {}
    assert not states.folder("three").exists()


def test_what_another_folder_made_at_the_same_time_stays_when_the_engine_refuses_the_name(use, monkeypatch):
    api = use(FullApi("nothing", 0))

    def taken(*_words, name, **_rest):
        api.made["theirs"], api.nets["theirs"] = THEIRS.of("fabric"), THEIRS.of("management")
        raise docker.errors.APIError("409 Conflict", explanation=f'the container name "/{name}" is already in use')

    monkeypatch.setattr(api, "create_container", taken)
    with pytest.raises(TestbedError, match="is already in use"):
        facade.Testbed.up(find("three-brokers"), name="three")
    assert list(api.made) == list(api.nets) == ["theirs"]
    assert not states.folder("three").exists()


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ({"SecurityOptions": ["name=rootless"]}, "root is missing, so it cannot link hosts"),
        ({"OperatingSystem": "Docker Desktop"}, "it runs in a virtual machine of its own"),
        ({"Name": "colima"}, "it runs on colima, and this process on "),
    ],
)
def test_an_engine_on_which_no_testbed_works_is_refused_before_anything_is_made(says, why, use, monkeypatch):
    """Of an engine of another machine, the links went to the processes that have its containers' numbers here."""
    monkeypatch.setattr(engines, "_has_bridges", lambda: False)
    api = use(FullApi("nothing", 0))
    api.info = lambda: says
    with pytest.raises(MachineLacks, match="three-brokers cannot be brought up on this container engine:") as refused:
        facade.Testbed.up(find("three-brokers"), name="three")
    assert why in str(refused.value)
    assert (api.made, api.nets, states.names()) == ({}, {}, [])


@pytest.mark.parametrize(("capable", "group"), [(True, "c1"), (True, "c2"), (True, None), (False, None)])
def test_links_go_to_processes_that_have_their_containers_control_group(capable, group, monkeypatch, tmp_path):
    """In a container with the engine's socket, the engine's numbers are those of other processes, or of none."""
    if group is not None:
        (tmp_path / "7").mkdir()
        (tmp_path / "7" / "cgroup").write_text(f"0::/system.slice/docker-{group}.scope\n")
    monkeypatch.setattr(machine, "PROCESSES", tmp_path)
    monkeypatch.setattr(machine, "lacking_capabilities", lambda: () if capable else ("CAP_NET_ADMIN",))
    engine = SimpleNamespace(containers=lambda _name: [SimpleNamespace(id="c1")], pid=lambda _id: 7)
    if group == "c1" or not capable:
        machine.require_own_processes(engine, "three")
        return
    with pytest.raises(TestbedError, match="process 7 of the engine is another process here: this program runs in a"):
        machine.require_own_processes(engine, "three")


def test_a_container_that_cannot_be_started_is_removed_at_once(use):
    api = use(FullApi("start", 0))
    engine = fleet.Engine()
    with pytest.raises(TestbedError, match="full"):
        engine.create(fabric_spec("node", Labels("one", 0, Owner.this_process(), str(state_dir()))))
    assert api.made == {}


def test_a_cache_that_the_engine_may_not_read_is_named_with_the_remedy(use, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    api = use(FullApi("nothing", 0))
    said = f"error while creating mount source path '{cache_dir()}/kafka': mkdir {tmp_path}: permission denied"

    def refuse(*_words, **_rest):
        raise docker.errors.APIError("400 Bad Request", explanation=said)

    api.create_container = refuse
    spec = fabric_spec("node", Labels("one", 0, Owner.this_process(), str(state_dir())))
    with pytest.raises(TestbedError, match=r"may not read the cache .*root_squash.*; set XDG_CACHE_HOME"):
        fleet.Engine().create(spec)


def test_a_kernel_without_ipv6_is_not_asked_to_disable_it(use, monkeypatch, tmp_path):
    """Booted with ipv6.disable=1 it has no such setting, and the engine then starts no container that sets one."""
    api, given = use(FullApi("nothing", 0)), []
    api.create_host_config = lambda **words: given.append(words["sysctls"]) or {}
    spec = fabric_spec("node", Labels("one", 0, Owner.this_process(), str(state_dir())))
    for there in (tmp_path, tmp_path / "missing"):
        monkeypatch.setattr(containers, "IPV6_SETTINGS", there)
        fleet.Engine().create(spec)
    assert given[0] == containers.SYSCTLS
    assert given[1] == {name: value for name, value in containers.SYSCTLS.items() if "ipv6" not in name}


@pytest.mark.parametrize(("status", "asked_to_disable"), [(0, True), (1, False)])
def test_another_machines_kernel_is_asked_whether_it_has_ipv6(status, asked_to_disable, monkeypatch, tmp_path):
    """Its engine refused each container when it was booted with ipv6.disable=1, whatever this machine's kernel has."""
    monkeypatch.setattr(containers, "IPV6_SETTINGS", tmp_path / ("missing" if asked_to_disable else ""))
    api, given, asked = FullApi("nothing", 0), [], []
    api.create_host_config = lambda **words: given.append(words["sysctls"]) or {}

    def run(command, *, check):
        asked.append((command, check))
        return SimpleNamespace(exit_status=status)

    far = remote_engine(SimpleNamespace(name="machine m2", run=run))
    far._api = api
    far.create(fabric_spec("node", Labels("one", 0, Owner.this_process(), str(state_dir())), "m2"))
    assert asked == [(["test", "-e", str(containers.IPV6_SETTINGS)], False)]
    assert any(name.startswith(containers.IPV6) for name in given[0]) is asked_to_disable


def test_only_volumes_of_this_state_folder_are_listed(use):
    api = use(FullApi("nothing", 0))
    asked = []
    api.volumes = lambda filters: asked.append(filters) or {"Volumes": None}
    fleet.Engine().volumes("three")
    assert asked == [{"label": ["testbed.name=three", f"{STATE}={state_dir()}"]}]


@pytest.mark.parametrize(
    "said", ["Pool overlaps with other one on this address space", "subnet 198.18.0.0/24 is already used on the host"]
)
def test_addresses_that_another_network_has_are_passed_over_on_docker_and_on_podman(use, said):
    """The next slot is tried."""
    api = use(FullApi("nothing", 0))

    def taken(*_words, **_rest):
        raise docker.errors.APIError("403 Forbidden", explanation=said)

    api.create_network = taken
    with pytest.raises(NetworkTaken):
        fleet.Engine().create_network("n", AddressPlan(0, ()).management, {})


def test_a_testbed_that_is_up_with_other_properties_is_refused(use, monkeypatch):
    use(FullApi("nothing", 0))
    topology = find("two-brokers")
    keys = {host.name: "ssh-ed25519 key" for host in topology.hosts}
    document, digest = topology.to_document(), topology.digest()
    states.save(make("two", topology=document, topology_digest=digest, host_keys=keys, overlay={"a": "1"}))
    monkeypatch.setattr(ContainerProvider, "runs", lambda _self, _state: True)
    monkeypatch.setattr(facade, "why_not_whole", lambda _engine, _state: "")
    with pytest.raises(TestbedError, match="two is up with other broker properties"):
        facade.Testbed.up(topology, name="two", overlay={"a": "2"})
    # Without properties of its own, the caller takes the testbed as it is.
    assert facade.Testbed.up(topology, name="two").state.overlay == {"a": "1"}
    assert facade.Testbed.up(topology, name="two", overlay={"a": "1"}).name == "two"
    states.save(replace(states.load("two"), changing={"b3": "1@1@another boot"}))
    with pytest.raises(
        TestbedError, match="two is up with b3, which a killed command was adding or removing; `testbed"
    ):
        facade.Testbed.up(topology, name="two")
