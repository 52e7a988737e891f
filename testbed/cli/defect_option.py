"""The option `--defect` of the commands that start brokers."""

import argparse


def add_defects(parser: argparse.ArgumentParser) -> None:
    """Add `--defect`, which may be repeated; `args.defect` is a list of texts."""
    parser.add_argument(
        "--defect",
        metavar="NAME[@HOST,…][:key=value,…]",
        action="append",
        default=[],
        help="break the brokers on purpose (may be repeated; `testbed defects` lists them)",
    )
