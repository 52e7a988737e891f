"""`testbed gc`."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")


def _run(args: argparse.Namespace) -> int:
    from testbed.provision.collect import garbage
    from testbed.provision.containers import Engine
    from testbed.provision.remove import remove
    from testbed.provision.state import lock

    engine = Engine()
    found = garbage(engine)
    for name, why in found.items():
        if args.dry_run:
            print(f"{name}: would be removed, {why}")
            continue
        with lock(name, wait=True):
            print(f"{name}: {why}; removed {', '.join(remove(engine, name))}")
    if not found:
        print("nothing to collect")
    return 0


COMMAND = Command("gc", "remove what interrupted commands left behind", _configure, _run)
