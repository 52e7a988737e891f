"""The entry point. It finds the command, runs it, and turns errors into a message and an exit code."""

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from results.contract.untrusted import visible
from testbed import __version__
from testbed.argument_parser import USAGE
from testbed.cli.command import Command, commands
from testbed.cli.commands.completion import VARIABLE, answer
from testbed.errors import TestbedError, os_error_text
from testbed.extras import missing_extra
from testbed.signals import Terminated
from testbed.suggestions import did_you_mean

FAILED = TestbedError.exit_code
INTERRUPTED = 130
UNREAD = 128 + signal.SIGPIPE
"""The reader of the output ended before its end. 0 would mean a pass to `set -o pipefail`, whatever the verdict is."""


def _overview(known: Sequence[Command]) -> str:
    width = max(len(command.name) for command in known)
    listed = "\n".join(f"  {command.name:<{width}}  {command.help}" for command in known)
    return (
        f"testbed {__version__}: did this change make moving data worse?\n\n"
        f"usage: testbed COMMAND …      (testbed COMMAND --help says more)\n\n{listed}\n\n"
        "Exit codes: 0 pass, 1 fail, 2 inconclusive; 64 wrong usage, 69 the machine lacks something,\n"
        "70 the command could not be done, 130 interrupted"
    )


def _terminated(_signal: int, _frame: FrameType | None) -> NoReturn:
    # Handled as Ctrl-C, so that all cleanup runs.
    raise KeyboardInterrupt


def _find(words: Sequence[str], known: Sequence[Command]) -> Command | int:
    """Return the command that the words name; or print what they ask for instead, and return the exit code."""
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview(known))
        return 0 if words else USAGE
    if words[0] in ("--version", "version"):
        print(__version__)
        return 0
    command = next((each for each in known if each.name == words[0]), None)
    if command is None:
        meant = did_you_mean(words[0], [each.name for each in known], lambda name: f"`testbed {name}`")
        print(f"testbed: there is no command {words[0]!r}{meant}\n\n{_overview(known)}", file=sys.stderr)
        return USAGE
    return command


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    known = list(commands())
    if VARIABLE in os.environ:
        answer(known)
    command = _find(words, known)
    if isinstance(command, int):
        return command
    signal.signal(signal.SIGTERM, _terminated)
    try:
        return command.run(words[1:])
    except TestbedError as error:
        _tell(command.name, error)
        return error.exit_code
    except (KeyboardInterrupt, Terminated):
        _tell(command.name, "interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output ended (`| head`); the null device prevents a complaint of Python at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except Exception as error:  # noqa: BLE001 - a defect of the testbed: Python would exit with 1, which means REGRESSED
        said = os_error_text(error) if isinstance(error, OSError) else missing_extra(error) or _of_store(error)
        if said:
            _tell(command.name, said)
        else:
            traceback.print_exc()
        return FAILED


def _of_store(error: Exception) -> str | None:
    """Return the message of an error of a store; None for other errors. The store's libraries are not imported."""
    packs = sys.modules.get("results.contract.packs")
    return str(error) if packs is not None and isinstance(error, packs.StoreError) else None


def _tell(command: str, problem: object) -> None:
    """Print a problem. It may quote a file, a log line or a name of a cluster, with anything in it."""
    print(visible(f"testbed {command}: {problem}"), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
