"""Python in a process of its own that is killed by SIGKILL before the n-th of its steps on disk."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_PRELUDE = """
import os, signal, sys
from pathlib import Path
left = int(sys.argv.pop(1))
def dying(real):
    def call(*arguments, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)
    return call
def die_writing():
    os.fsync, Path.rename = dying(os.fsync), dying(Path.rename)
def die_removing():
    os.unlink, Path.unlink, os.rmdir = dying(os.unlink), dying(Path.unlink), dying(os.rmdir)
"""


def killed_at(step: int, code: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run `code` with these as `sys.argv[1:]`; `left` steps are left to it.

    A step is, once `die_writing()` was called, each fsync and rename; once `die_removing()` was, each removal.
    """
    return subprocess.run(
        [sys.executable, "-c", _PRELUDE + code, str(step), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
