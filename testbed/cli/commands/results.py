"""`testbed results list|show|report|verify`."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        choices=("list", "show", "report", "verify"),
        help="list the runs; show one run's criteria; write its report again; check every file",
    )
    parser.add_argument("run", nargs="?", help="a run's id (default: the newest)")
    parser.add_argument("--store", metavar="URI", help="the result store (default: under the XDG data folder)")


def _run(args: argparse.Namespace) -> int:
    from testbed.cli import stored
    from testbed.errors import UsageError

    store = stored.open_store(args.store)
    if args.action == "list":
        if args.run:
            raise UsageError("list takes no run")
        return stored.list_runs(store)
    if args.action == "verify":
        return stored.verify(store, args.run)
    run_id = stored.pick(store, args.run)
    return stored.show(store, run_id) if args.action == "show" else stored.report(store, run_id)


COMMAND = Command("results", "list, show and verify the runs of a store", _configure, _run)
