"""Durable files: whole or absent after a kill, locks that end with their holder."""

import os
import subprocess
import sys
import threading
from io import FileIO
from types import SimpleNamespace

import pytest

from results.contract import durable
from tests.killed_process import ROOT, killed_at

WRITER = """
from results.contract import durable
die_writing()
durable.write(Path(sys.argv[1]), "new")
"""


def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "journal.json"
    found = []
    for step in range(4):
        path.write_text("old")
        done = killed_at(step, WRITER, path)
        found.append((done.returncode, path.read_text()))
        for left in durable.temporaries(path):
            left.unlink()
    assert found == [(-9, "old"), (-9, "old"), (-9, "new"), (0, "new")]
    assert [p.name for p in tmp_path.iterdir()] == ["journal.json"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_error_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, error):
    path = tmp_path / "journal.json"
    durable.write(path, "old")

    def full(_descriptor):
        raise error

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(type(error)):
        durable.write(path, b"new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_locks_is_named_by_its_file(tmp_path, monkeypatch):
    """Such as NFS whose server has none, or Lustre that is mounted without flock."""

    def refuse(_descriptor, _how):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(durable.fcntl, "flock", refuse)
    with pytest.raises(OSError, match="No locks available") as refused, durable.lock(tmp_path / "a.lock"):
        pass
    assert (refused.value.errno, refused.value.filename) == (37, str(tmp_path / "a.lock"))


def test_a_line_that_cannot_be_appended_leaves_nothing_of_it(tmp_path, monkeypatch):
    with FileIO(tmp_path / "log", "x+") as stream:
        durable.append(stream, b"one\n")
        monkeypatch.setattr(os, "fsync", lambda _descriptor: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(OSError, match="full"):
            durable.append(stream, b"two\n")
        monkeypatch.undo()
        durable.append(stream, b"three\n")
    assert (tmp_path / "log").read_bytes() == b"one\nthree\n"


def test_a_lock_is_exclusive_and_ends_with_its_holder(tmp_path):
    path = tmp_path / "some" / "lock"
    with durable.lock(path), pytest.raises(BlockingIOError), durable.lock(path, wait=False):
        pass
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom results.contract import durable\n"
        "with durable.lock(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, check=False).returncode == -9
    with durable.lock(path, wait=False):
        pass


def test_a_lock_that_is_removed_leaves_no_file_and_excludes_those_who_had_opened_it(tmp_path):
    path, order = tmp_path / "lock", []
    opened = threading.Event()

    def second():
        with durable.lock(path, remove=True):
            order.append(("second", path.exists()))

    def open_first(*args):
        opened.set()
        return os.open(*args)

    waiting = threading.Thread(target=second)
    with durable.lock(path, remove=True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable, "os", SimpleNamespace(**{**vars(os), "open": open_first}))
        waiting.start()
        opened.wait(10)
        order.append(("first", path.exists()))
    waiting.join(10)
    assert order == [("first", True), ("second", True)]
    assert not path.exists()


def test_many_holders_of_a_lock_that_is_removed_are_one_at_a_time(tmp_path):
    path, inside, most = tmp_path / "lock", [], []

    def hold():
        for _ in range(50):
            with durable.lock(path, remove=True):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=hold) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (400, 1)
    assert not path.exists()


def test_a_lock_is_removed_after_an_error_and_by_its_holder_alone(tmp_path):
    path = tmp_path / "lock"
    with pytest.raises(ZeroDivisionError), durable.lock(path, remove=True):
        raise ZeroDivisionError
    assert not path.exists()
    with durable.lock(path), pytest.raises(BlockingIOError), durable.lock(path, wait=False, remove=True):
        pass
    assert path.exists()


def test_it_needs_the_standard_library_alone():
    code = "import sys; sys.path.insert(0, '.'); import results.contract.durable"
    assert subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=ROOT, check=False).returncode == 0
