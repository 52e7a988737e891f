import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.errors import TestbedError, UsageError
from testbed.owner import Owner
from testbed.provision import state as states
from testbed.provision.state import KeyPair
from testbed.provision.testbed import Testbed
from tests.provision.states import make


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_what_is_saved_is_loaded():
    states.save(make())
    assert states.load("one") == make()
    assert states.names() == ["one"]


def test_there_is_no_state_of_what_was_forgotten():
    states.save(make())
    states.forget("one")
    assert states.load("one") is None


def test_a_damaged_state_says_what_to_do():
    states.save(make())
    (states.folder("one") / "state.json").write_text("{")
    with pytest.raises(TestbedError, match="testbed down one"):
        states.load("one")


@pytest.mark.parametrize("name", ["", "One", "../x", "a/b", "1a", "a" * 33, "a b"])
def test_names_that_could_be_anything_else_are_refused(name):
    with pytest.raises(UsageError, match="lower-case"):
        states.folder(name)


def test_keys_and_folders_are_for_their_owner_only():
    states.write_key("one", KeyPair.generate())
    path = states.private_key_path("one")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_two_commands_cannot_change_one_testbed_at_once():
    another = pytest.raises(TestbedError, match="another command is changing `one`")
    with states.lock("one"), another, states.lock("one"):
        pass


@pytest.mark.parametrize(("status", "what"), [("creating", "`up`"), ("removing", "removal")])
def test_a_testbed_whose_up_or_removal_goes_on_is_not_said_to_be_interrupted(status, what):
    """The remedy for an interrupted `up` would remove the testbed that it makes."""
    states.save(make(status=status))
    with states.lock("one"), pytest.raises(TestbedError, match="another command is changing `one` right now"):
        Testbed.attach("one")
    with pytest.raises(TestbedError, match=f"its {what} was interrupted. `testbed down one` removes what is left"):
        Testbed.attach("one", whole=False)


def test_two_runs_cannot_use_one_testbed_at_once():
    """A command that changes it may: a user adds faults to a run, or takes its testbed down."""
    another = pytest.raises(TestbedError, match="a run uses `one` right now")
    with states.lock("one", for_run=True), states.lock("one"), another, states.lock("one", for_run=True):
        pass


def test_a_lock_ends_with_its_process():
    code = "import os, testbed.provision.state as s\nwith s.lock('one'):\n  os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], check=False, env={**os.environ, "PYTHONPATH": str(Path.cwd())})
    with states.lock("one"):
        pass


def test_no_file_of_a_lock_stays_but_one_that_is_held(tmp_path):
    with states.lock("run-1"), states.lock("run-1.faults", wait=True):
        pass
    locks = states.state_dir() / "locks"
    assert list(locks.iterdir()) == []
    (locks / "run-2.lock").touch()  # its holder was killed
    with states.lock("one"):
        states.remove_unheld_locks()
        assert [path.name for path in locks.iterdir()] == ["one.lock"]


def test_an_owner_is_written_as_a_label_and_read_back():
    me = Owner.this_process()
    assert me.alive()
    assert Owner.parse(str(me)) == me
    assert Owner.parse("nonsense") is None
