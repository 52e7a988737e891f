"""`up` on a disk that is full: a clear error, and nothing half made."""

import errno
import os

import pytest

from testbed.errors import TestbedError
from testbed.provision import state as states
from testbed.provision import testbed as facade
from testbed.topology.find import find
from tests.provision.engine_api import FULL, FullApi


@pytest.mark.parametrize(
    ("fails", "after", "what"),
    [
        ("create_network", 0, "network testbed-full"),
        ("create_container", 0, "container testbed-full_fabric"),
        ("create_container", 2, "container testbed-full.b"),
        ("put_archive", 1, "container testbed-full.b"),
        ("start", 2, "container testbed-full.b"),
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
