"""Remove a testbed and everything that belongs to it."""

import argparse

from testbed.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="a testbed")
    parser.add_argument("--all", action="store_true", help="remove every testbed of this state folder")


def run(args: argparse.Namespace) -> int:
    from testbed.provision.containers import Engine
    from testbed.provision.resources import known_here, remove
    from testbed.provision.state import check_name, lock

    if bool(args.name) == args.all:
        raise UsageError("give the name of one testbed, or --all")
    engine = Engine()
    for name in known_here(engine) if args.all else [check_name(args.name)]:
        with lock(name, wait=True):
            removed = remove(engine, name)
        print(f"{name}: removed {', '.join(removed)}" if removed else f"{name}: there was nothing to remove")
    return 0
