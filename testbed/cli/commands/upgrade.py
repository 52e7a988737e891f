"""Bring a running testbed to another Kafka, one node after the other."""

import argparse

from results.render import document, table
from testbed.cli.output import timed_progress


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the testbed")
    parser.add_argument("--to", metavar="VERSION", required=True, help="a release, or the path of a tarball or folder")
    parser.add_argument("--hosts", metavar="HOST,…", help="only these (default: all that run Kafka)")
    parser.add_argument("--finalize", action="store_true", help="switch the new release's features on afterwards")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def run(args: argparse.Namespace) -> int:
    from testbed.provision.testbed import Testbed
    from testbed.provision.upgrade import rolling_upgrade

    testbed = Testbed.attach(args.name)
    hosts = None if args.hosts is None else [host for host in args.hosts.split(",") if host]
    done = rolling_upgrade(testbed, args.to, hosts, args.finalize, progress=timed_progress())
    if args.json:
        print(document(done))
    else:
        rows = [(step.host, step.before, step.after, f"{step.seconds:.1f}") for step in done.steps]
        print(table(("HOST", "BEFORE", "NOW", "SECONDS"), rows) if rows else f"nothing to do: all run {args.to}")
        print("features " + ", ".join(f"{name}={level}" for name, level in sorted(done.features.items())))
    testbed.close()
    return 0
