"""The testbed's folders: the XDG base directories, one folder `testbed` in each."""

import os
from pathlib import Path


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
    """Return the folder of running testbeds and unfinished moves: keys, addresses, journals."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def data_dir() -> Path:
    """Return the folder of the user's results: the store and its reports."""
    return _xdg("XDG_DATA_HOME", ".local/share")


def reports_dir() -> Path:
    """Return the folder of reports. It is always on this machine, even when the store is not."""
    return data_dir() / "reports"


def throttle_journals() -> Path:
    """Return the folder with a journal for each active throttle: the settings to restore, and their cluster."""
    return state_dir() / "reassign"
