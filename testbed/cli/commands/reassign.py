"""Plan, execute, follow and cancel reassignments on any cluster."""

import argparse
from pathlib import Path

from testbed.argument_parser import Parser
from testbed.cli.options import add_cluster, add_command_config, security_of
from testbed.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Example: `testbed reassign execute --plan plan.json --throttle 20MB/s --bootstrap kafka:9092`."
    actions = parser.add_subparsers(dest="action", required=True, parser_class=Parser)
    plan = actions.add_parser("plan", help="make the plan that copies least, and print what it copies")
    goal = plan.add_mutually_exclusive_group(required=True)
    goal.add_argument("--add-brokers", metavar="ID,…", type=_ids, help="give these brokers their share")
    goal.add_argument("--drain", metavar="ID,…", type=_ids, help="move every replica off these brokers")
    goal.add_argument("--replication-factor", metavar="N", type=int, help="give each partition this number of replicas")
    goal.add_argument("--spread", action="store_true", help="spread replicas evenly over racks and brokers")
    plan.add_argument(
        "--topics", metavar="NAME,…", type=_names, help="only these topics (default: all except internal ones)"
    )
    plan.add_argument("--out", metavar="FILE", type=Path, help="write the plan to this file (default: standard output)")
    execute = actions.add_parser("execute", help="execute a plan, and follow it to its end")
    execute.add_argument(
        "--plan", metavar="FILE", type=Path, required=True, help="the plan, as for kafka-reassign-partitions"
    )
    execute.add_argument(
        "--throttle", metavar="RATE", help="KIP-73's throttle, such as 10MB/s, in force before the first step"
    )
    execute.add_argument(
        "--additional", action="store_true", help="also while other reassignments run; leaves the throttle as it is"
    )
    execute.add_argument(
        "--incremental", action="store_true", help="begin the next step as soon as one ends (KIP-1335)"
    )
    listing = actions.add_parser("list", help="list the running reassignments (KIP-455)")
    listing.add_argument("--topics", metavar="NAME,…", type=_names, help="only these topics")
    status = actions.add_parser(
        "status", help="show each partition that `execute` moves: target, step, and why it waits"
    )
    change = actions.add_parser("set", help="change limits and throttle, from the next step on")
    change.add_argument("--throttle", metavar="RATE", help="the throttle, such as 10MB/s; `none` removes it")
    pause = actions.add_parser("pause", help="begin no further step")
    resume = actions.add_parser("resume", help="continue what was paused, or what a dead process left")
    cancel = actions.add_parser("cancel", help="cancel, and print the plan of what did not move")
    which = cancel.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="every running reassignment, also of other tools")
    which.add_argument(
        "--partitions", metavar="TOPIC-N,…", type=_partitions, help="only these partitions, also of other tools"
    )
    verify = actions.add_parser(
        "verify", help="check whether a plan is done; exit code 1 when it is not; changes nothing"
    )
    verify.add_argument(
        "--plan", metavar="FILE", type=Path, required=True, help="the plan, as for kafka-reassign-partitions"
    )
    for action in (plan, execute, listing, status, change, pause, resume, cancel, verify):
        add_cluster(action)
    for action in (execute, change):
        _add_limits(action)
    for action in (execute, resume):
        action.add_argument(
            "--reassignment-poll-interval-ms",
            metavar="MS",
            type=_positive,
            default=500,
            help="time between two polls (default: 500)",
        )
    for action in (listing, status, verify):
        action.add_argument("--json", action="store_true", help="print one JSON document")
    recover = actions.add_parser("recover", help="restore the configuration that a dead command left changed")
    recover.add_argument(
        "--forget", action="store_true", help="forget what cannot be restored, because its cluster no longer exists"
    )
    add_command_config(recover)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reassignment-batch-size",
        metavar="P",
        type=_limit,
        help="most partitions in flight (KIP-1335); 0: all at once",
    )
    parser.add_argument(
        "--replicas", metavar="R", type=_limit, help="most replicas that a step adds to a partition; 0: all"
    )
    parser.add_argument(
        "--leaders", metavar="L", type=_limit, help="most steps in flight that move the preferred leader; 0: no limit"
    )
    parser.add_argument(
        "--per-broker", metavar="N", type=_limit, help="most replicas that are copied to one broker; 0: no limit"
    )
    parser.add_argument(
        "--starts", metavar="S", type=_limit, help="with --incremental: most copies that begin in one turn; 0: no limit"
    )


def run(args: argparse.Namespace) -> int:
    if args.action == "recover":
        return _recover(args)
    from testbed.cli import reassign_actions as do

    return {
        "plan": do.plan,
        "execute": do.execute,
        "list": do.listing,
        "status": do.status,
        "set": do.steer,
        "pause": do.pause,
        "resume": do.resume,
        "cancel": do.cancel,
        "verify": do.verify,
    }[args.action](args)


def _recover(args: argparse.Namespace) -> int:
    from testbed.throttle.journal import JournalFolder
    from testbed.throttle.recovery import RecoveryOutcome, connect, recover

    security = security_of(args)
    found = recover(lambda journal: connect(journal, security), JournalFolder(), forget=args.forget)
    for recovery in found:
        print(f"{recovery.outcome.value}: {recovery.detail}")
    if not found:
        print("nothing to recover")
    settled = {RecoveryOutcome.RESTORED, RecoveryOutcome.FORGOTTEN, RecoveryOutcome.OWNER_ALIVE}
    return 0 if all(recovery.outcome in settled for recovery in found) else 1


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number above 0")
    return int(text)


def _limit(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number; 0 is no limit")
    return int(text)


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _names(text: str) -> list[str]:
    if not (words := _words(text)):
        raise argparse.ArgumentTypeError(f"{text!r}: must be names, separated by commas")
    return words


def _ids(text: str) -> list[int]:
    words = _words(text)
    if not words or not all(word.isdecimal() for word in words):
        raise argparse.ArgumentTypeError(f"{text!r}: must be broker ids, such as 4,5")
    return [int(word) for word in words]


def _partitions(text: str) -> list[object]:
    from testbed.kafka.types import TopicPartition

    found: list[object] = []
    for word in _words(text) or [text]:
        topic, dash, number = word.rpartition("-")
        if not dash or not topic or not number.isdecimal():
            raise UsageError(f"--partitions: {word!r} is no partition; must be TOPIC-NUMBER, such as orders-3")
        found.append(TopicPartition(topic, int(number)))
    return found
