"""`./run test`: what needs no machine of its own on several cores at once, then what measures, alone."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MOST_WORKERS = 4
"""Some of them start a Spark of their own: more take memory, and no less time."""
TOGETHER = ("-m", "not containers and not nightly", "--numprocesses=logical", f"--maxprocesses={MOST_WORKERS}")
ALONE = ("-m", "containers and not nightly")
_FAILED = 1
"""pytest's "some tests failed": the other half is told all the same. Anything else is the end of it."""


def parts(arguments: Sequence[str]) -> list[tuple[str, ...]]:
    """pytest's command lines: one with what was asked for, or the two halves of all tests when nothing was."""
    if arguments:
        return [("pytest", *arguments)]
    return [("pytest", *TOGETHER, "--dist=loadfile"), ("pytest", *ALONE)]


def run(arguments: Sequence[str], folder: Path, variables: dict[str, str]) -> int:
    """Run the tests in `folder`; pytest's exit code, of two halves that of the worse one."""
    worst = 0
    for command in parts(arguments):
        sys.stdout.flush()
        status = _wait(subprocess.Popen(command, cwd=folder, env=variables))
        worst = worst or status
        if status not in (os.EX_OK, _FAILED):
            return status
    return worst


def _wait(pytest: subprocess.Popen[bytes]) -> int:
    """Its exit code. What is to end this process ends pytest, which takes its testbeds down and is waited for."""
    before = signal.signal(signal.SIGTERM, lambda number, _frame: pytest.send_signal(number))
    try:
        while True:
            try:
                return pytest.wait()
            except KeyboardInterrupt:
                continue  # the terminal has told pytest as well
    finally:
        signal.signal(signal.SIGTERM, before)
