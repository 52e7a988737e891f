"""The run of one experiment: provision, measure, judge, commit, report. Spark can judge committed runs again."""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from results.contract.cluster import ClusterChange
from results.contract.manifest import DefectRecord, Manifest, NetworkRecord, new_run_id
from results.contract.schema import events_table, samples_table
from results.contract.store import RunData, Store, StoreError
from results.contract.verdict import Finding, Verdict
from results.criteria import Judgement, judge
from results.criteria.judgement import OWN_ERROR, Skipped, rates_failed, skipped
from results.criteria.restraint import ENDING
from results.spark.recompute import recompute
from testbed.defects.parse import by_host
from testbed.errors import SoftwareError, TestbedError, UsageError, os_error_text
from testbed.experiments.broker_membership import restore_hosts
from testbed.experiments.cluster_changes import read_changes
from testbed.experiments.experiment import (
    PROFILES,
    Context,
    Experiment,
    ExperimentResult,
    Value,
    find_experiment,
    read_settings,
    require_once,
)
from testbed.experiments.network_readings import LOOK_S, NetworkReadings, measure_again
from testbed.experiments.record import (
    Header,
    clock_readings,
    commit,
    defect_records,
    manifest,
    recorded_by,
    this_testbed,
)
from testbed.experiments.reports import RunFigure, figures, open_store_for_runs, write_report
from testbed.experiments.run_topology import require_space, run_topology, short_of_heap
from testbed.experiments.spark import spark_session
from testbed.extras import require_extra
from testbed.faults.active_faults import reconfigure
from testbed.network.apply import Place
from testbed.probes.recorder import Recorder
from testbed.provision import state as states
from testbed.provision.containers import EngineGone
from testbed.provision.liveness import NotWhole, explained, guarded, restarted, why_not_whole
from testbed.provision.membership import require_whole_change
from testbed.provision.testbed import Testbed, note_nothing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request for one run. `on` names a provisioned testbed; without it the run provisions and removes one.

    With `confirm` Spark judges the run again, from the store.
    """

    experiment: str
    settings: Sequence[str] = ()
    profile: str = "ci"
    on: str | None = None
    topology: str | None = None
    kafka: str | None = None
    store: str | None = None
    confirm: bool = False
    defects: Sequence[str] = ()
    """The defects of the brokers; empty: those of the testbed that `on` names, else none."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """A judged run in the store."""

    run_id: str
    experiment: str
    verdict: Verdict
    criteria: tuple[Finding, ...]
    figures: tuple[RunFigure, ...]
    report: Path
    store: str
    skipped: tuple[Skipped, ...] = ()
    defects: tuple[DefectRecord, ...] = ()
    """What the brokers did wrong on purpose."""


def run(request: RunRequest, progress: Progress) -> RunResult:
    """Run one experiment and return its result. Raise `UsageError` before provisioning, `TestbedError` afterwards."""
    experiment = find_experiment(request.experiment)
    if request.profile not in PROFILES:
        raise UsageError(f"no profile {request.profile!r}; there are {', '.join(PROFILES)}")
    if request.on and (request.topology or request.kafka):
        raise UsageError("--on names a testbed that is up: leave --topology and --kafka out")
    require_once(request.settings)
    settings = read_settings(experiment, request.profile, request.settings)
    if request.confirm:
        require_extra("pyspark")
    store = open_store_for_runs(request.store)
    run_id = new_run_id(experiment.name)
    with ExitStack() as stack:
        testbed = _testbed(request, experiment, settings, run_id, stack, progress)
        judgement = run_on(testbed, experiment, settings, request.profile, run_id, store, progress)
        with _in_store(run_id, judgement, store):
            stack.close()  # the testbed is removed, or no longer in use
            if request.confirm:
                with spark_session() as spark:
                    judgement = confirm(spark, store, [run_id])[run_id]
                progress("judged again from the store, in Spark: the same verdict")
            run_manifest = store.manifest(run_id)
            report = write_report(store, run_manifest, judgement)
    return RunResult(
        run_id,
        experiment.name,
        judgement.verdict,
        judgement.criteria,
        figures(run_manifest, judgement.measures),
        report,
        store.location,
        skipped(run_manifest),
        run_manifest.defects,
    )


@contextmanager
def _in_store(run_id: str, judgement: Judgement, store: Store) -> Iterator[None]:
    """Add to an error within the block that the run is in the store, and its verdict."""
    try:
        yield
    except Exception as error:
        said = os_error_text(error) if isinstance(error, OSError) else None
        known = isinstance(error, TestbedError | StoreError)
        said = said or (str(error) if known else f"{OWN_ERROR}{in_one_line(error)}")
        raise TestbedError(f"{said}\nrun {run_id}, {judgement.verdict}, is in {store.location}") from error


def _testbed(
    request: RunRequest,
    experiment: Experiment,
    settings: dict[str, Value],
    run_id: str,
    stack: ExitStack,
    progress: Progress,
) -> Testbed:
    overlay = experiment.overlay(settings)
    if request.on:
        testbed = Testbed.attach(request.on)
        stack.callback(testbed.close)
        stack.enter_context(states.lock(request.on, for_run=True))
        require_whole_change(testbed)
        experiment.fits(testbed.topology, settings)
        require_space(experiment, settings, testbed.topology)
        if short := short_of_heap(testbed.topology, experiment.replicas(settings)):
            progress(short)
        defects = by_host(request.defects, testbed.topology) if request.defects else None
        reconfigure(testbed, overlay, defects, progress)
        experiment.check_kafka(settings, testbed.topology, testbed)
        # A run may add and remove brokers: afterwards the testbed has its own again.
        stack.callback(restore_hosts, testbed, testbed.topology, progress)
        return testbed
    topology = run_topology(experiment, settings, request.topology, request.kafka)
    defects = by_host(request.defects, topology)
    experiment.check_kafka(settings, topology, None)
    testbed = Testbed.up(
        topology, name=f"run-{run_id[-6:]}", overlay=overlay, defects=defects, ephemeral=True, progress=progress
    )
    stack.callback(testbed.down)
    return testbed


def run_on(
    testbed: Testbed,
    experiment: Experiment,
    settings: Mapping[str, Value],
    profile: str,
    run_id: str,
    store: Store,
    progress: Progress,
    *,
    recorder: Recorder | None = None,
) -> Judgement:
    """Run an experiment on a ready testbed, judge it and commit it; return the judgement. The testbed keeps its state.

    An experiment that ends early leaves an inconclusive run with its samples so far, and so does a run that cannot be
    judged; the manifest says why. A caller's `recorder` also has the samples of a run that is never committed. Raise
    `UsageError` for an experiment that refuses its settings, and `TestbedError` when containers have ended or were
    restarted: then no sample describes Kafka.
    """
    recorder = recorder or Recorder()
    started = datetime.now(UTC)
    clocks, places = clock_readings(testbed, "before"), testbed.places()
    with NetworkReadings(testbed) as readings:
        recorder.poll("shaping", LOOK_S, readings.look)
        try:
            outcome, failure = _outcome(experiment, Context(testbed, settings, recorder, progress, run_id))
            _require_whole(testbed, places)
            defects = defect_records(testbed)
        finally:
            recorder.stop()
        network = readings.record()
    clocks += clock_readings(testbed, "after")
    header = Header(run_id, experiment.name, profile, started, datetime.now(UTC), settings, tuple(experiment.criteria))
    samples = recorder.samples()
    tables = samples_table(samples), events_table(recorder.events())
    unjudged = manifest(header, testbed, outcome, samples, network, defects, failure, clocks)
    try:
        unjudged, judgement = _judged(testbed, unjudged, tables, recorder, progress)
    except Exception as error:  # noqa: BLE001 - the run keeps what was seen, and says that it is not judged
        what, why = "the run could not be judged", in_one_line(error)
        _note(recorder, progress, what, why)
        tables = tables[0], events_table(recorder.events())
        failure = f"{OWN_ERROR}{what}: {why}"
        unjudged = replace(unjudged, move=None, steps=None, relocation=None, incident=None, failure=failure)
        judgement = judge(unjudged, *tables)
    data = RunData(replace(unjudged, verdict=judgement.verdict), *tables, list(judgement.criteria))
    commit(store, data)
    progress(f"committed {run_id} to {store.location}")
    return judgement


def _require_whole(testbed: Testbed, places: Mapping[str, Place]) -> None:
    """Raise `NotWhole` when containers have ended or were restarted: then no sample describes Kafka.

    Wait for an engine that is being restarted: containers may outlive it.
    """
    if not testbed.state.machines:
        testbed.engine.wait_answering()
    if why := why_not_whole(testbed.engine, testbed.state) or restarted(places, testbed.places()):
        raise NotWhole(testbed.state, why)


def _judged(
    testbed: Testbed, unjudged: Manifest, tables: tuple[Any, Any], recorder: Recorder, progress: Progress
) -> tuple[Manifest, Judgement]:
    """Judge a run by its tables of samples and events; return its manifest, with what was read for it, and the result.

    Before a failure of Kafka counts, its NICs are measured once more, and what other clients asked of it is read.
    """
    judgement = judge(unjudged, *tables)
    if rates_failed(judgement):
        # Before Kafka is blamed for a rate, its NICs must carry theirs.
        progress("a criterion about rates failed: measuring the NICs once more")
        try:
            network = replace(unjudged.network or NetworkRecord(()), nics_after=measure_again(testbed))
            unjudged = replace(unjudged, network=network)
            judgement = judge(unjudged, *tables)
        except TestbedError as error:
            progress(f"the NICs were not measured once more: {error}")
    if judgement.verdict == "fail" and (unjudged.move is not None or unjudged.relocation is not None):
        # Nor is it blamed for what another client asked of it.
        unjudged = replace(unjudged, cluster=_changes(testbed, unjudged, recorder, progress))
        judgement = judge(unjudged, *tables) if unjudged.cluster else judgement
    return unjudged, judgement


def _changes(testbed: Testbed, unjudged: Manifest, recorder: Recorder, progress: Progress) -> tuple[ClusterChange, ...]:
    """Return what other clients changed; nothing where that cannot be read, whatever the reason."""
    try:
        return read_changes(testbed, unjudged, recorder.events(), recorder.samples())
    except Exception as error:  # noqa: BLE001 - the run has been measured and judged: it is not lost for this
        progress(f"what other clients changed is not known: {in_one_line(error)}")
        return ()


def _outcome(experiment: Experiment, context: Context) -> tuple[ExperimentResult, str]:
    """Run the experiment; return its result, and why it ended early, in one line: empty if it did not."""
    state = context.testbed.state
    try:
        with explained(context.testbed.engine, state), guarded(lambda: context.testbed.state), _ends_recorded(context):
            return experiment.run(context), ""
    except (UsageError, NotWhole):
        raise
    except Exception as error:  # noqa: BLE001 - the run keeps what was seen so far, and says that it is not whole
        # A broker raises neither an error of another class, nor one of the engine or of software that cannot be had.
        own = isinstance(error, (SoftwareError, EngineGone)) or not isinstance(error, TestbedError)
        why = f"{OWN_ERROR if own else ''}{in_one_line(error)}{_store_refusal(context.testbed)}"
        _note(context.recorder, context.progress, "the experiment ended early", why)
        return ExperimentResult(), why


def _store_refusal(testbed: Testbed) -> str:
    """Return that the object store takes no object, and why, for the end of a reason; empty where it takes one."""
    try:
        refused = testbed.objectstore.refusal() if testbed.topology.objectstores else ""
    except TestbedError as error:
        refused = str(error)
    return f"; the object store refuses a write: {refused}" if refused else ""


def _note(recorder: Recorder, progress: Progress, what: str, why: str) -> None:
    """Record what the error that is being handled ended, with its traceback, and say it in one line."""
    recorder.event("note", what, {"why": why, "trace": traceback.format_exc()})
    progress(f"{what}: {why}")


@contextmanager
def _ends_recorded(context: Context) -> Iterator[None]:
    """Record each end of a Kafka process by the run itself within the block, whatever code of the run asks for it."""
    record = context.recorder.event
    context.testbed.ending = lambda host, signal: record(ENDING, f"SIG{signal}", host=host)
    try:
        yield
    finally:
        context.testbed.ending = note_nothing


def in_one_line(error: Exception) -> str:
    """Return an error in one line: the message of the testbed's own errors, else also its type and its place."""
    text = " ".join(str(error).split())
    if isinstance(error, TestbedError):
        return text
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" ({Path(frame.filename).name}:{frame.lineno})" for frame in place)
    return f"{type(error).__name__}: {text}{where}"


def confirm(spark: "SparkSession", store: Store, run_ids: Sequence[str]) -> dict[str, Judgement]:
    """Return Spark's judgements from the store alone. Raise `TestbedError` when one differs from the recorded one.

    Another version of the testbed, which began a campaign, may have judged by other criteria: its runs may differ.
    """
    again, here = recompute(spark, store, run_ids), this_testbed()
    for run_id in run_ids:
        if run_id not in again.judgements:
            raise TestbedError(f"run {run_id} could not be judged from the store: {'; '.join(again.problems)}")
        before = [(c.name, c.host, c.direction, c.verdict) for c in store.criteria(run_id)]
        after = [(c.name, c.host, c.direction, c.verdict) for c in again.judgements[run_id].criteria]
        if before != after and recorded_by(store.manifest(run_id)) == here:
            gone, new = ([each for each in a if each not in b] for a, b in ((before, after), (after, before)))
            raise TestbedError(
                f"run {run_id}: Spark's findings differ from the recorded ones: only the recorded ones have {gone}, "
                f"only Spark's have {new}"
            )
    return again.judgements
