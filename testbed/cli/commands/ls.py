"""`testbed ls`."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document")


def _run(args: argparse.Namespace) -> int:
    from results.render import document, table
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


COMMAND = Command("ls", "list the testbeds", _configure, _run)
