"""`testbed reassign recover`."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, parser_class=argparse.ArgumentParser)
    recover = actions.add_parser("recover", help="put back the configuration that a dead command left changed")
    recover.add_argument(
        "--forget", action="store_true", help="drop what cannot be put back: the clusters of it are gone for good"
    )


def _run(args: argparse.Namespace) -> int:
    from testbed.kafka.admin import Admin
    from testbed.reassignment.journal import JournalFolder
    from testbed.reassignment.recover import Outcome, recover

    found = recover(lambda bootstrap: Admin(bootstrap, timeout_s=5.0), JournalFolder(), forget=args.forget)
    for recovery in found:
        print(f"{recovery.outcome.value}: {recovery.detail}")
    if not found:
        print("nothing to recover")
    settled = {Outcome.RESTORED, Outcome.FORGOTTEN, Outcome.OWNER_ALIVE}
    return 0 if all(recovery.outcome in settled for recovery in found) else 1


COMMAND = Command("reassign", "recover: put back what a dead command left changed", _configure, _run)
