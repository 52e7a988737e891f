"""Run a command on a host."""

import argparse
import shlex
import sys

from testbed.cli.options import pick
from testbed.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "testbed exec [NAME] HOST -- CMD …"
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        help="[NAME] HOST -- CMD …; the testbed's NAME may be left out when one is up",
    )
    parser.epilog = "Example: `testbed exec b1 -- ss -ltn`.\nExit code: that of CMD."


def run(args: argparse.Namespace) -> int:
    if "--" not in args.words:
        raise UsageError("put -- before the command: testbed exec b1 -- ip addr")
    cut = args.words.index("--")
    where, command = args.words[:cut], args.words[cut + 1 :]
    if not command:
        raise UsageError("there is no command after --")
    testbed, host = pick(where)
    # One word is a shell's command line, as in ssh; several words are one command with its arguments.
    line = command[0] if len(command) == 1 else shlex.join(command)
    result = testbed.hosts[host].run(line, timeout_s=3600, check=False)
    sys.stdout.write(result.stdout)
    sys.stderr.write(result.stderr)
    return result.exit_status
