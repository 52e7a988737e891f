"""A suite in one command: ducktape runs its cases, Spark confirms their runs in one session, one page tells."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException

from results.contract.store import Store, StoreError
from results.criteria import Judgement, judge
from results.report.suite import SuiteCase, SuitePage, render_suite
from results.spark.session import session as spark_session
from testbed.errors import TestbedError, UsageError
from testbed.experiments.reports import default_store, write_report
from testbed.experiments.runner import confirm
from testbed.paths import data_dir
from testbed.software.source import parse_source
from testbed.suites import session as sessions
from testbed.suites.junit import junit
from testbed.suites.outcome import CaseOutcome, Ending, gather, worst
from testbed.suites.session import Session
from testbed.suites.suite import Case, Suite, find_suite

Progress = Callable[[str], None]
MOST_TOLD = 1000
"""Characters of an error that are shown."""


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody wants run; `out` is a folder that is made, and must be empty if it is there."""

    suite: str
    profile: str = "ci"
    only: Sequence[str] = ()
    kafka: str | None = None
    store: str | None = None
    out: str | None = None
    again: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """A suite that was run. `problems` are of the suite as a whole, such as a run that Spark judges otherwise."""

    suite: str
    profile: str
    outcomes: tuple[CaseOutcome, ...]
    problems: tuple[str, ...]
    seconds: float
    report: Path
    junit: Path
    store: str

    @property
    def ending(self) -> Ending:
        """The worst of its cases; a problem of the whole is as bad as a case that was not done."""
        return "not done" if self.problems else worst([outcome.ending for outcome in self.outcomes])


def run_suite(request: Request, progress: Progress) -> Finished:
    """Run a suite to its report. Raises `UsageError` before anything is made, `TestbedError` without a report."""
    begun = datetime.now(UTC)
    prepared = _prepare(request, begun)
    progress(
        f"suite {request.suite}, {request.profile}: {len(prepared.cases)} cases; everything is in {prepared.folder}"
    )
    sessions.run(prepared, progress)
    outcomes = outcomes_of(prepared.cases, request, prepared.folder)
    store = Store.open(prepared.store)
    judged = _Judged()
    _confirm(store, outcomes, judged, progress)
    ended = datetime.now(UTC)
    finished = Finished(
        request.suite,
        request.profile,
        outcomes,
        tuple(judged.problems),
        (ended - begun).total_seconds(),
        prepared.folder / "index.html",
        prepared.folder / "junit.xml",
        store.location,
    )
    _write(finished, prepared, store, judged, begun)
    return finished


def _prepare(request: Request, now: datetime) -> Session:
    """Everything looked up and checked; makes only the folder. Raises `UsageError`."""
    suite: Suite = find_suite(request.suite)
    if request.again < 0:
        raise UsageError(f"--again {request.again}: 0 or more are allowed")
    cases = suite.cases(request.profile, request.only)
    if request.kafka:
        parse_source(request.kafka)
    for case in cases:
        case.resolve(request.profile, request.kafka)
    try:
        store = Store.open(request.store or default_store()).location
    except StoreError as error:
        raise UsageError(str(error)) from error
    name = f"{now:%Y%m%dT%H%M%SZ}-{suite.name}-{request.profile}-{secrets.token_hex(3)}"
    folder = Path(request.out) if request.out else data_dir() / "suites" / name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"--out {folder}: there is something already; name a folder that is new or empty")
    folder.mkdir(parents=True, exist_ok=True)
    kafka = str(Path(request.kafka).absolute()) if request.kafka and Path(request.kafka).exists() else request.kafka
    return Session(suite, request.profile, cases, kafka, store, folder.absolute(), request.again)


def outcomes_of(cases: Sequence[Case], request: Request, folder: Path) -> tuple[CaseOutcome, ...]:
    """What became of each case, in the suite's order: as its test left it, held against what ducktape reports."""
    left, reported = gather(folder / "ducktape"), sessions.statuses(folder)
    found = []
    for case in cases:
        passed, summary = reported.get(case.name, (False, "ducktape has not run it: see ducktape.log"))
        outcome = left.get(case.name)
        if outcome is None:
            resolved = case.resolve(request.profile, request.kafka)
            names = case.name, resolved.experiment.name, resolved.topology.name
            outcome = CaseOutcome(*names, None, None, summary or "its test left nothing", 0.0)
        elif outcome.verdict == "pass" and not passed:
            outcome = replace(outcome, verdict=None, why=f"its run passed, and its test did not: {summary}")
        found.append(outcome)
    return tuple(found)


@dataclass(slots=True)
class _Judged:
    """The runs' judgements, and what is wrong with them."""

    runs: dict[str, Judgement] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    confirmed: bool = False


def _confirm(store: Store, outcomes: Sequence[CaseOutcome], judged: _Judged, progress: Progress) -> None:
    """Have Spark judge all runs again, from the store. A judgement that differs is a problem of the suite."""
    ids = [outcome.run_id for outcome in outcomes if outcome.run_id]
    if not ids:
        return
    try:
        with spark_session() as spark:
            judged.runs = confirm(spark, store, ids)
        judged.confirmed = True
        progress(f"{len(ids)} runs judged again from the store, in one Spark session: the same verdicts")
    except (TestbedError, PySparkException, Py4JError, OSError) as error:
        # What the cases came to is told all the same.
        judged.problems.append(f"the runs were not judged again: {str(error)[:MOST_TOLD]}")
        progress(f"not confirmed: {str(error)[:MOST_TOLD]}")


def _write(finished: Finished, prepared: Session, store: Store, judged: _Judged, begun: datetime) -> None:
    rows = []
    for outcome in finished.outcomes:
        run = judgement = link = None
        if outcome.run_id:
            run = store.manifest(outcome.run_id)
            judgement = judged.runs.get(outcome.run_id) or judge(
                run, store.samples(outcome.run_id), store.events(outcome.run_id)
            )
            link = f"runs/{outcome.run_id}.html"
            (prepared.folder / "runs").mkdir(exist_ok=True)
            report = write_report(store, run, judgement)
            (prepared.folder / link).write_bytes(report.read_bytes())
        evidence = Path(outcome.evidence).relative_to(prepared.folder) if outcome.evidence else None
        rows.append(
            SuiteCase(
                outcome.case,
                outcome.experiment,
                outcome.topology,
                outcome.ending,
                outcome.why,
                outcome.seconds,
                run,
                judgement,
                link,
                str(evidence) if evidence else None,
                outcome.disturbed,
            )
        )
    page = SuitePage(
        finished.suite,
        prepared.suite.summary,
        finished.profile,
        begun.isoformat(timespec="seconds"),
        finished.seconds,
        finished.ending,
        tuple(rows),
        finished.problems,
        judged.confirmed,
    )
    finished.report.write_text(render_suite(page), encoding="utf-8")
    finished.junit.write_text(
        junit(finished.suite, finished.profile, finished.outcomes, finished.problems), encoding="utf-8"
    )
