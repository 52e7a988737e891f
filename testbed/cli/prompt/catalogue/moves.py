"""Commands about reassignments: begin, steer and end them, as `testbed reassign` does."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from testbed.cli import reassign_report as report
from testbed.cli.prompt.background_move import BackgroundMove
from testbed.cli.prompt.grammar import PromptCommand, Values
from testbed.cli.prompt.session import Session
from testbed.cli.reassign_actions import STEERED_S, moving_bytes, next_turn, require_throttles
from testbed.errors import UsageError
from testbed.kafka.cancellation import cancel_running
from testbed.kafka.capabilities import Capability, require_of_running
from testbed.kafka.types import is_internal
from testbed.reassignment import planners
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.job import Job, JobControl, JobFolder, unpaused
from testbed.reassignment.plan import Plan, moves
from testbed.throttle.configs import RATES
from testbed.throttle.journal import JournalFolder
from testbed.throttle.status import read_status
from testbed.units import format_byte_rate
from testbed.wait import wait_for

_LOOK_S = 0.2
Planner = Callable[[planners.Assignment, planners.Racks], Plan]


def _move(session: Session, values: Values) -> None:
    def plan(assignment: planners.Assignment, _racks: planners.Racks) -> Plan:
        return targets(assignment, values.get("from"), values["to"])

    _begin(session, values["move"], plan, values)


def targets(assignment: planners.Assignment, source: int | None, target: Sequence[int]) -> Plan:
    """Return the plan of `move`: every replica list becomes `target`, or one broker replaces `source`. Pure."""
    if source is None:
        return Plan(dict.fromkeys(assignment, tuple(target)))
    if len(target) != 1:
        ids = ",".join(map(str, target))
        raise UsageError(f"from {source} to {ids}: one broker replaces another; name one after `to`")
    both = sorted(tp for tp, replicas in assignment.items() if source in replicas and target[0] in replicas)
    if both:
        raise UsageError(f"{both[0]} has replicas on {source} and on {target[0]} already; `move TOPIC to BROKERS`")
    return Plan(
        {
            tp: tuple(target[0] if broker == source else broker for broker in replicas)
            for tp, replicas in assignment.items()
            if source in replicas
        }
    )


def _drain(session: Session, values: Values) -> None:
    topics = session.names.topics()
    _begin(session, topics, lambda assignment, racks: planners.drain(assignment, racks, [values["drain"]]), values)


def _spread(session: Session, values: Values) -> None:
    topics = values.get("spread") or [topic for topic in session.names.topics() if not is_internal(topic)]
    _begin(session, topics, planners.spread, values)


def _replicas(session: Session, values: Values) -> None:
    count = values["count"]
    _begin(session, values["replicas"], lambda found, racks: planners.change_factor(found, racks, count), values)


def _begin(session: Session, topics: Sequence[str], planner: Planner, values: Values) -> None:
    """Begin the reassignment of these topics that a planner makes; it continues in the background."""
    rate = values.get("throttle")
    with session.testbed.admin() as admin:
        require_throttles(admin, rate)
        states = admin.partitions(list(topics))
        assignment = {tp: state.replicas for tp, state in states.items()}
        cluster = admin.cluster()
        made = planner(assignment, {broker.id: broker.rack for broker in cluster.brokers})
        changed = Plan({move.tp: move.target for move in moves(made, states)})
        if not changed.targets:
            raise UsageError("nothing changes: every replica is there already")
        session.say(report.cost_text(planners.cost(changed, assignment, moving_bytes(admin, changed))))
        job = Job.new(admin.bootstrap, cluster.cluster_id, "batched" if "at-once" in values else "unbatched", changed)
    move = BackgroundMove(session.testbed, job, session.notices.append)
    move.begin(JobControl(BatchLimits(partitions=values.get("at-once")), rate))
    _own(session, move)
    throttled = "without a throttle" if rate is None else f"throttle {format_byte_rate(rate)}, in force on every broker"
    session.say(f"the move of {move.topics} has begun, {throttled}; `moves` and `watch` show it, `wait` waits for it")


def _moves(session: Session, _values: Values) -> None:
    job = session.job()
    with session.testbed.admin() as admin:
        listed = admin.reassignments()
        if job is None:
            session.say(report.listing_text(listed))
            return
        control, turn = next_turn(admin, job)
    session.say(report.status_text(job, control, turn))
    foreign = {tp: found for tp, found in listed.items() if tp not in job.plan.targets}
    if foreign:
        session.say(f"of other clients:\n{report.listing_text(foreign)}")


def _throttle(session: Session, values: Values) -> None:
    if "throttle" not in values:
        from testbed.cli.throttle_report import state_text

        with session.testbed.admin() as admin:
            session.say(state_text(read_status(admin, JournalFolder())))
        return
    job, rate = _stored(session), values["throttle"]
    jobs = JobFolder()
    before = jobs.control(job.id)
    with session.testbed.admin() as admin:
        require_of_running(admin, [Capability.THROTTLES_REPLICATION], "a throttle")
        jobs.steer(job.id, lambda control: replace(control, throttle_bytes_per_s=rate))
        if not session.is_carried_out(job):
            raise UsageError(
                f"no process carries out the move of {', '.join(job.plan.topics())}: the throttle is stored, "
                "and `resume` brings it into force"
            )
        brokers = [broker.id for broker in admin.cluster().brokers]

        def differing() -> list[str]:
            """Return the brokers that do not report the rate; empty once the move has ended."""
            if job.id not in jobs.ids():
                return []
            former = None if before.throttle_bytes_per_s is None else str(before.throttle_bytes_per_s)
            found = []
            for broker in brokers:
                configs = admin.broker_configs(broker, RATES)
                values_now = {configs.in_force(key) for key in RATES}
                if values_now != {str(rate)} if rate is not None else former in values_now - {None}:
                    found.append(f"broker {broker} reports {', '.join(map(str, values_now))}")
            return found

        wait_for(differing, lambda found: not found, STEERED_S, _LOOK_S, "the throttle to be in force")
    if job.id not in jobs.ids():
        session.say(f"the move of {', '.join(job.plan.topics())} has ended meanwhile")
    elif rate is None:
        session.say("the throttle is removed; no broker reports it")
    else:
        session.say(f"throttle {format_byte_rate(rate)}, in force on brokers {', '.join(map(str, brokers))}")


def _ensure_carried_out(session: Session, job: Job) -> None:
    """Continue the move in this session, unless a process carries it out."""
    if not session.is_carried_out(job):
        move = BackgroundMove(session.testbed, job, session.notices.append)
        move.resume()
        _own(session, move)


def _own(session: Session, move: BackgroundMove) -> None:
    """Give the session a move that has begun, then wait for its first request: Ctrl-C ends the wait, not the move."""
    session.move = move
    move.wait_requested()


def _cancel(session: Session, values: Values) -> None:
    topic, job = values.get("cancel"), session.job()
    if job is not None and (topic is None or topic in job.plan.topics()):
        others = [each for each in job.plan.topics() if topic is not None and each != topic]
        if others:
            raise UsageError(f"the move also has {', '.join(others)}: `cancel` without a topic cancels it whole")
        _cancel_job(session, job)
        return
    with session.testbed.admin() as admin:
        require_of_running(admin, [Capability.CANCELS_REASSIGNMENTS], "cancelling a reassignment")
        listed = admin.reassignments(None if topic is None else [topic])
        if not listed:
            raise UsageError(f"nothing{'' if topic is None else f' of {topic}'} is being reassigned")
        cancel_running(admin, listed)
    session.say(f"{len(listed)} reassignments of another client cancelled")


def _cancel_job(session: Session, job: Job) -> None:
    jobs = JobFolder()
    jobs.steer(job.id, lambda control: replace(control, wish="cancel"))  # first: a cancelled move waits for no throttle
    _ensure_carried_out(session, job)
    what = f"the move of {', '.join(job.plan.topics())} to be cancelled"
    wait_for(jobs.ids, lambda ids: job.id not in ids, STEERED_S, _LOOK_S, what)
    if session.move is not None and session.move.job.id == job.id:
        session.move.wait(session.remark)
        session.say(session.notices.pop() if session.notices else f"{what}: done")
        session.move = None
    else:
        session.say(f"process {job.owner.pid} has cancelled the move of {', '.join(job.plan.topics())}")


def _pause(session: Session, _values: Values) -> None:
    JobFolder().steer(_stored(session).id, lambda control: replace(control, wish="pause"))
    session.say("no further step begins; what is in flight goes on; `resume` continues")


def _resume(session: Session, _values: Values) -> None:
    job = _stored(session)
    JobFolder().steer(job.id, unpaused)
    _ensure_carried_out(session, job)
    session.say(f"the move of {', '.join(job.plan.topics())} continues")


def _wait(session: Session, values: Values) -> int:
    move = session.move
    if move is None:
        raise UsageError("this session has begun no move; `moves` shows the moves of others")
    if not move.wait(session.remark, values.get("wait")):
        session.remark(f"the move of {move.topics} goes on")
        return 1
    session.move = None
    while session.notices:
        session.say(session.notices.pop(0))
    move.require_done()
    return 0


def _stored(session: Session) -> Job:
    job = session.job()
    if job is None:
        raise UsageError("no move of the testbed runs; `move TOPIC to BROKERS throttle RATE` begins one")
    return job


_command = partial(PromptCommand, group="Moves")
COMMANDS = [
    _command(
        "move TOPICS [from BROKER] to BROKERS [throttle RATE] [at-once COUNT]",
        "move every partition of topics to these brokers, or from one broker to another; it runs in the background",
        _move,
        "move orders from 1 to 2 throttle 5MB/s\nmove orders to b2,b3\nmove * to 2,3 at-once 10 throttle 20MB/s",
    ),
    _command("drain BROKER [throttle RATE] [at-once COUNT]", "move every replica off a broker", _drain),
    _command(
        "spread [TOPICS] [throttle RATE] [at-once COUNT]",
        "spread replicas and leaders evenly over racks and brokers",
        _spread,
    ),
    _command(
        "replicas TOPICS COUNT [throttle RATE] [at-once COUNT]",
        "change the replication factor",
        _replicas,
        "replicas orders 3 throttle 10MB/s",
    ),
    _command("moves", "the running move partition by partition, and those of other clients", _moves),
    _command(
        "throttle [LIMIT]",
        "set the rate of the running move (none removes it) and wait until it is in force; alone: every throttle",
        _throttle,
        "throttle 8MB/s\nthrottle none\nthrottle",
    ),
    _command("wait [TIME]", "wait for the move of this session; its exit code is 1 after TIME", _wait),
    _command("pause", "begin no further step of the move", _pause),
    _command("resume", "continue a paused move, or one that an earlier session left", _resume),
    _command("cancel [TOPIC]", "cancel the move of a topic, or everything that moves", _cancel, "cancel orders"),
]
