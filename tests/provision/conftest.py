from types import SimpleNamespace

import pytest

from testbed.provision import fleet
from testbed.provision import resources as removal
from testbed.provision import testbed as facade
from testbed.provision.containers import Engine
from testbed.software.image import ImageRef


class FakeSoftware:
    def __init__(self, *, image, manager="", builds=None):
        assert not manager and not builds  # no topology here has one
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
        engine = Engine()
        engine._api = api
        monkeypatch.setattr(fleet, "Engine", lambda: engine)
        return api

    return use
