"""`./run`: set-up for a command, then the command itself in the project's environment.

`./run test` runs pytest twice: first all tests that others do not disturb, several at a time; then the tests that
measure, each alone.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import TestbedError, os_error_text
from testbed.setup.check import EX_UNAVAILABLE, FIX_ALL
from testbed.setup.environment import CHECKOUT, environment, mark_used, variables

WORKERS = 4
"""Two run tests with containers, which wait most of the time; see `tests/conftest.py`. Some tests start their own
Spark: more workers use more memory and save no time."""
TOGETHER = ("-m", "not alone and not nightly", f"--numprocesses={WORKERS}", "--no-loadscope-reorder")
ALONE = ("-m", "alone and not nightly", "tests/containers")
_FAILED = 1
"""pytest's exit code for failed tests: the other parts still run. Any other code ends the command."""


def test_commands(arguments: Sequence[str]) -> list[tuple[str, ...]]:
    """Return pytest's command lines: one with the user's arguments, or the two parts of all tests."""
    if arguments:
        return [("pytest", *arguments)]
    return [("pytest", *TOGETHER), ("pytest", *ALONE)]


def run_tests(arguments: Sequence[str], folder: Path, variables: dict[str, str]) -> int:
    """Run the tests in `folder`; return the first of pytest's exit codes that is not 0."""
    worst = 0
    for command in test_commands(arguments):
        sys.stdout.flush()
        status = _wait_for_tests(subprocess.Popen(command, cwd=folder, env=variables))
        worst = worst or status
        if status not in (os.EX_OK, _FAILED):
            return status
    return worst


def _wait_for_tests(pytest: subprocess.Popen[bytes]) -> int:
    """Run pytest and return its exit code. A signal to end this process ends pytest first."""
    before = signal.signal(signal.SIGTERM, lambda number, _frame: pytest.send_signal(number))
    try:
        while True:
            try:
                return pytest.wait()
            except KeyboardInterrupt:
                continue  # the terminal has interrupted pytest, too
    finally:
        signal.signal(signal.SIGTERM, before)


USAGE = """\
usage: ./run demo                  set everything up, run the first experiment, print its verdict
       ./run test [ARGUMENTS]      set everything up, run the tests (arguments go to pytest)
       ./run testbed COMMAND …     any command of the testbed; `./run testbed --help` lists them
       ./run exec PROGRAM …        a program in the project's environment, such as mypy or python
"""
DEMO = ("testbed", "run", "kip73-two-node", "--set", "fetch=tuned", "--set", "rate=10MB/s")
EX_USAGE = 64
INTERRUPTED = 130


def main(argv: Sequence[str]) -> int:
    """Set up and become the command; return an exit code only when set-up fails."""
    try:
        return _dispatch(list(argv))
    except TestbedError as error:
        print(f"run: {error}", file=sys.stderr)
        return EX_UNAVAILABLE
    except OSError as error:
        if (said := os_error_text(error)) is None:
            raise
        print(f"run: {said}", file=sys.stderr)
        return EX_UNAVAILABLE
    except KeyboardInterrupt:
        print("\nstopped; the same command continues from here", file=sys.stderr)
        return INTERRUPTED


def _dispatch(argv: list[str]) -> int:
    command, *rest = argv or [""]
    if command == "demo" and not rest:
        return ready() or _become(DEMO)
    if command == "test":
        return ready() or _test(rest)
    if command == "testbed" and rest[:1] == ["doctor"]:
        # The doctor must answer on a machine without an environment.
        from testbed.setup import doctor

        return doctor.main(rest[1:])
    if command == "testbed":
        return _environment_ready() or _become(("testbed", *rest))
    if command == "exec" and rest:
        return _environment_ready() or _become(rest)
    wants_help = command in ("", "-h", "--help", "help")
    print(USAGE, end="", file=sys.stdout if wants_help else sys.stderr)
    return 0 if wants_help else EX_USAGE


def ready(names: tuple[str, ...] = ()) -> int:
    """Fix the named checks, or all; return 0 when they pass."""
    from testbed.setup.check import closure
    from testbed.setup.checks.catalogue import all_checks
    from testbed.setup.fix import make_ready, report_failures

    checks = closure(all_checks(), names) if names else all_checks()
    outcome = make_ready(checks)
    if outcome.ok:
        return 0
    report_failures(checks, outcome)
    print(f"Repair this, then run the same command again; `{FIX_ALL}` repairs what a program can.", file=sys.stderr)
    return EX_UNAVAILABLE


def _environment_ready() -> int:
    return 0 if environment().complete else ready(("python environment",))


def _test(arguments: Sequence[str]) -> int:
    wanted = environment()
    mark_used(wanted)
    return run_tests(arguments, CHECKOUT, variables(wanted, os.environ))


def _become(command: Sequence[str]) -> int:
    wanted = environment()
    mark_used(wanted)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(command[0], list(command), variables(wanted, os.environ))
    except FileNotFoundError:
        print(f"run: {command[0]} is neither in the environment nor on PATH", file=sys.stderr)
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
