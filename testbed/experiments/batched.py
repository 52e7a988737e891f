"""The same move carried out in KIP-435's steps: by an execution instead of a driver, and watched from outside."""

import time
from collections.abc import Mapping
from dataclasses import replace

from results.contract.manifest import Differences, Done, Flow, InForce
from testbed.experiments.experiment import Context
from testbed.experiments.mover import SAMPLE_S, Batches, Carried, MoveSetup, Transferred, put_back
from testbed.experiments.scene import Group, Scene, flows, plan
from testbed.experiments.watched import STEP_POLL_S, Watched
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import TopicPartition
from testbed.probes.recorder import now_us
from testbed.reassignment.batching.execution import Execution, ExecutionError
from testbed.reassignment.batching.forecast import (
    LogBytes,
    QuotaPhases,
    batches_of,
    carried,
    finished_s,
    one_carries_all,
)
from testbed.reassignment.batching.job import Job, JobControl, JobFolder
from testbed.reassignment.batching.step import Batch, PartitionView, Step, next_step
from testbed.reassignment.batching.turn import Turn
from testbed.reassignment.plan import PlanError
from testbed.reassignment.progress import Poll
from testbed.signals import TerminationGuard, deferred_signals
from testbed.throttle.configs import ThrottleError
from testbed.throttle.duration import seconds_over
from testbed.throttle.journal import JournalFolder
from testbed.throttle.recovery import Restored, RestoreError
from testbed.throttle.throttle import Throttle
from testbed.wait import WaitTimeout, wait_for

TURN_S = 0.5
BATCH_REST_S = 4.0
"""A batch takes that long at most beside copying: two turns, an election, and metadata that everybody has."""
CANCELLED_S = 60.0


class Batched(Watched):
    """A move in steps. What it establishes is what `Mover` does, and what was seen of its steps."""

    def __init__(self, context: Context, setup: MoveSetup, admin: Admin) -> None:
        super().__init__(context, setup, admin)
        self._jobs = JobFolder()
        self._job = Job.new(admin.bootstrap, self.testbed.state.cluster_id, setup.mode, self.wanted)
        self._execution: Execution | None = None
        self._last: Turn | None = None
        self._in_force = InForce(False, 0.0)

    @property
    def no_model(self) -> str:
        """See `Mover.no_model`."""
        if self.during.no_model:
            return self.during.no_model
        if any(group.inbound_bytes_per_s for group in self.scene.listed):
            return "what is written meanwhile is listed on whoever leads by then: in steps that is not modelled"
        sizes = {tp: group.bytes for group in _moving(self.scene) for tp in group.tps()}
        if self.setup.mode == "incremental" and not one_carries_all(self._batches(), sizes):
            return "no broker carries everything: how long it takes depends on which steps happen to be together"
        return ""

    @property
    def idle_s(self) -> float:
        """See `Mover.idle_s`."""
        return BATCH_REST_S * len(self._batches())

    def flows(self) -> tuple[Flow, ...]:
        """See `Mover.flows`: a new preferred leader is elected once it is in sync, and sends to those after it."""
        return (*stepwise(self.scene, self.ids, self.setup.limits.replicas), *_beside(self.scene))

    def carried(self, sizes: LogBytes, inbound: Mapping[TopicPartition, float]) -> Carried:
        """See `Mover.carried`: each step's copies come from who leads by then."""
        return super().carried(sizes, inbound) if self.no_model else carried(self._batches(), sizes)

    def batches_s(self, sizes: LogBytes, quotas: QuotaPhases) -> Batches:
        """See `Mover.batches_s`; slots that are refilled make no batches, but one time for all of it."""
        found = finished_s(self._batches(), sizes, quotas)
        return found if self.setup.mode == "batched" else (seconds_over(carried(self._batches(), sizes), quotas),)

    def _batches(self) -> tuple[Batch, ...]:
        return batches_of(self._views(), self.ids.values(), self.setup.limits)

    def _views(self) -> dict[TopicPartition, PartitionView]:
        return {tp: view(group, self.ids, self.scene.min_insync) for group in _moving(self.scene) for tp in group.tps()}

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
        return Transferred(done, self._in_force, restored, self.seen())

    def _carry_out(self, execution: Execution, timeout_s: float) -> Done:
        begun = time.monotonic()
        rate = self.setup.quota_bytes_per_s
        with self.polling_quotas():
            self.recorder.poll("lag", SAMPLE_S, self.lag_samples)
            execution.begin(JobControl(self.setup.limits, rate))
            self._in_force = InForce(True, time.monotonic() - begun)
            started = time.monotonic()
            told = {"partitions": len(self._job.plan.targets), "throttle_bytes_per_s": rate, "mode": self._job.mode}
            self.recorder.event("move.started", "move", told)
            if self.scene.control is not None:
                self.admin.alter_reassignments(dict(plan([self.scene.control], self.ids).targets))
            self.begun()
            try:
                self._last = execution.follow(self._on_turn, interval_s=TURN_S, timeout_s=timeout_s)
            finally:
                self.watch_no_more()
            seconds = time.monotonic() - started
            self.see_the_end()
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


def view(group: Group, ids: Mapping[str, int], min_insync: int) -> PartitionView:
    """A group's partitions before the first step: all replicas are in sync."""
    current, target = (tuple(ids[host] for host in hosts) for hosts in (group.current, group.target))
    return PartitionView(current, target, current, min_insync)


def stepwise(scene: Scene, ids: Mapping[str, int], replicas: int | None) -> tuple[Flow, ...]:
    """Who copies what from whom when at most `replicas` are added by a step. Pure."""
    hosts, found = {broker: host for host, broker in ids.items()}, []
    for group in _moving(scene):
        seen = view(group, ids, scene.min_insync)
        while isinstance(step := next_step(seen, hosts, replicas), Step):
            leader = hosts[seen.current[0]]
            found += [Flow("throttled", group.topic, tuple(group.partitions), leader, hosts[b]) for b in step.adding]
            seen = seen._replace(current=step.replicas, isr=step.replicas)
    return tuple(found)


def _beside(scene: Scene) -> list[Flow]:
    """What is copied whoever carries the plan out."""
    return [flow for flow in flows(scene) if flow.kind != "throttled"]


def _moving(scene: Scene) -> list[Group]:
    """What is listed and moves; the control goes beside it, at once."""
    return [group for group in scene.moving if group is not scene.control]
