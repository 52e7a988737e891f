"""The actions of `testbed reassign …`. The parser is in `commands/reassign.py`."""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from results.contract.texts import counted, plural
from results.render import document
from testbed.cli import reassign_report as report
from testbed.cli.options import admin_of, parsed
from testbed.cli.output import require_writable, write
from testbed.errors import UsageError
from testbed.kafka.admin import Admin
from testbed.kafka.cancellation import cancel_running
from testbed.kafka.capabilities import Capability, require_of_running
from testbed.kafka.partitions import existing_partitions
from testbed.kafka.types import PartitionMove, PartitionState, TopicPartition, is_internal
from testbed.reassignment import planners
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.execution import Execution, ExecutionResult
from testbed.reassignment.batching.forecast import SpreadAdvice, spread_advice
from testbed.reassignment.batching.job import Job, JobControl, JobFolder, unpaused
from testbed.reassignment.batching.step import PartitionView
from testbed.reassignment.batching.turn import Mode, Turn, min_insync, read_state, remaining, take_turn
from testbed.reassignment.lag import read_sizes
from testbed.reassignment.plan import Plan, moves
from testbed.reassignment.plan_file import load_plan
from testbed.reassignment.planners import Racks, Replicas
from testbed.reassignment.progress import not_placed
from testbed.throttle.journal import JournalFolder
from testbed.throttle.recovery import RestoreError
from testbed.units import parse_byte_rate
from testbed.wait import wait_for

STEERED_S = 60.0
_NOT_REQUESTED = "its step is due; the controller does not list it yet, or refused it"


def plan(args: argparse.Namespace) -> int:
    """Make a plan, print its cost on standard error, and write it; return the exit code."""
    require_writable(args.out)
    with admin_of(args) as admin:
        if (args.replication_factor or 1) > 1:
            require_of_running(admin, [Capability.REPLICATES], f"a replication factor of {args.replication_factor}")
        assignment, racks = _assignment(admin, args.topics)
        if args.drain:
            made = planners.drain(assignment, racks, args.drain)
        elif args.add_brokers:
            made = planners.add(assignment, racks, args.add_brokers)
        elif args.replication_factor is not None:
            made = planners.change_factor(assignment, racks, args.replication_factor)
        else:
            made = planners.spread(assignment, racks)
        print(report.cost_text(planners.cost(made, assignment, moving_bytes(admin, made))), file=sys.stderr)
    if args.out is None:
        print(made.to_json(), end="")
    else:
        write(args.out, made.to_json())
    return 0


def execute(args: argparse.Namespace) -> int:
    """Execute a plan to its end; return the exit code. An interrupted execution can be resumed."""
    _check_starts(args, _mode(args))
    wanted, control = load_plan(args.plan), JobControl(_limits(args, BatchLimits()), _rate(args.throttle))
    with admin_of(args) as admin:
        require_throttles(admin, control.throttle_bytes_per_s)
        states = admin.partitions(wanted.topics())
        changed = Plan({m.tp: m.target for m in moves(wanted, states)})
        assignment, sizes = {tp: state.replicas for tp, state in states.items()}, moving_bytes(admin, changed)
        print(report.cost_text(planners.cost(changed, assignment, sizes)), file=sys.stderr)
        if advice := _advice(admin, changed, states, sizes, control.limits):
            print(report.advice_text(advice), file=sys.stderr)
        config = None if args.command_config is None else str(args.command_config.resolve())
        job = Job.new(args.bootstrap, admin.cluster().cluster_id, _mode(args), wanted, config)
        run = _execution(admin, job)
        run.begin(control, additional=args.additional)
        return _run(run, job, args)


def resume(args: argparse.Namespace) -> int:
    """Resume a paused reassignment, or one whose process is dead; return the exit code."""
    with admin_of(args) as admin:
        job = _stored(admin)
        control = JobFolder().steer(job.id, unpaused)
        if job.owner.alive():
            how = "is being cancelled by" if control.wish == "cancel" else "goes on, in"
            print(f"reassignment {job.id} {how} process {job.owner.pid}")
            return 0
        run = _execution(admin, job)
        run.resume()
        return _run(run, job, args)


def _execution(admin: Admin, job: Job) -> Execution:
    return Execution(admin, job, JobFolder(), JournalFolder(), report.ExecutionNotes(_remark))


def _remark(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _run(run: Execution, job: Job, args: argparse.Namespace) -> int:
    begun = time.monotonic()
    last = ""

    def on_turn(turn: Turn) -> None:
        nonlocal last
        line = report.turn_text(turn, time.monotonic() - begun)
        if line[10:] != last:
            last = line[10:]
            _remark(line)

    try:
        with _left_printed(run):
            ended = run.run(on_turn, interval_s=args.reassignment_poll_interval_ms / 1000)
    except KeyboardInterrupt:
        print(
            f"interrupted: what is in flight goes on, throttled; `testbed reassign resume` or `cancel` for {job.id}",
            file=sys.stderr,
        )
        raise
    _print_end(ended)
    return 1 if ended.cancelled else 0


@contextmanager
def _left_printed(run: Execution) -> Iterator[None]:
    """Print the plan of what a cancelled job has not moved also when its throttle cannot be restored."""
    try:
        yield
    except RestoreError:
        if run.left.targets:
            _print_left("cancelled", run.left)
        raise


def _print_end(ended: ExecutionResult) -> None:
    for found in ended.restored.interferences:
        _remark(f"another client had changed {found}")
    if ended.cancelled:
        _print_left("cancelled", ended.left)
    else:
        _remark(f"done after {ended.seconds:.1f} s")


def _print_left(how: str, left: Plan) -> None:
    _remark(f"{how}: {counted(len(left.targets), 'partition', 'was')} not moved; the plan of what is left follows")
    print(left.to_json(), end="")


def listing(args: argparse.Namespace) -> int:
    """Print the reassignments that the controller lists; return the exit code."""
    with admin_of(args) as admin:
        listed = admin.reassignments(args.topics)
    print(document(report.listing_document(listed)) if args.json else report.listing_text(listed))
    return 0


def status(args: argparse.Namespace) -> int:
    """Print a stored reassignment, partition by partition; return the exit code."""
    with admin_of(args) as admin:
        job = _stored(admin)
        control, turn = next_turn(admin, job)
    print(document(report.status_document(job, control, turn)) if args.json else report.status_text(job, control, turn))
    return 0


def next_turn(admin: Admin, job: Job) -> tuple[JobControl, Turn]:
    """Return the control of a stored reassignment, and its next turn from the cluster's present state.

    A step counts as in flight only when the controller lists it: its process may be refused what it requests.
    """
    control, topics = JobFolder().control(job.id), job.plan.topics()
    state = read_state(admin, topics, min_insync(admin, topics), job.topic_ids)
    held = "paused" if control.wish == "pause" else "" if job.owner.alive() else "no process carries it out"
    turn = take_turn(job.plan, state, control.limits, job.mode, held=held)
    requested = (
        replace(each, state="deferred", step=None, why=_NOT_REQUESTED)
        if each.tp in turn.start and each.tp not in state.listed
        else each
        for each in turn.partitions
    )
    return control, replace(turn, partitions=tuple(requested))


def steer(args: argparse.Namespace) -> int:
    """Change limits and throttle of a reassignment, effective from the next step; return the exit code."""
    given = None if args.throttle is None else _rate(args.throttle)
    with admin_of(args) as admin:
        require_throttles(admin, given)
        job = _stored(admin)
    _check_starts(args, job.mode)
    if job.mode == "unbatched" and _limited(args):
        raise UsageError(
            f"reassignment {job.id} requested its whole plan at once: a limit would change nothing; "
            "`testbed reassign cancel` prints the plan of what is left, for `execute` with limits"
        )

    def changed(before: JobControl) -> JobControl:
        throttle = before.throttle_bytes_per_s if args.throttle is None else given
        return replace(before, limits=_limits(args, before.limits), throttle_bytes_per_s=throttle)

    print(report.control_text(JobFolder().steer(job.id, changed)))
    return 0


def pause(args: argparse.Namespace) -> int:
    """Start no further step, while steps in flight continue; return the exit code."""
    with admin_of(args) as admin:
        job = _stored(admin)
    JobFolder().steer(job.id, lambda control: replace(control, wish="pause"))
    print(f"reassignment {job.id}: no further step is started; `testbed reassign resume` continues it")
    return 0


def cancel(args: argparse.Namespace) -> int:
    """Cancel the stored reassignment, or with `--all`, `--partitions` listed ones; return the exit code."""
    with admin_of(args) as admin:
        if args.all or args.partitions:
            return _cancel_listed(admin, args.partitions)
        jobs, job = JobFolder(), _stored(admin)
        jobs.steer(job.id, lambda control: replace(control, wish="cancel"))
        if job.owner.alive():
            wait_for(
                jobs.ids, lambda ids: job.id not in ids, STEERED_S, 0.2, f"process {job.owner.pid} to cancel {job.id}"
            )
            left = remaining(job.plan, read_state(admin, job.plan.topics(), {}, job.topic_ids))
            if not left.targets:
                _remark(f"reassignment {job.id} has ended: nothing was left to cancel")
                print(left.to_json(), end="")
                return 0
            _print_left(f"reassignment {job.id} was cancelled by its process, {job.owner.pid}", left)
            return 0
        run = _execution(admin, job)
        run.resume()
        with _left_printed(run):
            ended = run.run()
        _print_end(ended)
        return 0


def require_throttles(admin: Admin, bytes_per_s: int | None) -> None:
    """Raise `LacksCapability` when the cluster would accept a throttle but ignore it."""
    if bytes_per_s is not None:
        require_of_running(admin, [Capability.THROTTLES_REPLICATION], "a throttle")


def _stored(admin: Admin) -> Job:
    """Return the cluster's stored reassignment. Raise `JobError` when there is none."""
    return JobFolder().of_cluster(admin.cluster().cluster_id)


def _cancel_listed(admin: Admin, partitions: list[TopicPartition] | None) -> int:
    cluster_id = admin.cluster().cluster_id
    for job in JobFolder().all():
        if job.cluster_id == cluster_id:
            raise UsageError(
                f"reassignment {job.id} would start them again: cancel it first with `testbed reassign cancel`"
            )
    require_of_running(admin, [Capability.CANCELS_REASSIGNMENTS], "cancelling a reassignment")
    listed = admin.reassignments()
    wanted = sorted(listed) if partitions is None else partitions
    if partitions is None:
        cancel_running(admin, wanted)
    elif wanted:  # the user named them: one that is not being reassigned is a mistake
        admin.alter_reassignments(dict.fromkeys(wanted))
    print(f"{plural(len(wanted), 'reassignment')} cancelled")
    return 0


def verify(args: argparse.Namespace) -> int:
    """Print whether a plan is complete; return 1 when it is not. Change nothing, not even a throttle."""
    wanted = load_plan(args.plan)
    with admin_of(args) as admin:
        topics = wanted.topics()
        every = [PartitionMove.between(tp, (), target) for tp, target in sorted(wanted.targets.items())]
        missing = not_placed(every, admin.reassignments(topics), existing_partitions(admin, topics))
    if args.json:
        print(document({"complete": not missing, "missing": missing}))
    else:
        whole = f"complete: {counted(len(wanted.targets), 'partition', 'is')} placed as planned, in sync"
        print("\n".join(missing) or whole)
    return 1 if missing else 0


def _assignment(admin: Admin, topics: list[str] | None) -> tuple[dict[TopicPartition, Replicas], Racks]:
    """Return the replicas of each partition, and the racks of the live brokers.

    Of a partition that is being reassigned these are the replicas at the end. The present ones are more: a plan from
    these would raise the replication factor.
    """
    chosen = [t for t in admin.topics() if not is_internal(t)] if topics is None else topics
    cluster, listed = admin.cluster(), admin.reassignments(chosen)
    final = {tp: running.target for tp, running in listed.items()}
    for job in JobFolder().all():
        if job.cluster_id == cluster.cluster_id:
            final |= job.plan.targets
    found = {tp: final.get(tp, state.replicas) for tp, state in admin.partitions(chosen).items()}
    return found, {broker.id: broker.rack for broker in cluster.brokers}


def moving_bytes(admin: Admin, made: Plan) -> dict[TopicPartition, int]:
    """Return the bytes of each moving partition's largest replica."""
    brokers = [broker.id for broker in admin.cluster().brokers]
    return read_sizes(admin, brokers, made.topics()).largest if made.targets else {}


def _advice(
    admin: Admin,
    changed: Plan,
    states: Mapping[TopicPartition, PartitionState],
    sizes: Mapping[TopicPartition, int],
    limits: BatchLimits,
) -> SpreadAdvice | None:
    if limits.partitions is None or limits.per_broker is not None or not changed.targets:
        return None
    least = min_insync(admin, changed.topics())
    views = {
        tp: PartitionView(states[tp].replicas, target, states[tp].isr, least[tp.topic])
        for tp, target in changed.targets.items()
    }
    return spread_advice(views, [broker.id for broker in admin.cluster().brokers], limits, sizes)


def _mode(args: argparse.Namespace) -> Mode:
    if args.incremental:
        return "incremental"
    return "batched" if _limited(args) else "unbatched"


def _limited(args: argparse.Namespace) -> bool:
    """Return whether an option limits the steps; 0 is no limit."""
    return any((args.reassignment_batch_size, args.replicas, args.leaders, args.per_broker))


def _check_starts(args: argparse.Namespace, mode: Mode) -> None:
    """Raise `UsageError` when `--starts` limits a move that does not refill slots: it would change nothing."""
    if args.starts and mode != "incremental":
        raise UsageError("--starts: only --incremental starts single steps; a batch starts as a whole")


def _limits(args: argparse.Namespace, before: BatchLimits) -> BatchLimits:
    """Return the limits of `before`, changed by the options; 0 removes a limit, as in KIP-1335's batch size."""
    names = {
        "replicas": args.replicas,
        "partitions": args.reassignment_batch_size,
        "leaders": args.leaders,
        "per_broker": args.per_broker,
        "starts": args.starts,
    }
    changed = {name: value or None for name, value in names.items() if value is not None}
    return replace(before, **changed)


def _rate(text: str | None) -> int | None:
    if text is None or text == "none":
        return None
    rate = parsed("--throttle", text, parse_byte_rate)
    if rate < 1:
        raise UsageError(f"--throttle: {text}: must be above 0; `none` removes the throttle")
    return rate
