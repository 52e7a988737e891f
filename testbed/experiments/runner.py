"""Running one experiment: bring up, run, judge, commit, judge again in Spark from what was committed, report."""

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from results.criteria import Judgement, judge
from results.manifest import new_run_id
from results.schema import Criterion, Verdict, events_table, samples_table
from results.spark.recompute import recompute
from results.spark.session import session
from results.store import RunData, Store
from testbed.errors import TestbedError, UsageError
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
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed
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
            data, judgement = _measure(testbed, experiment, request, settings, run_id, spark, progress)
            store.commit(data)
            progress(f"committed {run_id} to {store.location}")
        # The testbed is gone (or left as it was): from here on only the store is looked at.
        recomputed = _recompute(spark.session(), store, run_id, judgement)
        progress("judged again from the store, in Spark: the same verdict")
        report = write_report(store, store.manifest(run_id), recomputed)
    return Finished(
        run_id,
        experiment.name,
        recomputed.verdict,
        recomputed.criteria,
        figures(data.manifest, recomputed.measures),
        report,
        store.location,
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
        experiment.check(testbed.topology)
        testbed.reconfigure(overlay, progress=progress)
        return testbed
    topology = find(request.topology or experiment.topology)
    if request.kafka:
        topology = topology.with_kafka_version(request.kafka)
    experiment.check(topology)
    testbed = Testbed.up(topology, name=f"run-{run_id[-6:]}", overlay=overlay, ephemeral=True, progress=progress)
    stack.callback(testbed.down)
    return testbed


def _measure(
    testbed: Testbed,
    experiment: Experiment,
    request: Request,
    settings: dict[str, Value],
    run_id: str,
    spark: "SparkAhead",
    progress: Progress,
) -> tuple[RunData, Judgement]:
    recorder = Recorder()
    started = datetime.now(UTC)
    try:
        outcome: Outcome = experiment.run(Context(testbed, settings, recorder, progress, run_id, measured=spark.start))
    finally:
        recorder.stop()
    header = Header(run_id, experiment.name, request.profile, started, datetime.now(UTC), settings)
    samples = recorder.samples()
    tables = samples_table(samples), events_table(recorder.events())
    unjudged = manifest(header, testbed, outcome, samples)
    judgement = judge(unjudged, *tables)
    judged = replace(unjudged, verdict=judgement.verdict)
    return RunData(judged, *tables, list(judgement.criteria)), judgement


def _recompute(spark: SparkSession, store: Store, run_id: str, recorded: Judgement) -> Judgement:
    """The judgement from the store. Raises `TestbedError` when it is not the one that was recorded."""
    again = recompute(spark, store, [run_id])
    if run_id not in again.judgements:
        raise TestbedError(f"run {run_id} could not be judged from the store: {'; '.join(again.problems)}")
    found = again.judgements[run_id]
    before = [(c.name, c.host, c.direction, c.verdict) for c in recorded.criteria]
    after = [(c.name, c.host, c.direction, c.verdict) for c in found.criteria]
    if before != after:
        differing = [f"{was} became {now}" for was, now in zip(before, after, strict=False) if was != now]
        raise TestbedError(f"run {run_id}: Spark judges otherwise than the recorder did: {'; '.join(differing)}")
    return found


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
