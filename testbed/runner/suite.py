"""A suite in one command: ducktape runs its cases, Spark confirms them in one session, one page shows them."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from results.contract.store import Store
from results.contract.texts import plural
from results.criteria import Judgement, judge
from results.render import JUnitCase, junit
from results.report.suite import SuiteCase, SuitePage, render_suite
from testbed.errors import TestbedError, UsageError
from testbed.experiments.experiment_run import Progress, confirm
from testbed.experiments.reports import open_store_for_runs, write_report
from testbed.experiments.spark import MOST_SHOWN, spark_session
from testbed.extras import require_extra
from testbed.paths import data_dir
from testbed.runner import ducktape as sessions
from testbed.runner.campaign import lasting_kafka
from testbed.runner.case import CaseOutcome, Ending, gather, worst
from testbed.runner.ducktape import DucktapeSession
from testbed.runner.variant import of_case, resolve
from testbed.suites.suite import Case, Suite, find_suite


def suite_junit(suite: str, profile: str, outcomes: Sequence[CaseOutcome], problems: Sequence[str] = ()) -> str:
    """Return the JUnit document. `problems` concern the suite as a whole, and fail it."""
    return junit(f"{suite}.{profile}", [_junit_case(suite, each) for each in outcomes], problems, "suite")


def _junit_case(suite: str, outcome: CaseOutcome) -> JUnitCase:
    first = outcome.why.splitlines()[0] if outcome.why else outcome.ending
    output = [f"run again, as only the machine disturbed {run}" for run in outcome.disturbed]
    output += [f"run {outcome.run_id}"] if outcome.run_id else []
    output += [f"evidence {outcome.evidence}"] if outcome.evidence else []
    return JUnitCase(
        outcome.case,
        f"{suite}.{outcome.experiment}",
        "pass" if outcome.ending == "pass" else "failure" if outcome.ending == "fail" else "error",
        outcome.ending,
        f"{outcome.ending}: {first}",
        outcome.why,
        "\n".join(output),
        outcome.seconds,
    )


@dataclass(frozen=True, slots=True)
class SuiteRequest:
    """The user's request for a suite. `out` is a folder that is created, and must be empty if it exists."""

    suite: str
    profile: str = "ci"
    only: Sequence[str] = ()
    kafka: str | None = None
    store: str | None = None
    out: str | None = None
    again: int = 0


INTERRUPTED = "the suite was interrupted"


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """A finished suite. `problems` concern the suite as a whole, such as a run that Spark judges differently."""

    suite: str
    profile: str
    outcomes: tuple[CaseOutcome, ...]
    problems: tuple[str, ...]
    seconds: float
    report: Path
    junit: Path
    store: str
    not_run: Mapping[str, str] = field(default_factory=dict)
    """Case → why it was not run: its software was not supplied."""

    @property
    def ending(self) -> Ending:
        """Return the worst ending of the cases. A problem of the whole suite counts as `not done`."""
        return "not done" if self.problems else worst([outcome.ending for outcome in self.outcomes])


def run_suite(request: SuiteRequest, progress: Progress) -> SuiteResult:
    """Run a suite, write its report and return the result.

    After Ctrl-C the report has the scenarios that are done; then raise `KeyboardInterrupt`. Raise `UsageError` before
    the first run, and `TestbedError` without a report.
    """
    begun, began_s = datetime.now(UTC), time.monotonic()
    prepared = _prepare(request, begun)
    progress(
        f"suite {request.suite}, {request.profile}: {plural(len(prepared.cases), 'scenario')}; "
        f"everything is in {prepared.folder}"
    )
    interrupted: KeyboardInterrupt | None = None
    try:
        sessions.run(prepared, progress)
    except KeyboardInterrupt as error:
        interrupted = error
        progress("writing the report of the scenarios that are done; Ctrl-C leaves it out")
    outcomes = outcomes_of(prepared.cases, request, prepared.folder, interrupted=interrupted is not None)
    store = Store.open(prepared.store)
    judged = _confirm(store, outcomes, progress) if interrupted is None else _Judged(problems=(INTERRUPTED,))
    took_s = time.monotonic() - began_s
    finished = SuiteResult(
        request.suite,
        request.profile,
        outcomes,
        judged.problems,
        took_s,
        prepared.folder / "index.html",
        prepared.folder / "junit.xml",
        store.location,
        prepared.suite.not_run(request.profile, request.only),
    )
    _write(finished, prepared, store, judged, begun)
    if interrupted is not None:
        progress(f"report {finished.report}")
        raise interrupted
    return finished


def _prepare(request: SuiteRequest, now: datetime) -> DucktapeSession:
    """Check the request, create the folder and return ducktape's session.

    Raise `UsageError` for a wrong request, and `TestbedError` when ducktape or Spark is not installed.
    """
    suite: Suite = find_suite(request.suite)
    if request.again < 0:
        raise UsageError(f"--retry-noisy {request.again}: 0 or more are allowed")
    cases = suite.cases(request.profile, request.only)
    kafka = lasting_kafka(request.kafka)
    for case in cases:
        resolve(of_case(case, request.profile, kafka))
    store = open_store_for_runs(request.store).location
    name = f"{now:%Y%m%dT%H%M%SZ}-{suite.name}-{request.profile}-{secrets.token_hex(3)}"
    folder = Path(request.out) if request.out else data_dir() / "suites" / name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"--out {folder}: there is something already; name a folder that is new or empty")
    for package in ("ducktape", "pyspark"):
        require_extra(package)
    folder.mkdir(parents=True, exist_ok=True)
    return DucktapeSession(suite, request.profile, cases, kafka, store, folder.absolute(), request.again)


def outcomes_of(
    cases: Sequence[Case], request: SuiteRequest, folder: Path, *, interrupted: bool = False
) -> tuple[CaseOutcome, ...]:
    """Return each case's outcome, from its file and ducktape's report; an `interrupted` ducktape writes no report."""
    left, reported = gather(folder / "ducktape"), {} if interrupted else sessions.statuses(folder)
    without = (True, INTERRUPTED) if interrupted else (False, "ducktape has not run it: see ducktape.log")
    found = []
    for case in cases:
        passed, summary = reported.get(case.name, without)
        outcome = left.get(case.name)
        if outcome is None:
            resolved = resolve(of_case(case, request.profile))  # a build's path may be gone when the suite has ended
            names = case.name, resolved.experiment.name, resolved.topology.name
            outcome = CaseOutcome(*names, None, None, summary or "its test left nothing", 0.0)
        elif outcome.verdict == "pass" and not passed:
            outcome = replace(outcome, verdict=None, why=f"its run passed, and its test did not: {summary}")
        found.append(outcome)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Judged:
    """Spark's judgements of the runs; without them, the problem."""

    runs: Mapping[str, Judgement] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def _confirm(store: Store, outcomes: Sequence[CaseOutcome], progress: Progress) -> _Judged:
    """Have Spark judge all runs again, from the store. A judgement that differs is a problem of the suite."""
    ids = [outcome.run_id for outcome in outcomes if outcome.run_id]
    if not ids:
        return _Judged()
    try:
        with spark_session() as spark:
            judged = _Judged(confirm(spark, store, ids))
    except TestbedError as error:
        # The outcomes of the cases are reported nevertheless.
        progress(f"not confirmed: {str(error)[:MOST_SHOWN]}")
        return _Judged(problems=(f"the runs were not judged again: {str(error)[:MOST_SHOWN]}",))
    progress(f"{plural(len(ids), 'run')} judged again from the store, in one Spark session: the same verdicts")
    return judged


def _write(finished: SuiteResult, prepared: DucktapeSession, store: Store, judged: _Judged, begun: datetime) -> None:
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
        bool(judged.runs),
        tuple(finished.not_run.items()),
    )
    finished.report.write_text(render_suite(page), encoding="utf-8")
    finished.junit.write_text(
        suite_junit(finished.suite, finished.profile, finished.outcomes, finished.problems), encoding="utf-8"
    )
