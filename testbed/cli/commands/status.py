"""`testbed status NAME`."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the testbed")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def _run(args: argparse.Namespace) -> int:
    from testbed.cli.show import document, table
    from testbed.provision.status import status
    from testbed.provision.testbed import Testbed

    found = status(Testbed.attach(args.name))
    if args.json:
        print(document(found))
    else:
        print(table(("HOST", "ROLE", "RACK", "DATA", "KAFKA", "RUNS", "BROKER"), found["hosts_table"]))
        for difference in found["shaping"]:
            print(f"shaping differs: {difference}")
        print(f"bootstrap {','.join(found['bootstrap'])}")
    return 0 if found["ok"] else 1


COMMAND = Command("status", "what runs on each host, and whether the NICs are shaped as declared", _configure, _run)
