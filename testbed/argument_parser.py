"""The parser of a command line."""

import argparse
import sys
from typing import NoReturn

from testbed.errors import UsageError

USAGE = UsageError.exit_code


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
