"""The execution of a stored reassignment, turn by turn, under its throttle, until it ends or is cancelled."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from results.contract.texts import shortened
from testbed.errors import TestbedError
from testbed.kafka.admin import Admin
from testbed.kafka.cancellation import cancel_running
from testbed.kafka.errors import ElectionError, ReassignmentError, UnreachableError
from testbed.kafka.types import PartitionMove, TopicPartition
from testbed.owner import Owner
from testbed.reassignment.batching.job import Job, JobControl, JobError, JobFolder
from testbed.reassignment.batching.step import Replicas, check_target
from testbed.reassignment.batching.turn import ReassignmentState, Turn, min_insync, read_state, remaining, take_turn
from testbed.reassignment.plan import Plan, PlanError, moves, refuse_log_dirs
from testbed.reassignment.progress import already_moving, left_behind
from testbed.throttle.configs import ListedReplicas, ThrottleError, unthrottled_partitions
from testbed.throttle.journal import JournalFolder, ThrottleJournal, open_journals
from testbed.throttle.recovery import RestoreError, RestoreResult
from testbed.throttle.throttle import EventSink, Throttle
from testbed.wait import wait_for

_IN_FORCE_S = 30.0
_BEHIND_S = 15.0
"""The longest time in seconds that a broker's metadata may lag behind the controller. Another client did the rest."""
_SETTLED_S = 30.0
_REMOVED_S = 5.0
"""Seconds after which a user is to know of an old replica that is still there. A broker removes one in some tenths."""
_SHOWN = 5


class ExecutionError(TestbedError):
    """A reassignment was refused; nothing was changed."""


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """The result of an execution: `left` is the plan of the remaining moves, empty unless it was cancelled."""

    cancelled: bool
    left: Plan
    restored: RestoreResult
    seconds: float


class LastSteps:
    """The last step of each partition of a plan, requested or listed, until another client changes the partition."""

    def __init__(self, plan: Plan, on_event: EventSink) -> None:
        self._plan, self._on_event = plan, on_event
        self._steps: dict[TopicPartition, tuple[Replicas, Replicas]] = {}
        """Partition → its replicas before the last step, and that step."""
        self._behind_since: dict[TopicPartition, float] = {}
        self.refused: dict[TopicPartition, str] = {}
        """The partitions whose last requested step the controller refused, with its reason."""

    def add(self, state: ReassignmentState, turn: Turn) -> None:
        """Record that the steps of a turn are requested; none of them is refused yet. Other refusals stay."""
        for tp, step in turn.start.items():
            self._steps[tp] = (state.existing(tp), step)
            self.refused.pop(tp, None)

    def behind(self, state: ReassignmentState) -> set[TopicPartition]:
        """Return the partitions whose metadata is older than the controller's. Drop steps that another client undid.

        The controller lists reassignments. Replicas come from any broker, whose metadata may be behind for a while.
        """
        self._add_listed(state)
        now = time.monotonic()
        # Sets, since a cancelled step leaves the old replicas in another order.
        differing = {
            tp
            for tp, known in self._steps.items()
            if tp not in state.listed
            and tp in state.states
            and {*state.states[tp].replicas} not in ({*known[0]}, {*known[1]})
        }
        self._behind_since = {tp: self._behind_since.get(tp, now) for tp in differing}
        for tp in [tp for tp, since in self._behind_since.items() if now - since > _BEHIND_S]:
            _, step = self._steps.pop(tp)
            del self._behind_since[tp]
            self._changed(tp, state.states[tp].replicas, step)
        return set(self._behind_since)

    def _add_listed(self, state: ReassignmentState) -> None:
        """Record the listed steps: a resumed execution did not request the ones in flight."""
        for tp, target in self._plan.targets.items():
            running = state.listed.get(tp)
            if running is None:
                continue
            known, self._steps[tp] = self._steps.get(tp), (running.existing, running.target)
            if known is not None and {*known[1]} != {*running.target} and state.is_foreign(tp, target):
                self._changed(tp, running.replicas, known[1])

    def _changed(self, tp: TopicPartition, replicas: Replicas, requested: Replicas) -> None:
        why = f"its replicas are {list(replicas)}, the step was {list(requested)}"
        detail = {"replicas": list(replicas), "requested": list(requested), "why": why}
        self._on_event("note", f"another client changed {tp}", detail)


class Execution:
    """One process's part in a job's life: `begin` or `resume`, then `run`.

    The throttle is in force before the first step is requested, and through every step. The execution restores it when
    the job has ended or was cancelled. An interrupted process leaves job and throttle as they are: `resume` continues.
    """

    def __init__(
        self,
        admin: Admin,
        job: Job,
        jobs: JobFolder,
        journals: JournalFolder,
        on_event: EventSink | None = None,
        *,
        wildcard: Collection[str] = (),
    ) -> None:
        """Make the throttle cover all replicas of the ``wildcard`` topics while this process runs the job."""
        self._admin, self._job, self._jobs, self._journals = admin, job, jobs, journals
        self._wildcard = wildcard
        self._on_event = on_event or (lambda _kind, _name, _detail: None)
        self.throttle = Throttle(admin, journals, self._on_event, command_config=job.command_config)
        """The throttle of the move; its rate is None while the move is unthrottled."""
        self._control = JobControl()
        self._rate_open = False
        """Whether the rate of the control is not in force everywhere yet."""
        self._gone: set[TopicPartition] = set()
        """The partitions that the last turn did not find."""
        self._unthrottled: tuple[TopicPartition, ...] = ()
        """The partitions that another client reassigned without the throttle when the last turn began."""
        self._all_moved_s: float | None = None
        """When a turn first found that only old replicas are left; None before."""
        self._min_insync = min_insync(admin, job.plan.topics())
        self._steps = LastSteps(job.plan, self._on_event)
        self._begun_s = time.monotonic()
        self.left = Plan({})
        """The remaining moves of a cancelled job, also where its throttle cannot be restored."""

    def begin(self, control: JobControl, *, additional: bool = False) -> None:
        """Store the job and bring its throttle into force.

        Raise `ExecutionError` or `PlanError`, with nothing changed, when a target is invalid, a partition does not
        exist, the plan chooses log directories, or another reassignment runs, which `additional` permits.
        """
        refuse_log_dirs(self._job.plan)
        stored = [job.id for job in self._jobs.all() if job.cluster_id == self._job.cluster_id]
        if stored:
            raise ExecutionError(
                f"reassignment {stored[0]} of this cluster has not ended: resume it, wait for it, or cancel it first"
            )
        running = self._admin.reassignments()
        if running and not additional:
            raise ExecutionError(
                f"{already_moving(running)}; wait for them, cancel them, or add to them with --additional"
            )
        if additional and control.throttle_bytes_per_s is not None:
            raise ExecutionError("an additional reassignment leaves the throttle as it is: leave --throttle out")
        problems = [
            f"{tp}: {why}"
            for tp, target in sorted(self._job.plan.targets.items())
            if (why := check_target(target, self._min_insync[tp.topic]))
        ]
        if problems:
            raise PlanError("plan", problems)
        states = self._admin.partitions(self._job.plan.topics())
        self._job = replace(self._job, topic_ids={tp.topic: partition.topic_id for tp, partition in states.items()})
        todo = moves(self._job.plan, states)
        live = {broker.id for broker in self._admin.cluster().brokers}
        dead = sorted({broker for move in todo for broker in move.target} - live)
        if dead and self._job.mode == "unbatched":
            raise ExecutionError(f"brokers {dead} are targets of the plan but not alive; live are {sorted(live)}")
        self._control = control
        self._jobs.write(self._job, control)
        try:
            self._set_throttle(todo, control.throttle_bytes_per_s)
        except BaseException as error:
            try:
                self.throttle.restore()
            except TestbedError as failure:
                error.add_note(str(failure))
            self._jobs.remove(self._job.id)
            raise

    def resume(self) -> None:
        """Become the owner of a job whose process is dead, and of its throttle.

        Wait until the throttle is in force, unless the user has cancelled the job. Raise `ExecutionError` when the
        process is alive.
        """
        before = self._job.owner
        if before.alive() and before != Owner.this_process():
            raise ExecutionError(
                f"process {before.pid} executes reassignment {self._job.id}; wait for it, or end that process"
            )
        self._control = self._jobs.control(self._job.id)
        cancelled = self._control.wish == "cancel"
        mine = [journal for journal in open_journals(self._journals) if self._is_mine(journal, before)]
        for journal in mine[:1]:
            self.throttle.adopt(journal)
        if mine and not cancelled:
            self._adopt_rate(self._control.throttle_bytes_per_s)
        self._job = replace(self._job, owner=Owner.this_process())
        self._jobs.write_job(self._job)
        if not mine and not cancelled:
            self._set_throttle(self._left_to_move(), self._control.throttle_bytes_per_s)

    def _adopt_rate(self, throttle_bytes_per_s: int | None) -> None:
        """Bring the rate of the control into force: while no process ran the job, a user may have set another one."""
        try:
            self._to_rate(throttle_bytes_per_s)
        except RestoreError as error:
            # The user wants no throttle, so the move goes on: the next turn restores the rest.
            self._rate_open = True
            self._on_event("note", "throttle", {"why": str(error)})
        if throttle_bytes_per_s is not None:
            self.throttle.wait_in_force(_IN_FORCE_S)

    def _is_mine(self, journal: ThrottleJournal, before: Owner) -> bool:
        """Return whether a throttle is the job's: of its last process, or of one that died while it resumed the job."""
        if journal.cluster_id != self._job.cluster_id:
            return False
        topics = set(self._job.plan.topics())
        ours = any(change.resource.kind == "topic" and change.resource.name in topics for change in journal.changes)
        return journal.owner == before or (ours and not journal.owner.alive())

    def run(
        self,
        on_turn: Callable[[Turn], None] = lambda _turn: None,
        *,
        interval_s: float = 0.5,
        timeout_s: float = float("inf"),
    ) -> ExecutionResult:
        """Take turns until all moves are done or the job is cancelled; return after the throttle is restored.

        Raise `WaitTimeout`, leaving job and throttle as they are, when the job has not ended in time.
        """
        self.follow(on_turn, interval_s=interval_s, timeout_s=timeout_s)
        return self.end()

    def follow(
        self,
        on_turn: Callable[[Turn], None] = lambda _turn: None,
        *,
        interval_s: float = 0.5,
        timeout_s: float = float("inf"),
    ) -> Turn:
        """Take all turns and return the last one. The throttle stays in force until `end`."""
        last = wait_for(
            lambda: self._turn(on_turn), lambda turn: turn is not None, timeout_s, interval_s, "the reassignment"
        )
        assert last is not None
        if self._control.wish != "cancel":
            self._on_event("move.done", "move", {"seconds": round(time.monotonic() - self._begun_s, 3)})
        return last

    def end(self) -> ExecutionResult:
        """Restore the throttle's originals, remove the job, and return the result.

        Raise `RestoreError` when a broker does not take its originals: the job has ended all the same, and the journal
        stays for `recover`.
        """
        cancelled = self._control.wish == "cancel"
        if cancelled:
            self.left = remaining(self._job.plan, self._settled_state())
        try:
            restored = self.throttle.restore()
        except RestoreError:
            self._jobs.remove(self._job.id)
            raise
        self._jobs.remove(self._job.id)
        seconds = time.monotonic() - self._begun_s
        if cancelled:
            self._on_event("move.cancelled", "move", {"seconds": round(seconds, 3)})
        return ExecutionResult(cancelled, self.left, restored, seconds)

    def _turn(self, on_turn: Callable[[Turn], None]) -> Turn | None:
        """Take one turn; return it if it was the last."""
        try:
            self._apply_control()
            state = self._state()
            self.throttle.admit(state.live)
            self._name_unthrottled(state)
            held = "paused" if self._control.wish == "pause" else ""
            turn = take_turn(self._job.plan, state, self._control.limits, self._job.mode, held=held)
            if self._control.wish == "cancel":
                self._cancel_steps(state)
                return turn
            on_turn(turn)
            if turn.start:
                self.throttle.extend(self._copies(state, turn), _IN_FORCE_S)
                self._request_steps(state, turn)
            if turn.elect:
                self._admin.elect_preferred(list(turn.elect))
            gone = {each.tp for each in turn.partitions if each.state == "gone"}
            # A broker behind the controller may not know a topic yet: two turns in a row must miss it.
            confirmed, self._gone = gone <= self._gone, gone
            return turn if turn.ended and confirmed and self._is_removed(turn, state) else None
        except ElectionError as error:
            # The next turn sees the outcome.
            self._on_event("note", "not elected", {"why": str(error)})
        except (UnreachableError, ThrottleError) as error:
            self._on_event("note", "unreachable", {"why": str(error)})
        return None

    def _cancel_steps(self, state: ReassignmentState) -> None:
        """Cancel the steps in flight. Name the partitions of the plan that another client reassigns: these continue."""
        cancel_running(self._admin, self._in_flight(state))
        if foreign := [tp for tp, target in self._job.plan.targets.items() if state.is_foreign(tp, target)]:
            named = ", ".join(shortened(sorted(foreign), _SHOWN))
            why = f"another client reassigns {named}; `testbed reassign cancel --partitions` cancels these as well"
            self._on_event("note", "not cancelled", {"why": why})

    def _in_flight(self, state: ReassignmentState) -> list[TopicPartition]:
        """Return the partitions of the plan with a step in flight."""
        return [
            tp
            for tp, target in self._job.plan.targets.items()
            if tp in state.listed and not state.is_foreign(tp, target)
        ]

    def _name_unthrottled(self, state: ReassignmentState) -> None:
        """Name the partitions of the plan that another client reassigns with replicas that the throttle does not list.

        The throttle lists every replica of the job's own steps, but leaves another client's copy to that client.
        """
        if self.throttle.throttle_bytes_per_s is None:
            return
        listed = {tp: running for tp, running in state.listed.items() if tp in self._job.plan.targets}
        found = unthrottled_partitions(listed, ListedReplicas(self.throttle.lists)) if listed else ()
        if found and found != self._unthrottled:
            named = ", ".join(shortened(found, _SHOWN))
            why = f"another client reassigns {named} with replicas that this throttle does not list"
            self._on_event("note", "unthrottled", {"why": f"{why}; whether they are throttled is up to that client"})
        self._unthrottled = found

    def _copies(self, state: ReassignmentState, turn: Turn) -> list[PartitionMove]:
        """Return the remaining moves of the partitions whose steps start, as the throttle lists them."""
        targets = self._job.plan.targets
        return [PartitionMove.between(tp, state.existing(tp), targets[tp]).in_steps() for tp in turn.start]

    def _request_steps(self, state: ReassignmentState, turn: Turn) -> None:
        """Request the steps. A step that the controller refuses is reported, and requested again after the others."""
        targets = [[tp.topic, tp.partition, list(step)] for tp, step in turn.start.items()]
        self._on_event("batch.started", "batch", {"partitions": len(targets), "targets": targets})
        self._steps.add(state, turn)
        try:
            self._admin.alter_reassignments(turn.start)
        except ReassignmentError as error:
            self._steps.refused.update(error.errors)
            self._on_event("note", "refused", {"why": str(error)})

    def _apply_control(self) -> None:
        """Read the limits and the throttle that a user has set since, and bring the throttle into force."""
        try:
            control = self._jobs.control(self._job.id)
        except JobError as error:
            self._on_event("note", "control", {"why": str(error)})
            return
        self._rate_open |= control.throttle_bytes_per_s != self._control.throttle_bytes_per_s
        # The limits and the wish count at once, also where the rate cannot be set.
        self._control = control
        if not self._rate_open or control.wish == "cancel":
            return
        try:
            self._to_rate(control.throttle_bytes_per_s)
            self._rate_open = False
        except (UnreachableError, ThrottleError, RestoreError) as error:
            # The next turn tries again; the move goes on under the rate that is in force.
            self._on_event("note", "throttle", {"why": str(error)})

    def _to_rate(self, throttle_bytes_per_s: int | None) -> None:
        if throttle_bytes_per_s is None:
            self.throttle.restore()
        elif self.throttle.throttle_bytes_per_s is not None:
            self.throttle.change_rate(throttle_bytes_per_s, _IN_FORCE_S)
        else:
            self._set_throttle(self._left_to_move(), throttle_bytes_per_s)

    def _left_to_move(self) -> list[PartitionMove]:
        """Return the remaining moves, with the steps in flight: these still add replicas."""
        state = self._state()
        left = remaining(self._job.plan, state)
        return [PartitionMove.between(tp, state.existing(tp), target) for tp, target in sorted(left.targets.items())]

    def _set_throttle(self, todo: Sequence[PartitionMove], throttle_bytes_per_s: int | None) -> None:
        if throttle_bytes_per_s is None or not todo:
            return
        live = [broker.id for broker in self._admin.cluster().brokers]
        self.throttle.set([move.in_steps() for move in todo], throttle_bytes_per_s, live, wildcard=self._wildcard)
        self.throttle.wait_in_force(_IN_FORCE_S)

    def _state(self) -> ReassignmentState:
        state = read_state(self._admin, self._job.plan.topics(), self._min_insync, self._job.topic_ids)
        return replace(state, behind=self._steps.behind(state), refused=dict(self._steps.refused))

    def _settled_state(self) -> ReassignmentState:
        """Wait until no step is in flight and the metadata is the controller's; return that state."""
        return wait_for(
            self._state,
            lambda state: not state.behind and not self._in_flight(state),
            _SETTLED_S,
            0.1,
            "the cancelled steps to be gone",
        )

    def _is_removed(self, turn: Turn, state: ReassignmentState) -> bool:
        """Return whether no broker outside its target has a replica of a moved partition. Name the ones that stay.

        The former replicas are unknown: any broker may have had one.
        """
        done = [status for status in turn.partitions if status.state == "done"]
        left = left_behind(
            self._admin,
            [PartitionMove(s.tp, s.target, s.target, (), tuple(sorted({*state.live} - {*s.target}))) for s in done],
        )
        self._all_moved_s = self._all_moved_s or time.monotonic()
        if left and time.monotonic() - self._all_moved_s > _REMOVED_S:
            self._on_event("note", "not removed", {"why": "; ".join(shortened(left, _SHOWN))})
        return not left
