"""Output of commands: progress on standard error, and files that are written atomically."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from results.contract import durable
from testbed.errors import UsageError


def timed_progress() -> Callable[[str], None]:
    """Return a function that prints a step on standard error, with the time since now."""
    begun = time.monotonic()
    return lambda text: print(f"{time.monotonic() - begun:6.1f} s  {text}", file=sys.stderr, flush=True)


def require_writable(*paths: Path | None) -> None:
    """Raise `UsageError` when a file cannot be written, before the command spends hours on its content."""
    for path in paths:
        if path is None:
            continue
        try:
            if path.is_dir():
                raise UsageError(f"{path} is a folder; name a file")
            folder = next(each for each in path.absolute().parents if each.exists())
        except OSError as error:
            raise UsageError(f"{path} cannot be examined: {error.strerror or error}") from error
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise UsageError(f"{path}: {folder} is no folder that can be written to; name a file elsewhere")


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.write(path, text)
