"""Print the code with which a shell completes this program's command lines.

The shell calls the program, which answers with words for the line so far. Names of testbeds, topologies, experiments
and incidents are those of the moment.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import Any

from testbed.cli.command import Command

VARIABLE = "_ARGCOMPLETE"
"""Set by the shell when it asks for words."""
SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that evaluates the code")
    parser.epilog = (
        'In bash: `eval "$(testbed completion bash)"`.\n'
        'In zsh: `eval "$(testbed completion zsh)"`.\n'
        "In fish: `testbed completion fish | source`."
    )


def run(args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["testbed"], shell=args.shell))
    return 0


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


def _completer(source: str) -> Callable[..., list[str]]:
    def complete(prefix: str, **_parsed: Any) -> list[str]:
        from argcomplete.completers import FilesCompleter

        # zsh and fish offer these words only; bash adds its own files where there are none.
        files = FilesCompleter(("yaml", "yml"))(prefix) if source in _OR_A_FILE else []
        return [*(name for name in resolve_name(source)() if name.startswith(prefix)), *files]

    return complete


_TOPOLOGIES, _EXPERIMENTS = "testbed.topology.find:ready", "testbed.experiments.experiment:experiments"
_TESTBEDS, _INCIDENTS = "testbed.provision.state:names", "testbed.incidents.read:ready_incidents"
_OR_A_FILE = (_TOPOLOGIES, _INCIDENTS)
NAMES = {
    ("up", "topology"): _TOPOLOGIES,
    ("plan", "topology"): _TOPOLOGIES,
    ("run", "topology"): _TOPOLOGIES,
    ("experiments", "name"): _EXPERIMENTS,
    ("run", "experiment"): _EXPERIMENTS,
    ("compare", "experiment"): _EXPERIMENTS,
    ("sweep", "experiment"): _EXPERIMENTS,
    ("replay", "incident"): _INCIDENTS,
    ("", "name"): _TESTBEDS,
    ("", "on"): _TESTBEDS,
    ("", "where"): _TESTBEDS,
}
"""(command, or empty for all; argument) → the function that returns the names that it may be."""
