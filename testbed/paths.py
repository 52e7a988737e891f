"""The testbed's folders: the XDG base directories, one folder `testbed` in each."""

import hashlib
import os
from pathlib import Path

MACHINE_ID = Path("/etc/machine-id")


def _xdg(variable: str, fallback: str) -> Path:
    # The XDG specification: a relative path in the variable is invalid and must be ignored.
    value = os.environ.get(variable, "")
    base = Path(value) if value.startswith("/") else Path.home() / fallback
    return base / "testbed"


def cache_dir() -> Path:
    """Return the folder of files that can be made again: jars, images' recipes, archives.

    Machines of different architectures may share a home. Binaries and archives of one do not run on the other.
    """
    folder, architecture = _xdg("XDG_CACHE_HOME", ".cache"), os.uname().machine
    return folder if architecture == "x86_64" else folder / architecture


def state_dir() -> Path:
    """Return this machine's folder of running testbeds and unfinished moves: keys, addresses, journals.

    Machines may share a home. Here the containers and processes of another one would count as gone and dead.
    """
    return _xdg("XDG_STATE_HOME", ".local/state") / machine_name()


def machine_name() -> str:
    """Return this machine's name in a home that machines share; empty where it has no id, as in most containers.

    The name has the host name and a digest of it and the id: clones of a template have one id.
    """
    try:
        identity = MACHINE_ID.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
    host = os.uname().nodename.replace("/", "-")
    return f"{host}-{hashlib.sha256(f'{host} {identity}'.encode()).hexdigest()[:8]}" if identity else ""


def data_dir() -> Path:
    """Return the folder of the user's results: the store and its reports."""
    return _xdg("XDG_DATA_HOME", ".local/share")


def reports_dir() -> Path:
    """Return the folder of reports. It is always on this machine, even when the store is not."""
    return data_dir() / "reports"


def throttle_journals() -> Path:
    """Return the folder with a journal for each active throttle: the settings to restore, and their cluster."""
    return state_dir() / "reassign"
