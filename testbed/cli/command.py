"""The type of a command, and the search for commands."""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from testbed.discover import discovered

USAGE = 64
"""EX_USAGE of sysexits.h."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command `testbed NAME`; `run` returns the exit code. Heavy imports belong into `run`."""

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


class Parser(argparse.ArgumentParser):
    """argparse with the usual exit code for a wrong command line, and no abbreviations."""

    def __init__(self, prog: str, description: str | None = None, epilog: str | None = None) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """Print the error and the usage, and exit."""
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def commands() -> Iterator[Command]:
    """Yield every command: the COMMAND of each module of `testbed.cli.commands`."""
    yield from discovered("testbed.cli.commands", "COMMAND").values()
