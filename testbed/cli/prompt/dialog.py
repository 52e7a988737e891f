"""The dialog: lines from a terminal with history and completion, or from a script, and how each ends."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

from testbed.catalogue import discovered
from testbed.cli.main import FAILED, INTERRUPTED
from testbed.cli.prompt.grammar import Grammar
from testbed.cli.prompt.session import Session
from testbed.errors import TestbedError
from testbed.paths import state_dir
from testbed.provision.testbed import Testbed
from testbed.signals import TerminationGuard, interruptible_input

_KEPT_LINES = 1000


class Leave(Exception):
    """The user leaves the prompt."""


def grammar() -> Grammar:
    """Return the commands of all modules of the catalogue."""
    found = discovered("testbed.cli.prompt.catalogue", "COMMANDS")
    return Grammar([command for commands in found.values() for command in commands])


def converse(testbed: Testbed) -> int:
    """Take commands until the user leaves or the script ends; return the exit code.

    A script ends at its first failure, whose exit code it has. At its end it waits for the move that it began.
    """
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    session = Session(testbed, grammar(), interactive=interactive)
    # SIGTERM ends the prompt, where Ctrl-C ends one command.
    with TerminationGuard():
        try:
            return _in_terminal(session) if interactive else _script(session, sys.stdin)
        finally:
            _depart(session)


def _in_terminal(session: Session) -> int:
    for line in session.greeting():
        session.remark(line)
    with _line_editor(session), interruptible_input():
        while True:
            while session.notices:
                session.remark(session.notices.pop(0))
            try:
                _perform(session, input(f"{session.testbed.name}> "))
            except KeyboardInterrupt:
                session.remark("^C")
            except EOFError:
                session.remark("")
                return 0
            except Leave:
                return 0
            except TestbedError as error:
                session.remark(str(error))


def _script(session: Session, lines: TextIO) -> int:
    for number, line in enumerate(lines, 1):
        try:
            status = _perform(session, line)
        except Leave:
            return 0
        except TestbedError as error:
            session.remark(f"line {number}: {error}")
            return error.exit_code
        if status:
            return status
    return _wait_for_move(session)


def _wait_for_move(session: Session) -> int:
    move = session.move
    if move is None:
        return 0
    try:
        move.wait(session.remark)
        move.require_done()
    except KeyboardInterrupt:
        return INTERRUPTED
    except TestbedError as error:
        session.remark(str(error))
        return FAILED
    return 0


def _perform(session: Session, line: str) -> int:
    parsed = session.grammar.parse(line, session.names)
    return 0 if parsed is None else parsed.command.run(session, parsed.values) or 0


def _depart(session: Session) -> None:
    """Stop following a move, and say what is left."""
    if (move := session.running_move()) is not None:
        move.leave()
    for line in [*session.notices, *session.unfinished()]:
        session.remark(line)


# ---- the line editor


@contextlib.contextmanager
def _line_editor(session: Session) -> Iterator[None]:
    import readline  # a script needs no line editor

    path = state_dir() / "shell-history"
    with contextlib.suppress(OSError):  # there is none yet
        readline.read_history_file(path)
    readline.set_history_length(_KEPT_LINES)
    readline.set_completer(_completer(session))
    readline.set_completer_delims(" \t")
    # Python's own builds, such as uv's, may have libedit in place of GNU's readline, with commands of its own.
    editline = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if editline else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(None)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            readline.write_history_file(path)
            path.chmod(0o600)
        except OSError as error:
            session.remark(f"{path}: the history cannot be written: {error.strerror}")


def _completer(session: Session) -> Callable[[str, int], str | None]:
    import readline

    found: list[str] = []

    def complete(_text: str, number: int) -> str | None:
        """Return the word of this number: readline asks for the first one, the second, … until there is none."""
        if number == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            found[:] = session.grammar.complete(line, session.completing)
        if number >= len(found):
            return None
        # A word that may go on, such as `host=`, gets no blank.
        return found[number] if found[number].endswith("=") or len(found) > 1 else f"{found[number]} "

    return complete
