"""`testbed kafkatest`: a checkout's own system tests on shaped NICs, from the collection to the runs in the store."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from testbed.errors import TestbedError, UsageError
from testbed.experiments.reports import open_store_for_runs
from testbed.kafkatest.checkout import KafkaCheckout, read_checkout
from testbed.kafkatest.environment import TestEnvironment, environment
from testbed.kafkatest.hosts import kafkatest_cluster, make_hosts, names_file, remove_hosts, topology_of
from testbed.kafkatest.layout import KafkaHome, build_under_test, earlier_releases, jar_names, source_of
from testbed.kafkatest.record import record
from testbed.kafkatest.selection import PARAMETERS, SystemTest, collected, hosts_needed, obstacle
from testbed.kafkatest.session import HOSTS_FILE, TestReport, TestSession, require_names
from testbed.paths import data_dir
from testbed.probes.machine import machine_probe
from testbed.probes.recorder import INTERVAL_S, Recorder
from testbed.provision.machine import no_netem
from testbed.topology.links import rate_problem
from testbed.units import UnitError, parse_bit_rate

Progress = Callable[[str], None]
CANNOT_RUN = 2
"""The exit code when nothing failed, and a test cannot run here."""


class NoRunnableTestError(TestbedError):
    """Every test that was asked for needs something that this machine or this build lacks."""

    exit_code = CANNOT_RUN


@dataclass(frozen=True, slots=True)
class KafkatestRequest:
    """The user's request. `out` is a folder that is created, and must be empty if it exists."""

    checkout: str
    tests: Sequence[str] = ()
    kafka: str | None = None
    hosts: int | None = None
    nic: str = "1gbit"
    out: str | None = None
    store: str | None = None
    keep: bool = False
    name: str | None = None
    python: str | None = None
    jvm: str = "light"
    """The flags of every JVM of Kafka's: a name of `JVMS`."""
    exclude: Sequence[str] = ()
    """Tests that are left out, named as `tests`."""
    options: Sequence[str] = ()
    """More of ducktape's own arguments, for the collection and the session alike."""


@dataclass(frozen=True, slots=True)
class PlannedTests:
    """What will be run, known before anything is made: `obstacles` is test id → why that test cannot run here."""

    checkout: KafkaCheckout
    python: TestEnvironment
    tests: tuple[SystemTest, ...]
    obstacles: Mapping[str, str]
    homes: tuple[KafkaHome, ...]
    hosts: int
    symbols: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def runnable(self) -> tuple[SystemTest, ...]:
        """Return the tests against which nothing is known."""
        return tuple(test for test in self.tests if test.id not in self.obstacles)


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """One test: its report, or why there is none, and its run in the store."""

    __test__ = False

    test: SystemTest
    status: str
    """`pass`, `fail`, `not run` (it cannot run here) or `not done` (the session ended before it)."""
    why: str
    seconds: float = 0.0
    run_id: str | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class KafkatestResult:
    """A finished session."""

    plan: PlannedTests
    outcomes: tuple[TestOutcome, ...]
    folder: Path
    store: str
    kept: str | None

    @property
    def exit_code(self) -> int:
        """Return 1 when a test failed or was not done, 2 when one cannot run here, else 0."""
        found = {outcome.status for outcome in self.outcomes}
        return 1 if found & {"fail", "not done"} else CANNOT_RUN if "not run" in found else 0


def planned(request: KafkatestRequest, progress: Progress) -> PlannedTests:
    """Return what the request comes to. Raise `UsageError` or `SoftwareError`; nothing is made but caches."""
    _rate(request.nic)
    if request.hosts is not None and request.hosts < 1:
        raise UsageError(f"--host-count {request.hosts}: 1 or more are allowed")
    checkout = read_checkout(request.checkout)
    source = source_of(checkout, request.kafka)
    here = Path.cwd()
    symbols = tuple(checkout.find_tests(wanted, here) for wanted in request.tests or ["tests/kafkatest/tests"])
    excluded = [checkout.find_tests(unwanted, here) for unwanted in request.exclude]
    python = environment(checkout.pins, request.python, progress)
    options = (*request.options, *(["--exclude", *excluded] if excluded else []))
    tests = collected(checkout, python, [*symbols, *options])
    progress(f"{len(tests)} tests of {checkout.version}; {python.python}; Kafka {source}")
    dev = build_under_test(checkout, source)
    releases = sorted({release for test in tests for release in test.releases})
    homes, missing = earlier_releases(checkout, releases, progress)
    jars = jar_names(dev)
    sources = {file: file.read_text(encoding="utf-8", errors="replace") for file in {test.file for test in tests}}
    obstacles = {test.id: why for test in tests if (why := obstacle(test, sources[test.file], jars, no_netem, missing))}
    hosts = hosts_needed([test for test in tests if test.id not in obstacles] or tests, request.hosts)
    return PlannedTests(checkout, python, tests, obstacles, (dev, *homes), hosts, symbols, options)


def run_kafkatest(request: KafkatestRequest, progress: Progress) -> KafkatestResult:
    """Run the tests, record each in the store, and return the result; the hosts are removed unless `keep`.

    Raise `UsageError`, `SoftwareError` and `NoRunnableTestError` before anything is made, `TestbedError` when the
    hosts failed.
    """
    store, folder = open_store_for_runs(request.store), _folder(request.out)
    plan = planned(request, progress)
    for test in plan.tests:
        if why := plan.obstacles.get(test.id):
            progress(f"will not run {test.name} {dict(test.arguments)}: {why}")
    if not plan.runnable:
        raise NoRunnableTestError(f"none of these tests can run here: {next(iter(plan.obstacles.values()))}")
    require_names()
    folder.mkdir(parents=True, exist_ok=True)
    name = request.name or f"kafkatest-{secrets.token_hex(3)}"
    topology = topology_of(plan.hosts, _rate(request.nic))
    testbed = make_hosts(name, topology, plan.homes, request.jvm, not request.keep, progress)
    session = TestSession(plan.checkout, plan.python, folder, plan.options)
    recorder = Recorder()
    try:
        recorder.poll("machine", INTERVAL_S, machine_probe())
        interrupted = True
        try:
            names = names_file(testbed, HOSTS_FILE.read_text(encoding="utf-8", errors="replace"))
            session.run(symbols_of(plan), kafkatest_cluster(testbed), names, progress)
            interrupted = False
        finally:
            recorder.stop()
            # Also of an interrupted session: what was done is recorded.
            reports = session.reports(plan.runnable, interrupted=interrupted)
            settings = {"nic": request.nic, "jvm": request.jvm}
            version = plan.homes[0].version
            runs = {each.folder: record(each, testbed, recorder, store, version, settings).run_id for each in reports}
    finally:
        testbed.close()
        if not request.keep:
            remove_hosts(name)
    outcomes = outcomes_of(plan, reports, runs, session.last_lines())
    return KafkatestResult(plan, outcomes, folder, store.location, name if request.keep else None)


def outcomes_of(
    plan: PlannedTests, reports: Sequence[TestReport], runs: Mapping[str, str], last_lines: str
) -> tuple[TestOutcome, ...]:
    """Return the outcome of each test, in ducktape's order; a repeated test is there for each time.

    `runs` is folder of a report → id of its run. Pure.
    """
    reported = {test.id: iter([each for each in reports if each.test.id == test.id]) for test in plan.tests}
    found = []
    for test in plan.tests:
        if why := plan.obstacles.get(test.id):
            found.append(TestOutcome(test, "not run", why))
        elif (report := next(reported[test.id], None)) is None:
            found.append(TestOutcome(test, "not done", f"ducktape did not come to it; its last lines:\n{last_lines}"))
        else:
            passed = report.status == "PASS"
            why = "" if passed else report.summary.strip() or report.status
            found.append(
                TestOutcome(
                    test, "pass" if passed else "fail", why, report.seconds, runs.get(report.folder), report.folder
                )
            )
    return tuple(found)


def symbols_of(plan: PlannedTests) -> Sequence[str]:
    """Return ducktape's names of the tests that can run here. Pure.

    They are the user's own names where every test can run: not every ducktape knows a test by its arguments.
    """
    if not plan.obstacles:
        return plan.symbols
    given = PARAMETERS in plan.options
    return list(dict.fromkeys(test.method if given else test.symbol for test in plan.runnable))


def _rate(text: str) -> int:
    try:
        rate_bps = parse_bit_rate(text)
    except UnitError as error:
        raise UsageError(f"--nic {text}: {error}") from error
    if wrong := rate_problem(rate_bps, text):
        raise UsageError(f"--nic {wrong}")
    return rate_bps


def _folder(out: str | None) -> Path:
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    folder = Path(out) if out else data_dir() / "kafkatest" / name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"--out {folder}: there is something already; name a folder that is new or empty")
    return folder.absolute()
