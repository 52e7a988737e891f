"""A move in KIP-435's batches: its driver, its model, and the flows of its steps."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from results.contract.manifest import Differences, Done, Flow, InForce
from testbed.experiments.batch_monitor import STEP_POLL_S, BatchMonitor, view
from testbed.experiments.experiment import Context
from testbed.experiments.layout import Layout, flows, plan
from testbed.experiments.move_driver import TransferResult, not_done, restored_differences, wait_for_move
from testbed.experiments.move_environment import MoveEnvironment, MoveSetup
from testbed.experiments.reassignment_run import InboundRates, LogSizes, MoveModel, ReassignmentRun
from testbed.kafka.admin import Admin
from testbed.kafka.cancellation import cancel_running
from testbed.kafka.errors import KafkaError
from testbed.probes.recorder import now_us
from testbed.reassignment.batching.batch import Batch
from testbed.reassignment.batching.execution import Execution, ExecutionError
from testbed.reassignment.batching.forecast import carried, finished_s, forecast, one_carries_all
from testbed.reassignment.batching.job import Job, JobControl, JobError, JobFolder
from testbed.reassignment.batching.step import steps_to_target
from testbed.reassignment.batching.turn import Turn
from testbed.reassignment.driver import DriverError
from testbed.reassignment.plan import PlanError
from testbed.reassignment.progress import Poll
from testbed.signals import TerminationGuard, deferred_signals
from testbed.throttle.configs import ThrottleError
from testbed.throttle.duration import Share, seconds_over
from testbed.throttle.journal import JournalFolder
from testbed.throttle.recovery import RestoreError, RestoreResult
from testbed.wait import WaitTimeout, wait_for

TURN_S = 0.5
BATCH_REST_S = 4.0
"""The longest time of a batch in seconds, beyond copying: two turns, an election, and the propagation of metadata."""
CANCELLED_S = 60.0


class BatchedModel(MoveModel):
    """The model of a move in batches."""

    @property
    def no_model(self) -> str:
        """Return the reason why no model predicts the duration of the move; empty: a model does."""
        if reason := super().no_model:
            return reason
        if any(group.inbound_bytes_per_s for group in self._environment.layout.throttled):
            return "the leader of the moment sends what clients write: no model covers that in steps"
        sizes = {tp: group.bytes for group in self._environment.throttled_groups() for tp in group.tps()}
        if self._environment.setup.mode == "incremental" and not one_carries_all(self._batches(), sizes):
            return "no broker carries everything: how long it takes depends on which steps happen to be together"
        return ""

    @property
    def idle_s(self) -> float:
        """Return the longest time in seconds that steps add to copying at once.

        They add the rests, the turns of `starts`, and the time in which a batch copies to few brokers.
        """
        setup, batches = self._environment.setup, self._batches()
        copying = sum(bool(step.adding) for batch in batches for step in batch.steps.values())
        paced_s = 0.0 if setup.limits.starts is None else 2 * TURN_S * copying / setup.limits.starts
        groups = self._environment.throttled_groups()
        sizes = {tp: group.bytes // len(group.partitions) for group in groups for tp in group.tps()}
        rate = [(0.0, float(setup.action.slowest_bytes_per_s or setup.throttle_bytes_per_s))]
        in_turn_s = max(finished_s(batches, sizes, rate), default=0.0)
        return BATCH_REST_S * len(batches) + paced_s + in_turn_s - seconds_over(carried(batches, sizes), rate)

    def flows(self) -> tuple[Flow, ...]:
        """Return the flows: an elected new leader sends to the replicas that later steps add."""
        environment = self._environment
        others = [flow for flow in flows(environment.layout) if flow.kind != "throttled"]
        return (*stepwise(environment.layout, environment.ids, environment.setup.limits.replicas), *others)

    def carried(self, sizes: LogSizes, inbound: InboundRates) -> Sequence[Share]:
        """Return the bytes that each broker has to carry. The leader at the time of each step sends its copies."""
        return super().carried(sizes, inbound) if self.no_model else carried(self._batches(), sizes)

    def batches_s(self, sizes: LogSizes, throttles: Sequence[tuple[float, float]]) -> tuple[float, ...]:
        """Return the seconds until the bytes up to each batch are copied; one time when slots are refilled."""
        if self._environment.setup.mode == "batched":
            return finished_s(self._batches(), sizes, throttles)
        return (seconds_over(carried(self._batches(), sizes), throttles),)

    def _batches(self) -> tuple[Batch, ...]:
        environment = self._environment
        views = {
            tp: view(group, environment.ids, environment.layout.min_insync)
            for group in environment.throttled_groups()
            for tp in group.tps()
        }
        return forecast(views, environment.ids.values(), environment.setup.limits)


class BatchedDriver:
    """The driver of a plan in batches, under a throttle. The control moves at once, unthrottled."""

    def __init__(self, environment: MoveEnvironment, monitor: BatchMonitor) -> None:
        self._environment, self._monitor = environment, monitor
        self._jobs = JobFolder()
        self._job = Job.new(
            environment.admin.bootstrap,
            environment.testbed.state.cluster_id,
            environment.setup.mode,
            environment.throttled_plan(),
        )
        self._ended = False
        self._in_force = InForce(False, 0.0)

    def transfer(self, run: ReassignmentRun, timeout_s: float) -> TransferResult:
        """Execute the move. A failure is part of the result, not an exception."""
        environment = self._environment
        done, restored = Done(False, "the move was not started"), restored_differences(None)
        wildcard = environment.layout.throttled_topics if environment.layout.wildcard else ()
        execution = Execution(
            environment.admin, self._job, self._jobs, JournalFolder(), environment.recorder.event, wildcard=wildcard
        )
        with TerminationGuard():
            try:
                done = self._execute(execution, run, timeout_s)
            except (DriverError, ExecutionError, KafkaError, PlanError, ThrottleError, WaitTimeout) as error:
                # The run still judges the samples so far; the verdict names the missing data.
                done = not_done(error, timeout_s)
                environment.recorder.event("note", "the move was not done", {"error": str(error)})
            finally:
                with deferred_signals():
                    restored = self._restore(execution)
        return TransferResult(done, self._in_force, restored)

    def _execute(self, execution: Execution, run: ReassignmentRun, timeout_s: float) -> Done:
        environment = self._environment
        begun = time.monotonic()
        rate = environment.setup.throttle_bytes_per_s
        with environment.throttle_polls(lambda: execution.throttle):
            execution.begin(JobControl(environment.setup.limits, rate))
            self._in_force = InForce(True, time.monotonic() - begun)
            started = time.monotonic()
            detail = {"partitions": len(self._job.plan.targets), "throttle_bytes_per_s": rate, "mode": self._job.mode}
            environment.recorder.event("move.started", "move", detail)
            control = environment.layout.control
            if control is not None:
                environment.admin.alter_reassignments(dict(plan([control], environment.ids).targets))
            run.begun()

            def on_turn(turn: Turn) -> None:
                left = sum(status.state not in ("done", "gone") for status in turn.partitions)
                run.on_poll(Poll(now_us(), left))

            def control_left() -> int:
                run.on_poll(Poll(now_us(), 0))
                return self.control_left()

            try:
                with wait_for_move(timeout_s):
                    execution.follow(on_turn, interval_s=TURN_S, timeout_s=timeout_s)
                    self._ended = True
            finally:
                self._monitor.stop()
            seconds = time.monotonic() - started
            self._monitor.await_end()
            wait_for(control_left, lambda left: left == 0, CANCELLED_S, STEP_POLL_S, "the control to arrive")
        return Done(True, f"seen {seconds:.1f} s after it was begun")

    def _restore(self, execution: Execution) -> Differences:
        """Cancel the moves that did not complete, then remove the throttle. Return the differences."""
        try:
            restored = restored_differences(self._end(execution))
        except (JobError, KafkaError, RestoreError, WaitTimeout) as error:
            self._environment.recorder.event("note", "restore failed", {"why": str(error)})
            restored = Differences(False, (str(error),))
        self._cancel_control()
        return restored

    def _cancel_control(self) -> None:
        """Cancel what is left of the control: it is no part of the job, and would block the next move."""
        admin, control = self._environment.admin, self._environment.layout.control
        try:
            if control is not None:
                cancel_running(admin, admin.reassignments([control.topic]))
        except KafkaError as error:
            self._environment.recorder.event("note", "the control was not cancelled", {"error": str(error)})

    def _end(self, execution: Execution) -> RestoreResult:
        if self._job.id not in self._jobs.ids():
            # Refused, or the throttle did not come into force. A restore that failed in `begin` is tried again here.
            return execution.throttle.restore()
        if self._ended:
            return execution.end().restored
        self._jobs.steer(self._job.id, lambda control: replace(control, wish="cancel"))
        ended = execution.run(timeout_s=CANCELLED_S)
        self._environment.recorder.event("note", "cancelled", {"partitions": len(ended.left.targets)})
        return ended.restored

    def change_rate(self, rate_bytes_per_s: int) -> None:
        """Request another throttle, which takes effect with the next turn. Raise `ThrottleError` without a move."""
        if self._job.id not in self._jobs.ids():
            raise ThrottleError("the throttle's rate cannot be changed: no move is under way")
        self._jobs.steer(self._job.id, lambda control: replace(control, throttle_bytes_per_s=rate_bytes_per_s))

    def control_left(self) -> int:
        """Return the number of partitions of the control transfer that have not arrived."""
        return self._environment.control_left()


def batched_run(context: Context, setup: MoveSetup, admin: Admin) -> ReassignmentRun:
    """Return a run that executes the plan in batches while a monitor polls the controller's list."""
    environment = MoveEnvironment(context, setup, admin)
    monitor = BatchMonitor(environment)
    return ReassignmentRun(
        environment, driver=BatchedDriver(environment, monitor), model=BatchedModel(environment), monitor=monitor
    )


def stepwise(layout: Layout, ids: Mapping[str, int], replicas: int | None) -> tuple[Flow, ...]:
    """Return the throttled flows when a step adds at most `replicas` replicas. Pure."""
    hosts, found = {broker: host for host, broker in ids.items()}, []
    for group in (each for each in layout.moving if each is not layout.control):
        for step in steps_to_target(view(group, ids, layout.min_insync), hosts, replicas):
            leader = hosts[step.current[0]]
            found += [Flow("throttled", group.topic, tuple(group.partitions), leader, hosts[b]) for b in step.adding]
    return tuple(found)
