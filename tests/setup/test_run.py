"""`./run` itself, as a person calls it."""

import os
import shutil
import subprocess
from pathlib import Path

RUN = Path(__file__).resolve().parents[2] / "run"


INSTALLED_BY = {
    "ID=debian\nVERSION_ID=12\n": ": apt-get install --no-install-recommends python3",
    "ID=ubuntu\nVERSION_ID=22.04\nID_LIKE=debian\n": (
        ": apt-get install --no-install-recommends python3.11 python3.11-venv"
    ),
    "ID=ubuntu\nVERSION_ID=24.04\nID_LIKE=debian\n": ": apt-get install --no-install-recommends python3",
    "ID=fedora\nVERSION_ID=41\n": ": dnf install python3",
    'ID="rocky"\nVERSION_ID="9.5"\nID_LIKE="rhel centos fedora"\n': ": dnf install python3.11",
    'ID="opensuse-leap"\nVERSION_ID="15.6"\nID_LIKE="suse opensuse"\n': ": zypper install python311",
    "ID=arch\n": ": pacman -S python",
    "ID=alpine\nVERSION_ID=3.20.3\n": ": apk add python3",
    "ID=nixos\n": "",
}


def run(
    *arguments: str, cwd: Path, path: str | None = None, os_release: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    environment = dict(os.environ) if path is None else {"PATH": path}
    if os_release is not None:
        environment["TESTBED_OS_RELEASE"] = str(os_release)
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


def test_another_system_is_refused_before_a_python_is_asked_for(tmp_path: Path) -> None:
    for tool in ("readlink", "dirname"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    for name, script in (("python3", "exit 1"), ("uname", "echo Darwin")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    done = run(cwd=tmp_path, path=str(tmp_path))
    assert (done.returncode, done.stderr.splitlines()) == (
        69,
        ["run: this is Darwin; the testbed runs on Linux: use a virtual machine with a container engine in it"],
    )


def test_an_old_python_alone_is_refused(tmp_path: Path) -> None:
    for tool in ("readlink", "dirname", "id", "uname"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    for release, command in INSTALLED_BY.items():
        (tmp_path / "os-release").write_text(release)
        done = run(cwd=tmp_path, path=str(tmp_path), os_release=tmp_path / "os-release")
        assert done.returncode == 69
        assert done.stderr == f"run: no Python 3.11 or newer; install it{command}\n"
