"""Print what `up` would make; needs neither root nor an engine."""

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topology", metavar="TOPOLOGY", help="a topology file, or the name of a ready one")


def run(args: argparse.Namespace) -> int:
    from testbed.provision.plan_text import describe
    from testbed.topology.find import find

    print(describe(find(args.topology)))
    return 0
