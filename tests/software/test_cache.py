import errno
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.errors import SoftwareError
from testbed.paths import cache_dir
from testbed.software.cache import artefact, digests, existing

CHECKOUT = Path(__file__).resolve().parents[2]

# A builder in a process of its own: notes that it builds, waits until it is told to go on, and finishes.
BUILDER = """
import sys, time
from pathlib import Path
from testbed.software.cache import artefact
root, gate = Path(sys.argv[1]), Path(sys.argv[2])
def build(folder):
    (folder / "half").write_text("half")
    with (root / "builds").open("a") as notes:
        notes.write("x")
    while not gate.exists():
        time.sleep(0.01)
    (folder / "whole").write_text("whole")
print(artefact("thing", "1", build))
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_dir().mkdir(parents=True)
    return cache_dir()


def write(text: str) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        (folder / "sub").mkdir()
        (folder / "sub" / "file").write_text(text)

    return build


def never(folder: Path) -> None:
    raise AssertionError("built again")


def start_builder(root: Path, gate: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", BUILDER, str(root), str(gate)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_for(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    done = threading.Event()
    for _ in range(int(timeout_s / 0.02)):
        if condition():
            return
        done.wait(0.02)
    raise AssertionError("not in time")


def test_is_built_once_and_then_found(root: Path) -> None:
    made = artefact("thing", "1", write("hello"))
    assert (made / "sub" / "file").read_text() == "hello"
    assert artefact("thing", "1", never) == made
    assert existing("thing", "1") == made
    assert set(digests(made)) == {"sub/file"}


def test_what_does_not_exist_is_not_made_by_looking(root: Path) -> None:
    assert existing("thing", "1") is None
    assert list(root.iterdir()) == []


def test_a_file_altered_to_the_same_size_and_time_is_told_and_made_again(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = artefact("thing", "1", write("hello"))
    file = made / "sub" / "file"
    times = file.stat()
    file.write_text("jello")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert existing("thing", "1") is None
    with caplog.at_level(logging.WARNING):
        artefact("thing", "1", write("hello"))
    assert file.read_text() == "hello"
    assert "damaged (sub/file: its sha256 is not the one recorded): making it again" in caplog.text


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda made: (made / "sub" / "file").unlink(), "sub/file: No such file or directory"),
        (lambda made: (made / "sub" / "file").write_text("longer than before"), "18 bytes, not 5"),
        (lambda made: (made / ".artefact.json").write_text("{"), "its record .artefact.json cannot be read"),
        (lambda made: (made / ".artefact.json").unlink(), "its record .artefact.json cannot be read"),
    ],
)
def test_every_kind_of_damage_is_told_and_made_again(
    root: Path, caplog: pytest.LogCaptureFixture, harm: Callable[[Path], object], told: str
) -> None:
    made = artefact("thing", "1", write("hello"))
    harm(made)
    artefact("thing", "1", write("hello"))
    assert told in caplog.text
    assert artefact("thing", "1", never) == made


def test_a_build_that_fails_leaves_nothing_in_place(root: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise SoftwareError("the mirror is gone")

    with pytest.raises(SoftwareError, match="the mirror is gone"):
        artefact("thing", "1", fail)
    assert [path.name for path in (root / "thing").iterdir()] == [".1.lock"]


def test_a_build_that_makes_nothing_is_refused(root: Path) -> None:
    with pytest.raises(SoftwareError, match="nothing was built"):
        artefact("thing", "1", lambda folder: None)


def test_a_name_that_leaves_the_cache_is_refused(root: Path) -> None:
    with pytest.raises(SoftwareError, match=r"'\.\./evil' cannot name an artefact"):
        artefact("thing", "../evil", never)


def test_two_processes_at_once_build_it_once(root: Path) -> None:
    gate = root / "gate"
    builders = [start_builder(root, gate) for _ in range(2)]
    wait_for((root / "builds").exists)
    gate.touch()
    answers = [builder.communicate(timeout=20)[0].strip() for builder in builders]
    assert answers == [str(root / "thing" / "1")] * 2
    assert (root / "builds").read_text() == "x"


def test_a_kill_in_the_middle_is_made_good_by_the_next(root: Path) -> None:
    gate = root / "gate"
    killed = start_builder(root, gate)
    wait_for((root / "builds").exists)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    leftovers = list((root / "thing").glob(".1.tmp-*"))
    assert [path.name for path in leftovers[0].iterdir()] == ["half"]
    assert existing("thing", "1") is None
    made = artefact("thing", "1", write("hello"))
    assert {path.name for path in (root / "thing").iterdir()} == {".1.lock", "1"}
    assert (made / "sub" / "file").read_text() == "hello"


def test_a_full_disk_is_told_with_what_to_do_and_leaves_nothing(root: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(SoftwareError, match="cannot be made: No space left on device; free space there, or set XDG_"):
        artefact("things", "one", build)
    assert not [path for path in (root / "things").iterdir() if path.is_dir()]
