"""List the ways in which brokers can be broken on purpose."""

import argparse

from results.render import document, table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    from testbed.defects import defects

    known = defects().values()
    if args.json:
        print(document(list(known)))
        return 0
    rows = [
        (each.name, each.kind, " ".join(f"{p.name}={p.default}" for p in each.parameters), each.summary)
        for each in known
    ]
    print(table(("DEFECT", "KIND", "PARAMETERS", "WHAT IS WRONG"), rows))
    return 0
