"""`testbed gc`."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")


def _run(args: argparse.Namespace) -> int:
    from testbed.faults.leftovers import collect_faults
    from testbed.provision.collect import garbage
    from testbed.provision.containers import Engine
    from testbed.provision.remove import remove
    from testbed.provision.state import lock
    from testbed.provision.testbed import Testbed

    engine = Engine()
    found = garbage(engine)
    for name, why in found.items():
        if args.dry_run:
            print(f"{name}: would be removed, {why}")
            continue
        with lock(name, wait=True):
            print(f"{name}: {why}; removed {', '.join(remove(engine, name))}")
    healed = collect_faults(Testbed.attach, dry_run=args.dry_run)
    for line in healed:
        print(line)
    if not found and not healed:
        print("nothing to collect")
    return 0


COMMAND = Command(
    "gc", "remove what interrupted commands left behind, and heal the faults of dead runs", _configure, _run
)
