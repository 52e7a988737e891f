"""`./run` itself, as a person calls it."""

import os
import shutil
import subprocess
from pathlib import Path

RUN = Path(__file__).resolve().parents[2] / "run"


def run(*arguments: str, cwd: Path, path: str | None = None) -> "subprocess.CompletedProcess[str]":
    environment = dict(os.environ) if path is None else {"PATH": path}
    return subprocess.run(
        ["/bin/sh", str(RUN), *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )


def test_alone_it_says_what_there_is_from_any_folder(tmp_path: Path) -> None:
    # A file here that is named like a module of Python's must not be taken for it.
    (tmp_path / "json.py").write_text("raise SystemExit('imported the wrong one')\n")
    done = run(cwd=tmp_path)
    assert done.returncode == 0
    assert "./run demo" in done.stdout


def test_a_wrong_command_is_a_usage_error(tmp_path: Path) -> None:
    done = run("dmeo", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (64, "")
    assert "usage: ./run demo" in done.stderr


def test_it_works_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(RUN)
    done = subprocess.run([link], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert "./run demo" in done.stdout


def test_an_old_python_alone_is_refused(tmp_path: Path) -> None:
    for tool in ("readlink", "dirname", "id"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    done = run(cwd=tmp_path, path=str(tmp_path))
    assert done.returncode == 69
    assert done.stderr == "run: no Python 3.11 or newer; on Debian: apt-get install python3\n"
