"""`testbed plan TOPOLOGY`."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topology", help="a topology file, or the name of a ready one")


def _run(args: argparse.Namespace) -> int:
    from testbed.provision.plan_text import describe
    from testbed.topology.find import find

    print(describe(find(args.topology)))
    return 0


COMMAND = Command("plan", "print what would be made; needs neither root nor an engine", _configure, _run)
