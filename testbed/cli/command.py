"""The commands: each is a module of `testbed.cli.commands`, which is imported when its command is used.

The first line of its docstring is the help. `configure(parser)` adds the options, `run(args)` returns the exit code.
"""

import argparse
import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from testbed.errors import UsageError

FOLDER = Path(__file__).with_name("commands")
USAGE = UsageError.exit_code


@dataclass(frozen=True, slots=True)
class Command:
    """One command `testbed NAME`."""

    name: str

    @property
    def help(self) -> str:
        """Return what the command does, in a line; the module is read and not imported."""
        text = ast.get_docstring(ast.parse((FOLDER / f"{self.name}.py").read_text(encoding="utf-8"))) or ""
        line = text.partition("\n")[0]
        return (line[:1].lower() + line[1:]).removesuffix(".")

    @property
    def module(self) -> Any:
        """Return the command's module."""
        return import_module(f"testbed.cli.commands.{self.name}")

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's options."""
        self.module.configure(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Run the command and return its exit code."""
        code: int = self.module.run(args)
        return code


class Parser(argparse.ArgumentParser):
    """argparse with the usual exit code for a wrong command line, and no abbreviations."""

    def __init__(self, prog: str, description: str | None = None) -> None:
        super().__init__(
            prog=prog, description=description, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
        )

    def error(self, message: str) -> NoReturn:
        """Print the error and the usage, and exit."""
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def commands() -> Iterator[Command]:
    """Yield every command, by name."""
    yield from (Command(path.stem) for path in sorted(FOLDER.glob("[!_]*.py")))
