"""A fake cluster for the commands that connect to one."""

import pytest

import testbed.kafka.admin
from testbed.kafka.types import TopicPartition
from testbed.reassignment.plan import Plan
from tests.fakes.admin import FakeAdmin

T0 = TopicPartition("t", 0)


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """The cluster that every command connects to; `made` lists each connection with its options."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    fake = FakeAdmin({T0: (1, 3)}, size_of=lambda _broker, _tp: 10**9)
    fake.made = []

    def admin(bootstrap, **named):
        fake.made.append((bootstrap, named))
        return fake

    monkeypatch.setattr(testbed.kafka.admin, "Admin", admin)
    return fake


@pytest.fixture
def plan(tmp_path):
    """The path of a plan that moves one replica."""
    path = tmp_path / "plan.json"
    path.write_text(Plan({T0: (2, 3)}).to_json())
    return str(path)
