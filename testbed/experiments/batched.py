"""The same move carried out in KIP-435's steps: by an execution instead of a driver, and watched from outside."""

import time
from dataclasses import replace

from results.batching import BatchingSeen
from results.batching import Limits as SeenLimits
from results.manifest import Differences, Done, InForce
from results.schema import Sample
from testbed.experiments.batch_watch import BatchWatch
from testbed.experiments.experiment import Context
from testbed.experiments.looks import DRIVER
from testbed.experiments.mover import SAMPLE_S, Mover, MoveSetup, Transferred, put_back
from testbed.experiments.scene import Group, plan
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import TopicPartition
from testbed.probes.recorder import now_us
from testbed.reassignment.batching.execution import Execution, ExecutionError
from testbed.reassignment.batching.forecast import forecast
from testbed.reassignment.batching.job import Control, Job, JobFolder
from testbed.reassignment.batching.look import min_insync
from testbed.reassignment.batching.step import View
from testbed.reassignment.batching.turn import Turn
from testbed.reassignment.changes import ThrottleError
from testbed.reassignment.interrupt import TerminationGuard, deferred_signals
from testbed.reassignment.journal import JournalFolder
from testbed.reassignment.plan import Plan, PlanError
from testbed.reassignment.progress import Poll
from testbed.reassignment.restore import Restored, RestoreError
from testbed.reassignment.throttle import Throttle
from testbed.wait import WaitTimeout, wait_for

STEP_POLL_S = 0.3
"""How often the controller's list is asked for from outside; a step that only drops replicas is over sooner."""
TURN_S = 0.5
BATCH_REST_S = 4.0
"""A batch takes that long at most beside copying: two turns, an election, and metadata that everybody has."""
SETTLED_S = 10.0
CANCELLED_S = 60.0


class Batched(Mover):
    """A move in steps. What it establishes is what `Mover` does, and what was seen of its steps."""

    def __init__(self, context: Context, setup: MoveSetup, admin: Admin) -> None:
        super().__init__(context, setup, admin)
        self._jobs = JobFolder()
        self._job = Job.new(admin.bootstrap, self.testbed.state.cluster_id, setup.mode, self.wanted)
        self._watch: BatchWatch | None = None
        self._execution: Execution | None = None
        self._last: Turn | None = None
        self._in_force = InForce(False, 0.0)

    @property
    def wanted(self) -> Plan:
        """The plan of what is listed; the control goes beside it, at once."""
        return plan([group for group in self.scene.moving if group is not self.scene.control], self.ids)

    @property
    def no_model(self) -> str:
        """See `Mover.no_model`."""
        return self.during.no_model or "it moves in steps: how long nothing is copied between them is not modelled"

    @property
    def idle_s(self) -> float:
        """See `Mover.idle_s`."""
        return BATCH_REST_S * len(forecast(self._views(), self.ids.values(), self.setup.limits).batches)

    def _views(self) -> dict[TopicPartition, View]:
        groups = [group for group in self.scene.moving if group is not self.scene.control]
        return {tp: self._view(group) for group in groups for tp in group.tps()}

    def _view(self, group: Group) -> View:
        current, target = (tuple(self.ids[host] for host in hosts) for hosts in (group.current, group.target))
        return View(current, target, current, self.scene.min_insync)

    def transfer(self, timeout_s: float) -> Transferred:
        """See `Mover.transfer`."""
        done, restored = Done(False, "the move was not started"), put_back(None)
        listed = self.scene.listed_topics if self.scene.wildcard else ()
        execution = self._execution = Execution(
            self.admin, self._job, self._jobs, JournalFolder(), self.recorder.event, wildcard=listed
        )
        with TerminationGuard():
            try:
                done = self._carry_out(execution, timeout_s)
            except (ExecutionError, KafkaError, PlanError, ThrottleError, WaitTimeout) as error:
                # What was seen so far is judged all the same; the verdict says what is missing.
                done = Done(False, str(error))
                self.recorder.event("note", "the move was not done", {"error": str(error)})
            finally:
                with deferred_signals():
                    restored = self._put_back(execution)
        return Transferred(done, self._in_force, restored, self._seen())

    def _carry_out(self, execution: Execution, timeout_s: float) -> Done:
        begun = time.monotonic()
        rate = self.setup.quota_bytes_per_s
        with self.polling_quotas():
            self.recorder.poll("lag", SAMPLE_S, self.lag_samples)
            execution.begin(Control(self.setup.limits, rate))
            self._in_force = InForce(True, time.monotonic() - begun)
            self._watch = self._outside()
            started = time.monotonic()
            told = {"partitions": len(self._job.plan.targets), "throttle_bytes_per_s": rate, "mode": self._job.mode}
            self.recorder.event("move.started", "move", told)
            if self.scene.control is not None:
                self.admin.alter_reassignments(dict(plan([self.scene.control], self.ids).targets))
            self.begun()
            watching = self.recorder.poll("steps", STEP_POLL_S, self._look)
            try:
                self._last = execution.follow(self._on_turn, interval_s=TURN_S, timeout_s=timeout_s)
            finally:
                watching.stop()
            seconds = time.monotonic() - started
            wait_for(self._look_at_the_end, lambda wrong: not wrong, SETTLED_S, STEP_POLL_S, "the last step")
            wait_for(self._after, lambda left: left == 0, CANCELLED_S, STEP_POLL_S, "the control to arrive")
        return Done(True, f"seen {seconds:.1f} s after it was begun")

    def _after(self) -> int:
        """How much of the control is left once all steps are done."""
        self.on_poll(Poll(now_us(), 0, len(self._job.plan.targets)))
        return self.control_left()

    def _put_back(self, execution: Execution) -> Differences:
        """The throttle taken away; what has not arrived is cancelled first."""
        try:
            return put_back(self._end(execution))
        except (KafkaError, RestoreError, WaitTimeout) as error:
            self.recorder.event("note", "restore failed", {"why": str(error)})
            return Differences(False, (str(error),))

    def _end(self, execution: Execution) -> Restored:
        if self._job.id not in self._jobs.ids():
            return Restored()  # it was refused, or its throttle did not come into force: begin has put it back
        if self._last is not None:
            return execution.end(self._last).restored
        self._jobs.steer(self._job.id, replace(self._jobs.control(self._job.id), wish="cancel"))
        ended = execution.run(timeout_s=CANCELLED_S)
        self.recorder.event("note", "cancelled", {"partitions": len(ended.left.targets)})
        return ended.restored

    def _on_turn(self, turn: Turn) -> None:
        left = sum(status.state not in ("done", "gone") for status in turn.partitions)
        self.on_poll(Poll(now_us(), left, len(turn.partitions)))

    def change_rate(self, rate_bytes_per_s: int) -> None:
        """See `Mover.change_rate`; it is asked for now, and takes effect with the next turn."""
        if self._job.id not in self._jobs.ids():
            raise ThrottleError("the throttle's rate cannot be changed: no move is under way")
        control = self._jobs.control(self._job.id)
        self._jobs.steer(self._job.id, replace(control, throttle_bytes_per_s=rate_bytes_per_s))

    @property
    def throttle(self) -> Throttle | None:
        """The throttle of the move; None before there is one."""
        return None if self._execution is None else self._execution.throttle

    # ---- from outside

    def _outside(self) -> BatchWatch:
        limits = self.setup.limits
        asked = SeenLimits(limits.replicas, limits.partitions, limits.leaders)
        topics = self._job.plan.topics()
        return BatchWatch(self._job.plan, self._job.mode, asked, min_insync(self.admin, topics))

    def _look(self) -> list[Sample]:
        """What is listed now; every change of a partition is an event."""
        if self._watch is None:
            return []
        topics = self._job.plan.topics()
        asked, listed = now_us(), self.admin.reassignments(topics)
        for entry in self._watch.look(asked, listed, self.admin.partitions(topics)):
            seen = {name: getattr(entry, name) for name in ("replicas", "adding", "removing", "isr", "leader")}
            self.recorder.event("partition.seen", str(entry.tp), seen)
        leaders = float(self._watch.leaders)
        return [
            Sample(asked, DRIVER, "move.listed", float(len(listed))),
            Sample(asked, DRIVER, "move.leaders", leaders),
        ]

    def _look_at_the_end(self) -> tuple[str, ...]:
        """What is not where the plan has it, by one more look; a broker's metadata may be behind the controller's."""
        self.recorder.add(self._look())
        seen = self._seen()
        return () if seen is None else seen.astray

    def _seen(self) -> BatchingSeen | None:
        return None if self._watch is None else self._watch.seen()
