"""Remove a testbed and everything that belongs to it."""

import argparse

from testbed.errors import TestbedError, UsageError


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
    problems: list[TestbedError] = []
    for name in known_here(engine) if args.all else [check_name(args.name)]:
        try:
            with lock(name, wait=True):
                removed = remove(engine, name)
        except TestbedError as error:
            problems.append(error)  # the others are removed
            continue
        print(f"{name}: removed {', '.join(removed)}" if removed else f"{name}: there was nothing to remove")
    if problems:
        raise problems[0] if len(problems) == 1 else TestbedError("\n".join(map(str, problems)))
    return 0
