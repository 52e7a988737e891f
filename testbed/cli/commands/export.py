"""Print a testbed as the cluster file of another tool."""

import argparse
import json
from contextlib import closing


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "format", choices=["ducktape-cluster"], help="a file for ducktape's --cluster-file, with its JsonCluster"
    )
    parser.add_argument("name", help="a testbed that is up")


def run(args: argparse.Namespace) -> int:
    from testbed.provision.testbed import Testbed
    from testbed.runner.cluster_file import cluster_file

    with closing(Testbed.attach(args.name)) as testbed:
        print(json.dumps(cluster_file(testbed), indent=2))
    return 0
