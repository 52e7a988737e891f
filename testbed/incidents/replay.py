"""The replay of an incident: an experiment whose steps are the timeline's entries."""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from results.contract.incident import IncidentRecord, TimelineEntry
from results.contract.manifest import Facts, NicMeasurement, Records, new_run_id
from results.contract.verdict import Finding, Verdict
from results.criteria.incident import deviation
from results.criteria.step_measures import UNREAD
from testbed.defects.parse import by_host
from testbed.errors import TestbedError, UsageError
from testbed.experiments.experiment import Context, Experiment, ExperimentResult, Value
from testbed.experiments.experiment_run import run_on
from testbed.experiments.kip455_trace import Trace
from testbed.experiments.reports import open_store_for_runs, write_report
from testbed.experiments.run_topology import short_of_heap, with_heap
from testbed.faults.active_faults import reconfigure
from testbed.incidents.actions import InjectFault, MoveTopics, RestartBroker
from testbed.incidents.cluster_poll import POLL_S, ClusterPoll, quota_poll, uplink_poll
from testbed.incidents.model import Incident
from testbed.incidents.operator import ClusterOperator
from testbed.incidents.timeline import DueEntry, MonotonicClock, play
from testbed.incidents.triggers import AtTime
from testbed.kafka.admin import Admin
from testbed.network.apply import shell_of
from testbed.network.fabric import shaped_devices
from testbed.network.measure import settled
from testbed.probes.allow_list import Allowance, during, new_replicas, overtaken_batches
from testbed.probes.brokers import nic_measurements, watch_nodes, watch_stores
from testbed.probes.logwatch import LogWatch
from testbed.probes.machine import fingerprint, machine_probe
from testbed.probes.recorder import Poller, now_us, stop_all
from testbed.provision import state as states
from testbed.provision.membership import require_whole_change
from testbed.provision.testbed import Testbed
from testbed.reassignment.batching.turn import min_insync
from testbed.signals import TerminationGuard, deferred_signals
from testbed.topology.host import node_ids
from testbed.units import format_size
from testbed.workload.outcome import WorkloadResult
from testbed.workload.preload import audit, preload
from testbed.workload.producer_epochs import reader
from testbed.workload.records import Fill, Recipe
from testbed.workload.replica_logs import with_replicas
from testbed.workload.spec import ProducerSpec
from testbed.workload.workload import Workload

POLL_TIMEOUT_S = 3.0
GIVE_UP_S = 30.0
"""Seconds after which the producer gives up an unacknowledged record."""
MOST_UNBATCHED, LINGER_MS = 1000, 5.0
"""Records per second up to which each is sent at once. With more, the producer waits for batches as Java's does."""
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A request for a replay. `on` names a provisioned testbed; without it the replay provisions and removes one."""

    incident: Incident
    seed: int = 0
    on: str | None = None
    store: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """A replay in the store. `deviation` is its difference from the file's expectation; None without a difference."""

    run_id: str
    experiment: str
    variant: str
    verdict: Verdict
    criteria: tuple[Finding, ...]
    deviation: str | None
    report: Path
    store: str


def replay(request: ReplayRequest, progress: Progress) -> ReplayResult:
    """Replay one variant and return its verdict.

    Raise `UsageError` before the provisioning, `TestbedError` afterwards.
    """
    incident, experiment = request.incident, as_experiment(request.incident, request.seed)
    store = open_store_for_runs(request.store)
    run_id = new_run_id(experiment.name)
    settings: dict[str, Value] = {"variant": incident.variant, "seed": request.seed, **incident.parameters}
    with ExitStack() as stack:
        testbed = _testbed(request, experiment, run_id, stack, progress)
        judgement = run_on(testbed, experiment, settings, incident.variant, run_id, store, progress)
    # The manifest of a replay that ended early has no record of the incident.
    record = record_of(incident, request.seed)
    return ReplayResult(
        run_id,
        experiment.name,
        incident.variant,
        judgement.verdict,
        judgement.criteria,
        deviation(record, judgement.criteria),
        write_report(store, store.manifest(run_id), judgement),
        store.location,
    )


def producer_name(number: int) -> str:
    """Return the name of the load with this number in the file, counted from 1; it is the host of its samples."""
    return f"producer-{number}"


def as_experiment(incident: Incident, seed: int, nics: tuple[NicMeasurement, ...] | None = None) -> Experiment:
    """Return the incident as an experiment: the incident's file has the topology and the settings.

    With `nics`, the replay uses this measurement of the NICs and makes none.
    """
    return Experiment(
        name=f"incident-{incident.name}",
        summary=incident.summary,
        topology=incident.topology.name,
        parameters=(),
        profiles={},
        overlay=lambda _settings: incident.state.properties,
        run=partial(_run, incident, seed, nics),
        replicas=lambda _settings: most_replicas(incident),
    )


def most_replicas(incident: Incident) -> int:
    """Return the most replicas of any one broker, with those that the timeline's moves add. Pure."""
    moves = [action for entry in incident.entries for action in entry.actions if isinstance(action, MoveTopics)]
    found: Counter[str] = Counter()
    for name, topic in incident.state.topics.items():
        targets = [move.hosts for move in moves if name in move.topics]
        for partition, hosts in enumerate(topic.placement):
            found.update({*hosts, *(host for lists in targets for host in lists[partition % len(lists)])})
    return max(found.values(), default=0)


def record_of(incident: Incident, seed: int) -> IncidentRecord:
    """Return the manifest's record of a replay. It suffices to judge the replay at any time."""
    topology = incident.topology
    entries = tuple(
        TimelineEntry(
            entry.name,
            isinstance(entry.trigger, AtTime),
            entry.optional,
            tuple({each.key: each.model_dump(mode="json", exclude_none=True)} for each in entry.expectations),
            entry.loose,
        )
        for entry in incident.entries
    )
    return IncidentRecord(
        name=incident.name,
        variant=incident.variant,
        seed=seed,
        summary=incident.summary,
        variant_summary=incident.variant_summary,
        expected_failures=incident.expected_failures,
        document=incident.document,
        entries=entries,
        brokers=tuple(host.name for host in topology.brokers),
        uplinks_bps={r: {"transmit": u.tx_bps, "receive": u.rx_bps} for r, u in topology.uplinks.items()},
    )


def allowed(incident: Incident) -> tuple[Allowance, ...]:
    """Return the broker log lines that this variant causes on purpose."""
    actions = [action for entry in incident.entries for action in entry.actions]
    moves = [action for action in actions if isinstance(action, MoveTopics)]
    faults = {action.kind.kind for action in actions if isinstance(action, InjectFault)}
    # For the other brokers a restart by the operator is the same as a restart by a fault.
    faults |= {"broker-restart" for action in actions if isinstance(action, RestartBroker)}
    brokers = [host.name for host in incident.topology.brokers]
    written = [overtaken_batches([load.to for load in incident.loads], brokers)] if incident.loads else []
    return (
        *(new_replicas(move.topics, {host for hosts in move.hosts for host in hosts}) for move in moves),
        *written,
        *during(faults),
    )


def _testbed(
    request: ReplayRequest, experiment: Experiment, run_id: str, stack: ExitStack, progress: Progress
) -> Testbed:
    topology, overlay, specs = request.incident.topology, experiment.overlay({}), request.incident.defects
    defects = None if specs is None else by_host(specs, topology)
    if request.on is None:
        topology = with_heap(topology, experiment.replicas({}), fingerprint()["memory_bytes"])
        testbed = Testbed.up(
            topology, name=f"run-{run_id[-6:]}", overlay=overlay, defects=defects, ephemeral=True, progress=progress
        )
        stack.callback(testbed.down)
        return testbed
    testbed = Testbed.attach(request.on)
    stack.callback(testbed.close)
    stack.enter_context(states.lock(request.on, for_run=True))
    require_whole_change(testbed)
    if testbed.topology.digest() != topology.digest():
        raise UsageError(
            f"testbed {request.on} has the topology {testbed.topology.name}, the incident is about {topology.name}: "
            f"`testbed up {topology.name}`, or leave --on out"
        )
    if short := short_of_heap(testbed.topology, experiment.replicas({})):
        progress(short)
    reconfigure(testbed, overlay, defects, progress)
    return testbed


def _run(incident: Incident, seed: int, nics: tuple[NicMeasurement, ...] | None, context: Context) -> ExperimentResult:
    """Prepare, play the timeline, restore, read back. Raise `TestbedError` after the testbed is restored."""
    testbed = context.testbed
    logs = LogWatch(testbed, allowed(incident))
    logs.start()
    with TerminationGuard(), testbed.admin() as admin, testbed.admin(timeout_s=POLL_TIMEOUT_S) as polling:
        scenario = IncidentScenario(context, incident, seed, admin, polling)
        try:
            measured = scenario.play(nics)
            records = scenario.read_back()
            found = logs.logs()
        finally:
            scenario.delete_topics()
    facts = Facts(records=records, logs=found)
    return ExperimentResult(measured, facts=facts, incident=record_of(incident, seed))


class IncidentScenario:
    """One replay on a testbed: topics, load, polls, the operator, and the timeline."""

    def __init__(self, context: Context, incident: Incident, seed: int, admin: Admin, polling: Admin) -> None:
        self._context, self._incident, self._admin, self._polling = context, incident, admin, polling
        self._testbed, self._recorder = context.testbed, context.recorder
        topics = incident.state.topics
        self._topics = tuple(topics)
        self._ids = node_ids(self._testbed.topology.brokers)
        self._fills = [
            Fill(name, range(topic.partitions), topic.records_per_partition, Recipe(topic.record_size, seed + number))
            for number, (name, topic) in enumerate(topics.items())
            if topic.records_per_partition
        ]
        hosts = {broker: host for host, broker in self._ids.items()}
        self._poll = ClusterPoll(polling, self._topics, hosts, self._recorder)
        self._operator = ClusterOperator(self._testbed, admin, self._topics, self._poll, self._recorder.event)
        self._load = self._producer(seed + 1000)
        self._written: WorkloadResult | None = None
        self._made: list[str] = []
        self._begun_us = now_us()

    def play(self, nics: tuple[NicMeasurement, ...] | None = None) -> tuple[NicMeasurement, ...]:
        """Prepare, play the timeline and restore. Return the measured NICs: `nics`, or a new measurement."""
        problems: list[str] = []
        try:
            with self._recorder.step("prepare"):
                self._prepare()
            if nics is None:
                with self._recorder.step("measure NICs"):
                    nics = self._measured_nics()
            pollers = self._start_polling()
            if self._load is not None:
                self._load.start()
            self._play_timeline()
            self._operator.record_throttle_left()
            self._record_evidence()
        finally:
            with deferred_signals():
                self._context.progress("healing faults, restoring the throttle")
                problems = self._operator.restore()
                if self._load is not None:
                    self._written = self._load.stop()
        if problems:
            raise TestbedError("the testbed is not as it was before the replay:\n  " + "\n  ".join(problems))
        self._record_load()
        self._recorder.wait_for_all()
        stop_all(pollers)
        self._recorder.stop()
        return nics

    def read_back(self) -> Records | None:
        """Read all records back, and compare the logs of replicas; return None when there are no records.

        Records without acknowledgement are not expected. Where leaders do not answer, return None as well; an event
        says why.
        """
        written = self._written.written if self._written is not None else ()
        if not self._fills and not written:
            return None
        self._context.progress("reading every record back")
        batches = reader(self._testbed, self._admin)
        try:
            found = audit(self._testbed.driver_bootstrap, self._fills, written, batches=batches, by_time=True)
        except TestbedError as error:
            # Everything else that the replay showed stands.
            self._recorder.event(UNREAD, "records", {"why": str(error)})
            self._context.progress(f"the records were not read back: {error}")
            return None
        if found.complaints:
            self._recorder.event("records.flawed", "records", {"first": list(found.complaints)})
        records = Records(
            found.expected,
            found.found,
            found.lost,
            found.duplicated,
            found.corrupt,
            reordered=found.reordered,
            sent_again=found.sent_again,
            first=found.complaints,
        )
        return with_replicas(records, self._testbed, self._admin, self._topics)

    def delete_topics(self) -> None:
        """Delete the topics. A testbed that this replay provisioned is removed as a whole instead."""
        for topic in [] if self._testbed.state.ephemeral else self._made:
            self._admin.delete_topic(topic)

    def _producer(self, seed: int) -> Workload | None:
        specs = [
            ProducerSpec(
                producer_name(number),
                load.to,
                tuple(range(self._incident.state.topics[load.to].partitions)),
                float(load.produce),
                record_bytes=load.record_size,
                linger_ms=0.0 if load.produce / load.record_size <= MOST_UNBATCHED else LINGER_MS,
                give_up_s=GIVE_UP_S,
            )
            for number, load in enumerate(self._incident.loads, 1)
        ]
        if not specs:
            return None
        testbed = self._testbed
        return Workload(testbed.bootstrap, specs, seed, self._recorder.add, networks=testbed.client_networks())

    def _prepare(self) -> None:
        state = self._incident.state
        for name, topic in state.topics.items():
            placement = {p: [self._ids[host] for host in hosts] for p, hosts in enumerate(topic.placement)}
            self._admin.create_topic(name, placement, topic.configs)
            self._made.append(name)
        if self._fills:
            self._context.progress(f"preloading {format_size(sum(fill.bytes for fill in self._fills), 3)}")
            preload(self._testbed.driver_bootstrap, self._fills)
        if state.throttle is not None:
            self._operator.set_initial_throttle(state.throttle.rate, state.throttle.topics)

    def _measured_nics(self) -> tuple[NicMeasurement, ...]:
        """Measure every NIC immediately before the timeline. Without a measurement no rate is judged."""
        self._context.progress("measuring the NICs, 2 s each way")
        try:
            return nic_measurements(self._testbed.topology, settled(self._testbed.nics))
        except TestbedError as error:
            self._recorder.event("note", "NICs were not measured", {"error": str(error)})
            return ()

    def _start_polling(self) -> list[Poller]:
        testbed, recorder = self._testbed, self._recorder
        watch_nodes(recorder, testbed.topology, testbed.hosts, self._topics)
        watch_stores(recorder, testbed.topology, testbed.hosts)
        pollers = [
            recorder.poll(f"quota of {host}", 1.0, partial(quota_poll, self._polling, host, broker))
            for host, broker in self._ids.items()
        ]
        pollers.append(recorder.poll("machine", 1.0, machine_probe(testbed.machine_shells)))
        pollers.append(recorder.poll("replicas", POLL_S, self._poll.poll))
        if testbed.topology.uplinks:
            places = testbed.places()
            at_ends = [each for each in shaped_devices(testbed.topology) if each.what.startswith("rack ")]
            for rack, up, down in zip(testbed.topology.uplinks, at_ends[::2], at_ends[1::2], strict=True):
                look = partial(uplink_poll, shell_of(up.fabric, places[up.fabric]), rack, up.device, down.device)
                pollers.append(recorder.poll(f"uplink of {rack}", 1.0, look))
        recorder.wait_for_all()
        return pollers

    def _play_timeline(self) -> None:
        incident, recorder = self._incident, self._recorder
        self._context.progress(f"playing {incident.name}, the {incident.variant} variant: {incident.variant_summary}")
        # A topic without a value of its own has that of its brokers, which may come from the topology.
        least = min_insync(self._admin, self._topics)
        recorder.event("incident.started", incident.name, {"brokers": self._ids, "min_insync": least})
        failed = play(incident, MonotonicClock(), self._poll.newest, self._perform, self._poll.moving)
        recorder.event("incident.ended", incident.name)
        for entry, error in failed.items():
            recorder.event("incident.failed", entry, {"error": error})

    def _record_evidence(self) -> None:
        """Record the cluster's final state and the metadata log, if an expectation reads them."""
        if not any(each.evidence for entry in self._incident.entries for each in entry.expectations):
            return
        self._context.progress("reading the final state and the metadata log")
        self._operator.record_found()
        testbed = self._testbed
        trace = Trace(self._recorder, self._admin, self._topics)
        compared = trace.finish((testbed.hosts[each.name] for each in testbed.topology.controllers), self._begun_us)
        detail = {"equal": compared.equal, "differences": list(compared.differences), "problem": compared.problem}
        self._recorder.event("trace.compared", "metadata log", detail)

    def _perform(self, due: DueEntry, actual_s: float) -> str | None:
        """Perform an entry's actions one after the other; return why one failed, None on success."""
        entry = due.entry
        detail = {
            "planned_s": round(due.planned_s, 4),
            "actual_s": round(actual_s, 4),
            "trigger": str(entry.trigger),
            "do": [str(action) for action in entry.actions],
            "expect": [str(expectation) for expectation in entry.expectations],
        }
        self._recorder.event("incident.entry", entry.name, detail)
        if entry.actions:
            self._context.progress(f"+{actual_s:.1f} s  {entry.name}: {'; '.join(map(str, entry.actions))}")
        for action in entry.actions:
            try:
                with self._operator.acting(action):
                    action.perform(self._operator)
            except TestbedError as error:
                self._recorder.event("note", f"{entry.name}: {action} failed", {"error": str(error)})
                return f"{action}: {error}"
        return None

    def _record_load(self) -> None:
        if self._written is None or not self._written.processes:
            return
        for number, load in enumerate(self._incident.loads, 1):
            found = self._written.process(producer_name(number))
            error = found.error or (None if found.ended else found.why)
            detail = {"sent": found.sent, "acknowledged": found.acked, "error": error or None, "held": found.held}
            self._recorder.event("load.done", load.to, detail)
