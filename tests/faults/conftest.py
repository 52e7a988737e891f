from types import SimpleNamespace

import pytest

from testbed.faults import Faults, disks, kinds, network, processes
from testbed.faults import active_faults as faults_module
from testbed.faults.catalogue import controller_failover, cpu_limit, memory_limit, quota_alter, reassignment_alter
from tests.faults.fakes import RACKS, FakeCgroup, FakeDevices, FakeTestbed

_current = {}
"""The fake testbed of the test that runs, as 0."""


@pytest.fixture(autouse=True)
def no_kernel(tmp_path, monkeypatch):
    """A state folder of its own, and nothing real beneath the faults."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(network, "Devices", FakeDevices)
    monkeypatch.setattr(cpu_limit, "in_force", lambda testbed, host: testbed.engine.limits.get(f"id-{host}"))
    for module in (memory_limit, disks):
        monkeypatch.setattr(module, "ContainerCgroup", SimpleNamespace(of=lambda host: FakeCgroup(_current[0], host)))
    monkeypatch.setattr(disks, "_device", lambda testbed, host: "/dev/none")
    monkeypatch.setattr(
        disks, "_set_read_only", lambda t, host, *, wanted: FakeCgroup(t, host).set("read_only", wanted)
    )
    monkeypatch.setattr(disks, "_settle_filler", lambda t, host, *, wanted: FakeCgroup(t, host).fill(wanted))
    monkeypatch.setattr(disks, "_has_filler", lambda t, host: FakeCgroup(t, host).is_full())
    for kind in kinds().values():
        monkeypatch.setattr(kind, "lacking", classmethod(lambda _kind: ""))
    monkeypatch.setattr(faults_module, "SERVING_S", 0.3)
    monkeypatch.setattr(quota_alter, "IN_FORCE_S", 0.2)
    monkeypatch.setattr(processes, "START_S", 0.2)


@pytest.fixture
def one(monkeypatch):
    return _with_second_client(FakeTestbed(), monkeypatch)


@pytest.fixture
def racks(monkeypatch):
    return _with_second_client(FakeTestbed(RACKS, "racks"), monkeypatch)


def _with_second_client(testbed, monkeypatch):
    monkeypatch.setitem(_current, 0, testbed)
    for module in (quota_alter, reassignment_alter):
        monkeypatch.setattr(module, "second_client", lambda _testbed: testbed.cluster)
    monkeypatch.setattr(controller_failover, "ELECTION_S", 0.3)
    return testbed


@pytest.fixture
def faults(one):
    return Faults(one)
