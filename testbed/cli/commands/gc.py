"""Remove what interrupted commands left behind, and restore what dead runs had changed."""

import argparse

from testbed.errors import TestbedError
from testbed.paths import reports_dir


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="print what the command would do; change nothing")


def run(args: argparse.Namespace) -> int:
    from testbed.experiments.half_runs import collect_half_runs
    from testbed.faults.active_faults import collect_faults
    from testbed.provision.containers import Engine
    from testbed.provision.resources import collect_garbage, finish_restarts
    from testbed.provision.testbed import Testbed
    from testbed.throttle.recovery import collect_throttles

    dry_run: bool = args.dry_run
    engine = Engine()
    # The order matters: faults and throttles are restored where Kafka runs again, and not where a testbed is removed.
    steps = (
        lambda: collect_garbage(engine, dry_run=dry_run),
        lambda: finish_restarts(Testbed.attach, dry_run=dry_run),
        lambda: collect_faults(Testbed.attach, dry_run=dry_run),
        lambda: collect_throttles(dry_run=dry_run),
        lambda: collect_half_runs(reports_dir(), dry_run=dry_run),
    )
    problems: list[TestbedError] = []
    said = 0
    for step in steps:
        try:
            for line in step():
                print(line)
                said += 1
        except TestbedError as error:
            problems.append(error)  # the remaining garbage is collected before the error is raised
    if problems:
        raise TestbedError("\n".join(map(str, problems)))
    if not said:
        print("nothing to collect")
    return 0
