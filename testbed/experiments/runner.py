"""Running one experiment: bring up, run, judge, commit, judge again in Spark from what was committed, report."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from results.contract.manifest import new_run_id
from results.contract.schema import Criterion, Verdict, events_table, samples_table
from results.contract.store import RunData, Store
from results.criteria import Judgement, judge
from results.criteria.left_out import LeftOut, left_out
from results.spark.recompute import recompute
from results.spark.session import session
from testbed.errors import TestbedError, UsageError
from testbed.experiments.commits import commit
from testbed.experiments.experiment import (
    PROFILES,
    Context,
    Experiment,
    Outcome,
    Value,
    find_experiment,
    read_settings,
)
from testbed.experiments.figures import Figure, figures
from testbed.experiments.record import Header, manifest
from testbed.experiments.reports import default_store, write_report
from testbed.faults.leftovers import heal_leftovers
from testbed.probes.recorder import Recorder
from testbed.provision.ended import NotWhole, explained, why_not_whole
from testbed.provision.guard import guarded
from testbed.provision.testbed import Testbed
from testbed.software.source import parse_source
from testbed.topology.find import find

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody wants run. `on` names a testbed that is up; otherwise one is made, and removed afterwards."""

    experiment: str
    settings: Sequence[str] = ()
    profile: str = "ci"
    on: str | None = None
    topology: str | None = None
    kafka: str | None = None
    store: str | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that is in the store, judged."""

    run_id: str
    experiment: str
    verdict: Verdict
    criteria: tuple[Criterion, ...]
    figures: tuple[Figure, ...]
    report: Path
    store: str
    left_out: tuple[LeftOut, ...] = ()


def run(request: Request, progress: Progress) -> Finished:
    """Run one experiment to its verdict. Raises `UsageError` before anything is made, `TestbedError` afterwards."""
    experiment = find_experiment(request.experiment)
    if request.profile not in PROFILES:
        raise UsageError(f"profile {request.profile!r}: there are {', '.join(PROFILES)}")
    if request.on and (request.topology or request.kafka):
        raise UsageError("--on names a testbed that is up; --topology and --kafka are for making one")
    settings = read_settings(experiment, request.profile, request.settings)
    store = Store.open(request.store or default_store())
    run_id = new_run_id(experiment.name, datetime.now(UTC), secrets.token_hex(3))
    with SparkAhead() as spark:
        with ExitStack() as stack:
            testbed = _testbed(request, experiment, settings, run_id, stack, progress)
            run_on(testbed, experiment, settings, request.profile, run_id, store, progress, measured=spark.start)
        # The testbed is gone (or left as it was): from here on only the store is looked at.
        recomputed = confirm(spark.session(), store, [run_id])[run_id]
        progress("judged again from the store, in Spark: the same verdict")
        run_manifest = store.manifest(run_id)
        report = write_report(store, run_manifest, recomputed)
    return Finished(
        run_id,
        experiment.name,
        recomputed.verdict,
        recomputed.criteria,
        figures(run_manifest, recomputed.measures),
        report,
        store.location,
        left_out(run_manifest),
    )


def _testbed(
    request: Request,
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
        experiment.fits(testbed.topology, settings)
        heal_leftovers(testbed, progress)
        testbed.reconfigure(overlay, progress=progress)
        return testbed
    topology = find(request.topology or experiment.topology)
    if request.kafka:
        topology = topology.with_kafka_version(str(parse_source(request.kafka)))
    experiment.fits(topology, settings)
    testbed = Testbed.up(topology, name=f"run-{run_id[-6:]}", overlay=overlay, ephemeral=True, progress=progress)
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
    measured: Callable[[], None] = lambda: None,
    recorder: Recorder | None = None,
) -> Judgement:
    """Run an experiment on a testbed that is ready for it, judge it and commit it; the testbed is left as it is then.

    `measured` is called when what would have been load may begin. Who gives a `recorder` has what was seen also of
    a run that is never committed. Raises `TestbedError` when there is no run.
    """
    recorder = recorder or Recorder()
    started = datetime.now(UTC)
    try:
        with explained(testbed.engine, testbed.state), guarded(testbed.state):
            outcome: Outcome = experiment.run(Context(testbed, settings, recorder, progress, run_id, measured))
        if why := why_not_whole(testbed.engine, testbed.state):
            raise NotWhole(testbed.state, why)  # nothing that was seen is about Kafka then
    finally:
        recorder.stop()
    header = Header(run_id, experiment.name, profile, started, datetime.now(UTC), settings)
    samples = recorder.samples()
    tables = samples_table(samples), events_table(recorder.events())
    unjudged = manifest(header, testbed, outcome, samples)
    judgement = judge(unjudged, *tables)
    data = RunData(replace(unjudged, verdict=judgement.verdict), *tables, list(judgement.criteria))
    commit(store, data)
    progress(f"committed {run_id} to {store.location}")
    return judgement


def confirm(spark: SparkSession, store: Store, run_ids: Sequence[str]) -> dict[str, Judgement]:
    """The judgements from the store alone. Raises `TestbedError` when one is not what was recorded with its run."""
    again = recompute(spark, store, run_ids)
    for run_id in run_ids:
        if run_id not in again.judgements:
            raise TestbedError(f"run {run_id} could not be judged from the store: {'; '.join(again.problems)}")
        before = [(c.name, c.host, c.direction, c.verdict) for c in store.criteria(run_id)]
        after = [(c.name, c.host, c.direction, c.verdict) for c in again.judgements[run_id].criteria]
        if before != after:
            gone, new = ([each for each in a if each not in b] for a, b in ((before, after), (after, before)))
            raise TestbedError(
                f"run {run_id}: Spark judges otherwise than the recorder did: the recorder alone has {gone}, "
                f"Spark alone {new}"
            )
    return again.judgements


class SparkAhead(AbstractContextManager["SparkAhead"]):
    """A Spark session that begins to start when the measuring is over, beside what is left to do.

    Never earlier: a starting JVM would be load on the very cores that are being measured.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._starting: Future[SparkSession] | None = None
        self._stack = ExitStack()

    def start(self) -> None:
        """Begin to start."""
        if self._starting is None:
            self._starting = self._pool.submit(lambda: self._stack.enter_context(session()))

    def session(self) -> SparkSession:
        """The session, as soon as it is there."""
        self.start()
        assert self._starting is not None
        return self._starting.result()

    def __exit__(self, *_error: object) -> None:
        self._pool.shutdown(wait=True)
        self._stack.close()
