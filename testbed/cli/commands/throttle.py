"""Estimate, watch, show and clear throttles on any cluster."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from results.contract.texts import counted
from results.render import document
from testbed.argument_parser import Parser
from testbed.cli.options import add_cluster, add_earlier, admin_of, parsed
from testbed.errors import UsageError
from testbed.units import parse_bit_rate, parse_byte_rate, parse_duration, parse_share

if TYPE_CHECKING:
    from testbed.reassignment.auto_raise import MonitorEvent
    from testbed.reassignment.estimate import ClusterLoad, ThrottleEstimate
    from testbed.throttle.status import ThrottleStatus


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Example: `testbed throttle estimate --plan plan.json --deadline 2h --bootstrap kafka:9092`."
    actions = parser.add_subparsers(dest="action", required=True, parser_class=Parser)
    estimate = actions.add_parser(
        "estimate", help="compute the throttle that a plan needs; exit code 1 when none is enough"
    )
    add_cluster(estimate)
    estimate.add_argument(
        "--plan", metavar="FILE", type=Path, required=True, help="the plan, as for kafka-reassign-partitions"
    )
    goal = estimate.add_mutually_exclusive_group(required=True)
    goal.add_argument("--deadline", metavar="TIME", help="the time in which the move shall be done, such as 2h")
    goal.add_argument("--share", metavar="PERCENT", help="the share of each NIC, such as 30%%; needs --nic")
    goal.add_argument("--rate", metavar="RATE", help="compute the time of the move with this throttle, such as 10MB/s")
    estimate.add_argument("--nic", metavar="RATE", help="rate of each broker's NIC, such as 1gbit")
    estimate.add_argument(
        "--measure-for", metavar="TIME", default="10s", help="how long to measure what producers write (default: 10s)"
    )
    add_earlier(estimate, "--measure", "measure_for")
    watch = actions.add_parser(
        "watch", help="follow the running reassignments to their end; exit code 1 when the throttle is too low"
    )
    add_cluster(watch)
    watch.add_argument(
        "--auto-raise", metavar="MAX", help="raise the throttle of a stuck move up to this, such as 50MB/s"
    )
    watch.add_argument(
        "--patience", metavar="TIME", help="the time without progress after which a move is stuck (default: 60s)"
    )
    watch.add_argument("--interval", metavar="TIME", default="2s", help="time between two polls (default: 2s)")
    watch.add_argument("--once", action="store_true", help="poll twice, print the second poll, and end")
    status = actions.add_parser("status", help="show the throttle rates of brokers and the lists of topics")
    add_cluster(status)
    clear = actions.add_parser("clear", help="remove every throttle, also of other tools")
    add_cluster(clear)
    clear.add_argument("--yes", action="store_true", help="do not ask, even while something moves")
    for action in (estimate, watch, status, clear):
        action.add_argument("--json", action="store_true", help="print one JSON document; watch: a line for each poll")


def run(args: argparse.Namespace) -> int:
    return {"estimate": _estimate, "watch": _watch, "status": _status, "clear": _clear}[args.action](args)


def _estimate(args: argparse.Namespace) -> int:
    from testbed.cli.throttle_report import estimate_document, estimate_text
    from testbed.kafka.capabilities import Capability, require_of_running
    from testbed.reassignment.estimate import InfeasibleError, observe
    from testbed.reassignment.plan_file import load_plan

    nic_bps = None if args.nic is None else int(_positive("--nic", args.nic, parse_bit_rate))
    measure_s = _positive("--measure-for", args.measure_for, parse_duration)
    goal = _goal(args, nic_bps)
    plan = load_plan(args.plan)
    with admin_of(args) as admin:
        require_of_running(admin, [Capability.THROTTLES_REPLICATION], "a throttle")
        observed = observe(admin, plan, measure_s)
    try:
        estimate = goal(observed)
    except InfeasibleError as refusal:
        if args.json:
            refused = {"possible": False, "why": refusal.why, "instead": refusal.instead}
            print(document(refused | {"shortest_seconds": refusal.deadline_s, "lowest_share": refusal.share}))
        else:
            print(refusal)
        return refusal.exit_code
    print(document(estimate_document(estimate)) if args.json else estimate_text(estimate, nic_bps is not None))
    return 0


def _goal(args: argparse.Namespace, nic_bps: int | None) -> Callable[["ClusterLoad"], "ThrottleEstimate"]:
    from testbed.reassignment.estimate import for_deadline, for_rate, for_share

    if args.deadline is not None:
        deadline_s = _positive("--deadline", args.deadline, parse_duration)
        return lambda observed: for_deadline(observed, deadline_s, nic_bps)
    if args.rate is not None:
        rate = int(_positive("--rate", args.rate, parse_byte_rate))
        return lambda observed: for_rate(observed, rate, nic_bps)
    share = _positive("--share", args.share, parse_share) / 1_000_000
    if share > 1:
        raise UsageError(f"--share: {args.share} is more than the whole NIC; give 100% or less")
    if nic_bps is None:
        raise UsageError("--share: the rate of the NIC is not known; give it, such as --nic 1gbit")
    return lambda observed: for_share(observed, share, nic_bps)


def _watch(args: argparse.Namespace) -> int:
    from testbed.cli.throttle_report import event_document, event_text
    from testbed.kafka.capabilities import Capability, require_of_running
    from testbed.reassignment.auto_raise import watch
    from testbed.reassignment.stall import PATIENCE_S
    from testbed.throttle.journal import JournalFolder

    most = None if args.auto_raise is None else int(_positive("--auto-raise", args.auto_raise, parse_byte_rate))
    interval_s = _positive("--interval", args.interval, parse_duration)
    patience_s = _positive("--patience", args.patience, parse_duration) if args.patience is not None else PATIENCE_S

    def print_event(event: "MonitorEvent") -> None:
        print(json.dumps(event_document(event)) if args.json else event_text(event), flush=True)

    with admin_of(args) as admin:
        if most is not None:
            require_of_running(admin, [Capability.THROTTLES_REPLICATION], "--auto-raise")
        last = watch(
            admin,
            print_event,
            JournalFolder(),
            interval_s=interval_s,
            patience_s=patience_s,
            most_bytes_per_s=most,
            once=args.once,
            command_config=None if args.command_config is None else str(args.command_config.resolve()),
            more=lambda: _further_steps(admin.cluster().cluster_id),
        )
    return 1 if last.too_low and not last.done else 0


def _further_steps(cluster_id: str) -> str:
    """Return that a process of this machine carries out a move of the cluster in steps; empty without one."""
    from testbed.reassignment.batching.job import JobError, JobFolder

    try:
        mine = [job.id for job in JobFolder().all() if job.cluster_id == cluster_id and job.owner.alive()]
    except JobError:  # of another version: `watch` follows what is listed
        return ""
    return f"reassignment {mine[0]} has not ended: waiting for its next step" if mine else ""


def _status(args: argparse.Namespace) -> int:
    from testbed.cli.throttle_report import state_document, state_text
    from testbed.throttle.journal import JournalFolder
    from testbed.throttle.status import read_status

    with admin_of(args) as admin:
        state = read_status(admin, JournalFolder())
    print(document(state_document(state)) if args.json else state_text(state))
    return 0


def _clear(args: argparse.Namespace) -> int:
    from testbed.throttle.journal import JournalFolder
    from testbed.throttle.removal import clear
    from testbed.throttle.status import read_status

    with admin_of(args) as admin:
        state = read_status(admin, JournalFolder())
        found = {str(resource): keys for resource, keys in state.set_now().items()}
        if found and not args.yes:
            _ask(state)
        clear(admin, state)
    if args.json:
        print(document({"cleared": found, "moving": len(state.moving)}))
        return 0
    for resource, keys in found.items():
        for key, value in keys.items():
            print(f"{resource}: {key} was {value}, removed")
    if not found:
        print("nothing is throttled")
    return 0


def _ask(state: "ThrottleStatus") -> None:
    """Ask the user, if a throttle may be needed. Raise `UsageError` for a no, and without a terminal."""
    moving, behind = len(state.moving), len(state.catching_up)
    reasons = []
    if moving:
        reasons.append(f"{counted(moving, 'partition', 'is')} being reassigned: without a throttle from then on")
    if behind:
        reasons.append(f"{counted(behind, 'partition', 'has')} throttled replicas out of sync: these go on unthrottled")
    reasons += [
        f"process {journal.owner.pid} has set a throttle, and "
        + (
            "runs: it removes it itself"
            if journal.owner.alive()
            else "is dead: `testbed reassign recover` restores the configuration before it"
        )
        for journal in state.journals
    ]
    if not reasons:
        return
    why = "; ".join(reasons)
    if not sys.stdin.isatty():
        raise UsageError(f"{why}; --yes removes all throttles without asking")
    print(f"{why}. Remove all throttles? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("the answer was not y: no throttle was removed")


def _positive(option: str, text: str, parse: Callable[[object], float]) -> float:
    value = parsed(option, text, parse)
    if value <= 0:
        raise UsageError(f"{option}: {text}: must be above 0")
    return value
