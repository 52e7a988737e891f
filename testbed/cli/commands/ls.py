"""List the testbeds."""

import argparse

from results.render import document, table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    from testbed.provision.containers import Engine
    from testbed.provision.resources import overview

    rows = overview(Engine())
    if args.json:
        print(document([{"name": r.name, "status": r.status, "hosts": r.hosts, "created": r.created} for r in rows]))
    elif rows:
        print(table(("NAME", "STATUS", "HOSTS", "CREATED"), [(r.name, r.status, r.hosts, r.created) for r in rows]))
    else:
        print("no testbeds; `testbed up three-brokers` makes one")
    return 0
