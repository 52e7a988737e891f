"""Bring a topology up: shaped NICs, and brokers that serve."""

import argparse

from testbed.cli.options import add_defects
from testbed.cli.output import timed_progress


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topology", metavar="TOPOLOGY", help="a topology file, or the name of a ready one")
    parser.add_argument("--name", metavar="NAME", help="the testbed's name (default: the topology's)")
    parser.add_argument(
        "--kafka",
        metavar="VERSION",
        help="a release, a tarball or a build's path for every host (default: the topology's)",
    )
    add_defects(parser)
    parser.epilog = "Example: `testbed up three-brokers --name mine --kafka 4.2.1`."


def run(args: argparse.Namespace) -> int:
    from testbed.defects.parse import by_host, in_words
    from testbed.provision.testbed import Testbed
    from testbed.software.source import parse_source
    from testbed.topology.find import find

    topology = find(args.topology)
    if args.kafka:
        topology = topology.with_kafka_version(str(parse_source(args.kafka)))
    defects = by_host(args.defect, topology)
    testbed = Testbed.up(topology, name=args.name, defects=defects, progress=timed_progress())
    print(f"{testbed.name} is up: {', '.join(testbed.bootstrap)}")
    for line in in_words(testbed.state.defects):
        print(f"broken on purpose: {line}")
    testbed.close()
    return 0
