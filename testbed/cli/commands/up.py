"""`testbed up TOPOLOGY`."""

import argparse

from testbed.cli.command import Command
from testbed.cli.options import add_defects


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topology", help="a topology file, or the name of a ready one")
    parser.add_argument("--name", help="what to call the testbed (default: the topology's name)")
    parser.add_argument("--kafka", metavar="VERSION", help="run this Kafka on every host: a release or a build's path")
    add_defects(parser)


def _run(args: argparse.Namespace) -> int:
    from testbed.cli.output import TimedProgress
    from testbed.defects.parse import by_host, in_words
    from testbed.provision.testbed import Testbed
    from testbed.software.source import parse_source
    from testbed.topology.find import find

    topology = find(args.topology)
    if args.kafka:
        topology = topology.with_kafka_version(str(parse_source(args.kafka)))
    defects = by_host(args.defect, topology)
    testbed = Testbed.up(topology, name=args.name, defects=defects, progress=TimedProgress())
    print(f"{testbed.name} is up: {', '.join(testbed.bootstrap)}")
    for line in in_words(testbed.state.defects):
        print(f"broken on purpose: {line}")
    testbed.close()
    return 0


COMMAND = Command("up", "bring a topology up: shaped, unfenced, serving", _configure, _run)
