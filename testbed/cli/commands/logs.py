"""Print the end of the log of a host's server: Kafka, or the object store."""

import argparse
import sys

from results.contract.untrusted import visible
from testbed.cli.options import pick
from testbed.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "testbed logs [-n N] [NAME] HOST"
    parser.add_argument("where", nargs="+", help="[NAME] HOST; the testbed's NAME may be left out when one is up")
    parser.add_argument("-n", "--lines", metavar="N", type=int, default=100, help="number of lines (default: 100)")


def run(args: argparse.Namespace) -> int:
    testbed, host = pick(args.where)
    daemon = testbed.daemon(host)
    if daemon is None:
        raise UsageError(f"no server runs on {host}: its role is {testbed.topology.host(host).role.value}")
    # Clients choose words of a broker's log: their ids, and names of topics.
    sys.stdout.write(visible(daemon.log_tail(args.lines)))
    return 0
