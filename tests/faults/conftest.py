import pytest

from testbed.faults import Faults, cpu, network, processes, quotas
from testbed.faults import faults as faults_module
from tests.faults.fakes import RACKS, FakeDevices, FakeTestbed


@pytest.fixture(autouse=True)
def no_kernel(tmp_path, monkeypatch):
    """A state folder of its own, and nothing real beneath the faults."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(network, "Devices", FakeDevices)
    monkeypatch.setattr(cpu, "in_force", lambda testbed, host: testbed.engine.limits.get(f"id-{host}"))
    monkeypatch.setattr(faults_module, "SERVING_S", 0.3)
    monkeypatch.setattr(quotas, "IN_FORCE_S", 0.2)
    monkeypatch.setattr(processes, "START_S", 0.2)


@pytest.fixture
def one(monkeypatch):
    return _with_second_client(FakeTestbed(), monkeypatch)


@pytest.fixture
def racks(monkeypatch):
    return _with_second_client(FakeTestbed(RACKS, "racks"), monkeypatch)


def _with_second_client(testbed, monkeypatch):
    from testbed.faults.catalogue import controller_failover, quota_alter

    for module in (quotas, quota_alter):
        monkeypatch.setattr(module, "second_client", lambda _testbed: testbed.cluster)
    monkeypatch.setattr(controller_failover, "ELECTION_S", 0.3)
    return testbed


@pytest.fixture
def faults(one):
    return Faults(one)
