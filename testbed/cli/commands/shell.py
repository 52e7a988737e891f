"""`testbed shell NAME HOST`."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "testbed shell [NAME] HOST"
    parser.add_argument("where", nargs="+", help="[NAME] HOST; NAME may be left out when one testbed is up")
    parser.epilog = "Commands may be piped in, too. The exit code is the shell's."


def _run(args: argparse.Namespace) -> int:
    from testbed.cli.pick import pick_host
    from testbed.cli.terminal import shell

    return shell(pick_host(args.where))


COMMAND = Command("shell", "a shell on a host", _configure, _run)
