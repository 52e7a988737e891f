"""Completion of command lines: the shell calls the program, which answers with words for the line so far.

Names of testbeds, topologies, experiments and incidents are those of the moment.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from testbed.cli.command import Command

VARIABLE = "_ARGCOMPLETE"
"""Set by the shell when it asks for words."""
SHELLS = ("bash", "zsh", "fish")


def shell_code(shell: str) -> str:
    """Return the code that a shell evaluates to complete the command lines of `testbed`."""
    from argcomplete.shell_integration import shellcode

    return shellcode(["testbed"], shell=shell)


def answer(known: Sequence[Command]) -> None:
    """Write the words for the shell's line, and exit."""
    import argcomplete

    line = os.environ.get("COMP_LINE", "").split()
    argcomplete.autocomplete(parser(known, "".join(line[1:2])), always_complete_options="long")


def parser(known: Sequence[Command], typed: str) -> argparse.ArgumentParser:
    """Return a parser that knows every command, and the arguments of the typed one with the names of the moment."""
    whole = argparse.ArgumentParser(prog="testbed")
    subparsers = whole.add_subparsers()
    for command in known:
        part = subparsers.add_parser(command.name, help=command.help)
        if command.name == typed:  # the others import what they need
            command.configure(part)
            _add_names(part, command.name)
    return whole


def _add_names(part: argparse.ArgumentParser, command: str) -> None:
    for action in part._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _add_names(inner, command)
            continue
        found = NAMES.get((command, action.dest)) or NAMES.get(("", action.dest))
        if found is not None and action.choices is None:
            action.completer = _completer(found)  # type: ignore[attr-defined]  # argcomplete's way


def _completer(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    def complete(prefix: str, **_parsed: Any) -> list[str]:
        return [name for name in names() if name.startswith(prefix)]

    return complete


def _testbeds() -> Iterable[str]:
    from testbed.provision.state import names

    return names()


def _topologies() -> Iterable[str]:
    from testbed.topology.find import ready

    return ready()


def _experiments() -> Iterable[str]:
    from testbed.experiments.experiment import experiments

    return experiments()


def _incidents() -> Iterable[str]:
    from testbed.incidents.read import ready_incidents

    return ready_incidents()


NAMES: dict[tuple[str, str], Callable[[], Iterable[str]]] = {
    ("up", "topology"): _topologies,
    ("plan", "topology"): _topologies,
    ("run", "topology"): _topologies,
    ("run", "experiment"): _experiments,
    ("compare", "experiment"): _experiments,
    ("sweep", "experiment"): _experiments,
    ("replay", "incident"): _incidents,
    ("", "name"): _testbeds,
    ("", "on"): _testbeds,
    ("", "where"): _testbeds,
}
"""(command, or empty for all; argument) → the names that it may be."""
