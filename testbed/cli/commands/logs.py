"""`testbed logs NAME HOST`."""

import argparse
import sys

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "testbed logs [-n LINES] [NAME] HOST"
    parser.add_argument("where", nargs="+", help="[NAME] HOST; NAME may be left out when one testbed is up")
    parser.add_argument("-n", "--lines", type=int, default=100, help="how many lines from the end (default 100)")


def _run(args: argparse.Namespace) -> int:
    from testbed.cli.pick import pick_host
    from testbed.kafka.node import LOG

    sys.stdout.write(pick_host(args.where).tail(LOG, lines=args.lines))
    return 0


COMMAND = Command("logs", "the end of a broker's log", _configure, _run)
