"""The state folder's disk is full: a fault that cannot be written down is not applied."""

import errno

import pytest

from results.contract import durable
from testbed.errors import TestbedError
from testbed.faults import parse_fault


def test_a_fault_that_cannot_be_journaled_is_not_applied(one, faults, monkeypatch):
    def full(*_args, **_named):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = one.snapshot()
    monkeypatch.setattr(durable, "write", full)
    with pytest.raises(TestbedError, match="cannot be written .*No space left on device"):
        faults.add(parse_fault("nic-rate host=b2 rate=50mbit"))
    assert (one.kernel.changes, one.snapshot()) == ([], before)
    monkeypatch.undo()


def test_a_heal_that_cannot_be_journaled_is_tried_again(one, faults, monkeypatch):
    def full(*_args, **_named):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = one.snapshot()
    added = faults.add(parse_fault("cpu-limit host=b2 cpus=0.5"))
    with monkeypatch.context() as patch:
        patch.setattr(durable, "write", full)
        with pytest.raises(TestbedError, match="No space left on device"):
            faults.clear(added)
    assert [entry.id for entry in faults.list()] == [added]
    faults.clear(added)
    assert one.snapshot() == before
