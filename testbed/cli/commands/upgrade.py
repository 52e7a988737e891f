"""Restart a running testbed with another Kafka, one node after the other."""

import argparse

from results.render import document, table
from testbed.cli.output import timed_progress


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="a testbed that is up")
    parser.add_argument("--to", metavar="VERSION", required=True, help="a release, a tarball or a build's path")
    parser.add_argument("--hosts", metavar="HOST,…", help="only these hosts (default: all that run Kafka)")
    parser.add_argument("--finalize", action="store_true", help="finalize the new release's features at the end")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.epilog = "Example: `testbed upgrade mine --to 4.3.1 --hosts b2`."


def run(args: argparse.Namespace) -> int:
    from testbed.faults.active_faults import require_restartable
    from testbed.provision.testbed import Testbed
    from testbed.provision.upgrade import rolling_upgrade

    testbed = Testbed.attach(args.name)
    hosts = None if args.hosts is None else [host for host in args.hosts.split(",") if host]
    require_restartable(testbed, hosts)
    done = rolling_upgrade(testbed, args.to, hosts, args.finalize, progress=timed_progress())
    if args.json:
        print(document(done))
    else:
        rows = [(step.host, step.before, step.after, f"{step.seconds:.1f}") for step in done.steps]
        print(table(("HOST", "BEFORE", "NOW", "SECONDS"), rows) if rows else f"nothing to do: all run {args.to}")
        print("features " + ", ".join(f"{name}={level}" for name, level in sorted(done.features.items())))
    testbed.close()
    return 0
