"""`testbed defects`: what `--defect` of `testbed run` and `testbed up` accepts."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document")


def _run(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from results.render import document, table
    from testbed.defects import defects

    known = defects().values()
    if args.json:
        print(document([asdict(each) for each in known]))
        return 0
    rows = [
        (each.name, each.kind, " ".join(f"{p.name}={p.default}" for p in each.parameters), each.summary)
        for each in known
    ]
    print(table(("DEFECT", "KIND", "PARAMETERS", "WHAT IS WRONG"), rows))
    return 0


COMMAND = Command("defects", "list the ways in which brokers can be broken on purpose", _configure, _run)
