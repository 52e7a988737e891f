"""Check what this machine needs, and install what is missing."""

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    from testbed.setup.doctor import WITH

    parser.add_argument("--fix", action="store_true", help="install what is missing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--with", dest="more", action="append", default=[], metavar="NAME", help=WITH)
    parser.epilog = "Exit codes: 0 nothing is missing, 1 something is."


def run(args: argparse.Namespace) -> int:
    from testbed.setup import doctor

    flags = [flag for flag, given in (("--fix", args.fix), ("--json", args.json)) if given]
    return doctor.main([*flags, *(f"--with={name}" for name in args.more)])
