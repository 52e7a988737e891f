"""`up` on a disk that is full: a clear error, and nothing half made."""

import errno
import os
from types import SimpleNamespace

import docker.errors
import pytest

from testbed.errors import TestbedError
from testbed.provision import resources as removal
from testbed.provision import state as states
from testbed.provision import testbed as facade
from testbed.provision.containers import Engine
from testbed.software.image import ImageRef
from testbed.topology.find import find

FULL = "mkdir /var/lib/docker/overlay2/4f1c: no space left on device"


class FullApi:
    """The engine's interface on a disk that is full when `fails` is called for the `after`-th time."""

    def __init__(self, fails, after):
        self.fails, self.after = fails, after
        self.made, self.nets = {}, {}

    def _call(self, name):
        if name == self.fails:
            self.after -= 1
            if self.after < 0:
                raise docker.errors.APIError("500 Server Error", explanation=FULL)

    def create_network(self, name, labels, **_rest):
        self._call("create_network")
        self.nets[name] = labels

    def create_container(self, _image, *, name, labels, **_rest):
        self._call("create_container")
        self.made[name] = labels
        return {"Id": name}

    def put_archive(self, _id, _path, _archive):
        self._call("put_archive")

    def start(self, _id):
        self._call("start")

    def containers(self, **_rest):
        return [{"Id": name, "Labels": labels, "State": "created"} for name, labels in self.made.items()]

    def networks(self, **_rest):
        return [{"Id": name, "Labels": labels} for name, labels in self.nets.items()]

    def volumes(self, **_rest):
        return {"Volumes": None}

    def ping(self):
        return True

    def inspect_container(self, name):
        return {"State": {"Running": False, "Status": "created"}}

    def remove_container(self, name, **_rest):
        del self.made[name]

    def remove_network(self, name):
        del self.nets[name]

    def create_endpoint_config(self, **_rest):
        return {}

    create_networking_config = create_host_config = lambda _self, *_words, **_rest: {}


class FakeSoftware:
    def __init__(self, *, image):
        assert image  # the testbed makes the hosts
        self.image = ImageRef("node", "sha256:0", "sha256:1")

    def kafka(self, version):
        return SimpleNamespace(version=version, digest="d")

    def of(self, topology):
        return {host.name: host.kafka_version for host in topology.hosts if host.kafka_version}

    def lowest(self, _versions):
        return None

    def member(self, _version, _all, _remote_storage):
        return None


@pytest.fixture
def use(tmp_path, monkeypatch):
    """Let `Testbed.up` use an engine behind a given interface."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(removal, "devices_with_alias", lambda _alias: [])
    monkeypatch.setattr(removal, "SETTLE_S", 0.0)
    monkeypatch.setattr(facade, "SoftwareSet", FakeSoftware)

    def use(api):
        engine = Engine.__new__(Engine)
        engine._api = api
        monkeypatch.setattr(facade, "Engine", lambda: engine)
        return api

    return use


@pytest.mark.parametrize(
    ("fails", "after", "what"),
    [
        ("create_network", 0, "network testbed-full"),
        ("create_container", 0, "container testbed-full-fabric"),
        ("create_container", 2, "container testbed-full-b"),
        ("put_archive", 1, "container testbed-full-b"),
        ("start", 2, "container testbed-full-b"),
    ],
)
def test_an_engine_without_space_is_told_and_leaves_nothing(use, fails, after, what):
    api = use(FullApi(fails, after))
    with pytest.raises(TestbedError) as refused:
        facade.Testbed.up(find("three-brokers"), name="full")
    told = str(refused.value)
    assert told.startswith(what)
    assert f"the engine's disk is full ({FULL}); `testbed gc` and `docker system df` list what can be removed" in told
    assert (api.made, api.nets) == ({}, {})
    assert not states.folder("full").exists()


def test_a_state_folder_without_space_is_told_and_leaves_nothing(use, monkeypatch):
    api = use(FullApi("nothing", 0))

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TestbedError, match=r"state.json cannot be written: No space left on device; free space there"):
        facade.Testbed.up(find("three-brokers"), name="full")
    assert (api.made, api.nets) == ({}, {})
    assert not states.folder("full").exists()
