"""Where the testbed keeps things, by the XDG base directory specification."""

import os
from pathlib import Path


def _xdg(variable: str, default: str) -> Path:
    given = os.environ.get(variable, "")
    # The specification says that a relative path is invalid and is to be ignored.
    base = Path(given) if given.startswith("/") else Path.home() / default
    return base / "testbed"


def cache_dir() -> Path:
    """What can be made again: `$XDG_CACHE_HOME/testbed`, else `~/.cache/testbed`."""
    return _xdg("XDG_CACHE_HOME", ".cache")


def state_dir() -> Path:
    """Logs, journals, keys: `$XDG_STATE_HOME/testbed`, else `~/.local/state/testbed`."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def data_dir() -> Path:
    """What a user would miss, such as runs: `$XDG_DATA_HOME/testbed`, else `~/.local/share/testbed`."""
    return _xdg("XDG_DATA_HOME", ".local/share")
