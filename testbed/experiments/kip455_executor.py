"""The executor of a KIP-455 scenario: it fills the topic, takes the steps under a low throttle, and undoes everything.

Expected states follow the rules of KRaft's controller (`PartitionReassignmentReplicas` and `PartitionChangeBuilder` in
`org.apache.kafka.controller`). `kip` in a step describes where the KIP's text differs; docs/kip455.md has the table.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from operator import not_
from typing import Any, Self

from results.contract.manifest import Facts, Records
from results.contract.steps import ACCEPTED, LINGER_US, StepRecord, StepsRecord
from results.criteria.step_measures import LOGS, UNREAD
from testbed.errors import TestbedError, UsageError
from testbed.experiments.criteria import STEPS
from testbed.experiments.experiment import Context, Experiment, ExperimentResult, Settings, SuiteScenario
from testbed.experiments.kip455_actions import LogSizes, Replicas, ScenarioCluster, ScenarioStep, answer_of
from testbed.experiments.kip455_trace import POLL_S, Trace, readable
from testbed.experiments.layout import RECORD_BYTES
from testbed.experiments.move_environment import preloaded
from testbed.kafka.cancellation import cancel_running
from testbed.kafka.capabilities import ON_DISK
from testbed.kafka.errors import KafkaError
from testbed.kafka.node import FETCH_TUNED
from testbed.kafka.partitions import existing_partitions
from testbed.network.shape import payload_bytes_per_s
from testbed.probes.allow_list import during, new_replicas
from testbed.probes.brokers import sampled_bps, watch_nodes
from testbed.probes.logwatch import LogWatch
from testbed.probes.machine import machine_probe
from testbed.probes.recorder import now_us
from testbed.topology.model import Topology
from testbed.wait import WaitTimeout, wait_for
from testbed.workload.preload import audit, preload
from testbed.workload.producer_epochs import reader
from testbed.workload.records import Fill, Recipe
from testbed.workload.replica_logs import with_replicas

TRACE_TIMEOUT_S = 3.0
DELETED_S = 10.0
"""The longest wait until every broker has deleted the logs of removed replicas. It takes some tenths of a second."""
SIX, DEDICATED = "six-brokers", "controllers"
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Kip455Scenario:
    """A topic and the steps on it.

    `partitions` are the replicas of each partition, the leader first; each partition has `bytes`. `hold_bytes_per_s` is
    the throttle of all replicas at the start, None for no throttle. `doomed` are the brokers that are down during a
    throttle change: the executor does not wait for the new rate on them.
    """

    steps: Sequence[ScenarioStep]
    partitions: Sequence[Replicas] = ((1, 2, 3),)
    bytes: int = 4_000_000
    hold_bytes_per_s: int | None = 50_000
    doomed: tuple[int, ...] = ()


class Kip455Executor:
    """The executor of one scenario on a testbed. At the end of its block it undoes every change to the testbed.

    `copy_s` is how long the bytes of the scenario keep a NIC busy, in seconds.
    """

    def __init__(self, context: Context, scenario: Kip455Scenario, copy_s: float = 0.0) -> None:
        self._context, self._scenario, self._copy_s = context, scenario, copy_s
        self.topic = f"kip455-{context.run_id[-6:]}"
        self._fill: Fill | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        context = self._context
        with ExitStack() as stack:
            admin = stack.enter_context(context.testbed.admin())
            watcher = stack.enter_context(context.testbed.admin(timeout_s=TRACE_TIMEOUT_S))
            self.cluster = ScenarioCluster(context.testbed, admin, context.recorder, self.topic)
            self.trace = Trace(context.recorder, watcher, [self.topic])
            self._stack = stack.pop_all()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        failed = []
        with self._stack:
            for undo in self._undo():
                try:
                    undo()
                except TestbedError as problem:
                    failed.append(problem)
        for failure in failed:
            if error is None:
                raise failure
            error.add_note(str(failure))

    def prepare(self) -> None:
        """Create and fill the topic, set the throttle, and start the trace."""
        context, scenario, cluster = self._context, self._scenario, self.cluster
        replicas = dict(enumerate(scenario.partitions))
        cluster.admin.create_topic(self.topic, replicas)
        records = scenario.bytes // RECORD_BYTES
        if records:
            recipe = Recipe(record_bytes=RECORD_BYTES, seed=int.from_bytes(context.run_id.encode()[-4:]))
            self._fill = Fill(self.topic, range(len(replicas)), records, recipe)
            preload(context.testbed.driver_bootstrap, [self._fill])
        if scenario.hold_bytes_per_s is not None:
            watched = [broker for broker in cluster.hosts if broker not in scenario.doomed]
            cluster.throttle.set([], scenario.hold_bytes_per_s, watched, wildcard=[self.topic], everywhere=True)
            cluster.throttle.wait_in_force(30.0)
        context.recorder.poll("trace", POLL_S, self.trace.look)

    def walk(self) -> list[StepRecord]:
        """Take all steps in order and return their records. A step that does not end is the last one."""
        taken: list[StepRecord] = []
        _next_batch()
        for step in self._scenario.steps:
            open_ends = [each.name for each in taken if each.from_us is None or each.why]
            if open_ends:
                taken.append(self._record(step, None, None, "", f"{open_ends[0]} did not come to its end"))
            else:
                taken.append(self._take(step))
        return taken

    def _take(self, step: ScenarioStep) -> StepRecord:
        recorder = self._context.recorder
        self._context.progress(f"{step.name}: {step.action.text}")
        with recorder.step(step.name):
            begun_us, begun_s = now_us(), time.monotonic()
            answer, why = ACCEPTED, ""
            try:
                step.action.do(self.cluster)
            except KafkaError as error:
                answer = answer_of(error)
                recorder.event("note", f"answer to {step.name}", {"error": str(error)[:500]})
            try:
                wait_for(lambda: self._missing(step, begun_us, begun_s), not_, step.timeout_s, _LOOK_S, step.name)
            except WaitTimeout as error:
                why = f"after {step.timeout_s:g} s: {'; '.join(error.last_seen)}"
            ended_us = now_us()
            if self.cluster.whole:
                self._record_logs(self.cluster.log_sizes)
            _next_batch()
        return self._record(step, begun_us, ended_us, answer, why)

    def _record(self, step: ScenarioStep, from_us: int | None, to_us: int | None, answer: str, why: str) -> StepRecord:
        expectations = tuple(replace(each, topic=self.topic) for each in step.expect)
        action, within_s = step.action, None
        if action.within_s is not None:
            within_s = round(step.settle_s + action.within_s + (self._copy_s if action.copies else 0.0), 3)
        return StepRecord(step.name, action.text, from_us, to_us, answer, step.answer, expectations, why, within_s)

    def _missing(self, step: ScenarioStep, begun_us: int, begun_s: float) -> list[str]:
        missing = []
        for expect in step.expect:
            if expect.when == "end":
                there = self.trace.latest(self.cluster.tp(expect.partition), begun_us)
                if there is None or not expect.wanted.met_by(there):
                    missing.append(f"partition {expect.partition} is {there or 'not described'}, not {expect.wanted}")
        left_s = step.settle_s - (time.monotonic() - begun_s)
        if left_s > 0:
            missing.append(f"{left_s:.1f} s of its time are left")
        return missing

    def settle(self) -> None:
        """Undo all changes before the trace is read from the log: no fault, no move, no throttle.

        Then wait until each broker has the logs of its replicas and no other logs.
        """
        for undo in self._undo():
            undo()
        self._record_logs(self._settled_logs)

    def read_back(self) -> Records | None:
        """Read all records back and compare the logs of all replicas; call it after `settle`.

        Return None for a topic without records, and for one that was deleted. Where leaders do not answer the result is
        None, too, and an event says why.
        """
        testbed, admin, recorder = self._context.testbed, self.cluster.admin, self._context.recorder
        if self._fill is None:
            return None
        try:
            if not existing_partitions(admin, [self.topic]):
                return None
            self._context.progress("reading every record back")
            found = audit(testbed.driver_bootstrap, [self._fill], batches=reader(testbed, admin), by_time=True)
        except TestbedError as error:
            recorder.event(UNREAD, self.topic, {"why": str(error)})
            return None
        if found.complaints:
            recorder.event("note", "what the audit found", {"first": list(found.complaints)})
        return with_replicas(preloaded(found), testbed, admin, [self.topic])

    def _settled_logs(self) -> LogSizes:
        try:
            return wait_for(self.cluster.log_sizes, self._placed, DELETED_S, _LOOK_S, "the logs of the replicas alone")
        except WaitTimeout as error:
            found: LogSizes = error.last_seen
            return found

    def _placed(self, sizes: LogSizes) -> bool:
        """Return whether each broker has the logs of its replicas and no other logs."""
        there = existing_partitions(self.cluster.admin, [self.topic])
        replicas = {(broker, tp.partition) for tp, state in there.items() for broker in state.replicas}
        return {(broker, partition) for broker, logs in sizes.items() for partition in logs} == replicas

    def _record_logs(self, read: Callable[[], LogSizes]) -> None:
        """Record the sizes of all logs as an event, or why they could not be read."""
        try:
            found: dict[str, Any] = {"sizes": read()}
        except KafkaError as error:
            found = {"problem": str(error)}
        self._context.recorder.event(LOGS, self.topic, {"topic": self.topic, **found})

    def _undo(self) -> tuple[Callable[[], object], ...]:
        return self.cluster.heal, self._cancel, self.cluster.throttle.restore

    def _cancel(self) -> None:
        cancel_running(self.cluster.admin, self.cluster.admin.reassignments([self.topic]))


def copy_seconds(scenario: Kip455Scenario, topology: Topology) -> float:
    """Return how long the slowest NIC needs for the bytes of all replicas: one leader may send all of them."""
    line = payload_bytes_per_s(min(rate for host in topology.brokers for rate in sampled_bps(host)))
    return scenario.bytes * sum(map(len, scenario.partitions)) / line


def run_scenario(context: Context, scenario: Kip455Scenario) -> ExperimentResult:
    """Take a scenario's steps, read the log and return the result. The record of a step says why it failed."""
    recorder = context.recorder
    with Kip455Executor(context, scenario, copy_seconds(scenario, context.testbed.topology)) as executor:
        watch = LogWatch(context.testbed)
        watch.start()
        recorder.poll("machine", 1.0, machine_probe(context.testbed.machine_shells))
        # No criterion of a scenario asks how a log grows, and 2,000 logs take an agent's time.
        watch_nodes(recorder, context.testbed.topology, context.testbed.hosts, ())
        with recorder.step("prepare"):
            executor.prepare()
        steps = executor.walk()
        with recorder.step("settle"):
            executor.settle()
        recorder.stop()
        compared = executor.trace.finish(readable(context.testbed))
        records = executor.read_back()
        watch.allow(new_replicas([executor.topic], context.testbed.state.kafka), *during(executor.cluster.kinds))
        logs = watch.logs()
    record = StepsRecord((executor.topic,), tuple(steps), compared.equal, compared.differences, compared.problem)
    return ExperimentResult(facts=Facts(records=records, logs=logs), steps=record)


def _next_batch() -> None:
    """Wait until the controller writes later changes to a new batch of the log."""
    since = now_us()
    wait_for(now_us, lambda us: us > since + 2 * LINGER_US, 1.0, 0.01, "the controller's next batch")


def kip455_experiment(
    name: str,
    summary: str,
    *,
    order: int,
    smoke: bool = False,
    brief: int | None = None,
    brokers: int = 6,
    dedicated: bool = False,
    topology: str = SIX,
    **scenario: Any,
) -> Experiment:
    """Return the experiment of a scenario; `scenario` are the fields of `Kip455Scenario`.

    It needs brokers with the ids 1 to `brokers`; with `dedicated` it also needs three controllers that are not brokers.
    `order` is its position in the suite kip455. With `smoke` the profile smoke includes it.
    `brief` is its position in the suite brief; None when that suite does not have it.
    """
    built = Kip455Scenario(**scenario)

    def check(found: Topology, _settings: Settings) -> None:
        there = {host.node_id for host in found.brokers}
        if not set(range(1, brokers + 1)) <= there:
            raise UsageError(f"{name} needs brokers 1 to {brokers}, as in {topology}; {found.name} has other ones")
        own = [host for host in found.controllers if host.node_id not in there]
        if dedicated and len(own) < 3:
            raise UsageError(
                f"{name} needs three controllers that are no brokers, as in {topology}; {found.name} has {len(own)}"
            )

    def run(context: Context) -> ExperimentResult:
        return run_scenario(context, built)

    profiles = ("smoke", "ci", "release") if smoke else ("ci", "release")
    scenarios = [SuiteScenario("kip455", profiles, name.removeprefix("kip455-"), order)]
    if brief is not None:
        scenarios.append(SuiteScenario("brief", ("ci",), name.removeprefix("kip455-"), brief))
    return Experiment(
        name=name,
        summary=summary,
        topology=topology,
        parameters=(),
        profiles={},
        overlay=lambda _settings: FETCH_TUNED,
        run=run,
        check=check,
        needs=ON_DISK,
        suites=scenarios,
        criteria=STEPS,
    )
