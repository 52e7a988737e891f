"""Debian's packages: the name of the distribution, and the installation of missing packages."""

import os
import shutil
import threading
from pathlib import Path

from testbed.paths import state_dir
from testbed.software.commands import CommandError, run_logged

OS_RELEASE = Path("/etc/os-release")
# A user's PATH often omits these folders, although tc, mmdebstrap and dockerd are in them.
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_once = threading.Lock()
_updated = threading.Event()


def os_release(path: Path = OS_RELEASE) -> dict[str, str]:
    """Return the fields of os-release; empty where there is none."""
    if not path.exists():
        return {}
    pairs = (line.split("=", 1) for line in path.read_text(encoding="utf-8").splitlines() if "=" in line)
    return {key: value.strip("\"'") for key, value in pairs}


def which(program: str) -> str | None:
    """Return the program's path; search the system folders, too."""
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS))
    return shutil.which(program, path=folders)


def has_apt() -> bool:
    """Return whether this machine has apt-get."""
    return which("apt-get") is not None


def install(packages: tuple[str, ...]) -> None:
    """Install packages; wait for another apt. Raise CommandError on failure."""
    if not has_apt():
        raise CommandError("apt-get is not here: install these by hand: " + " ".join(packages))
    if os.geteuid() != 0:
        raise CommandError(f"only root can install packages: sudo apt-get install {' '.join(packages)}")
    log = state_dir() / "logs" / "apt.log"
    apt = ("apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300")
    env = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    with _once:
        if not _updated.is_set():
            run_logged([*apt, "update"], log, env=env)
            _updated.set()
        run_logged([*apt, "install", "--no-install-recommends", *packages], log, env=env)
