"""The commands: each is a module of `testbed.cli.commands`, which is imported when its command is used.

The first line of its docstring is the help. `configure(parser)` adds the options, `run(args)` returns the exit code.
"""

import argparse
import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from testbed.argument_parser import Parser

FOLDER = Path(__file__).with_name("commands")


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

    def run(self, words: Sequence[str]) -> int:
        """Run the command with the words after its name, and return its exit code."""
        parser = Parser(f"testbed {self.name}", self.help)
        self.configure(parser)
        code: int = self.module.run(parser.parse_args(words))
        return code


def commands() -> Iterator[Command]:
    """Yield every command, by name."""
    yield from (Command(path.stem) for path in sorted(FOLDER.glob("[!_]*.py")))
