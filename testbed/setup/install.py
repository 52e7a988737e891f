"""The installation of missing packages by the distribution's package manager, as root or through sudo."""

import threading
from collections.abc import Sequence
from pathlib import Path

from testbed.paths import state_dir
from testbed.software.commands import CommandError, run_logged
from testbed.software.distribution import as_root, this_distribution

ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
_once = threading.Lock()
_refreshed = threading.Event()


def install(packages: Sequence[str]) -> None:
    """Install packages; wait for another installation. Raise CommandError, which names the command, on failure."""
    distribution = this_distribution()
    manager = distribution.manager
    if manager is None:
        raise CommandError(f"{distribution.name}: no known package manager: {distribution.command(packages)}")
    with _once:
        if manager.refresh and not _refreshed.is_set():
            run_as_root([manager.program, *manager.quiet, *manager.refresh], distribution.command(packages))
            _refreshed.set()
        run_as_root([manager.program, *manager.quiet, *manager.install, *packages], distribution.command(packages))


def run_as_root(words: Sequence[str | Path], remedy: str) -> None:
    """Run a command of set-up as root. Raise CommandError, which names `remedy`, where this user cannot."""
    command = as_root(words, ENVIRONMENT)
    if command is None:
        raise CommandError(f"only root can do this: sudo {remedy}")
    run_logged(command, state_dir() / "logs" / "packages.log", env=ENVIRONMENT)
