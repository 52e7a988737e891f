"""One session of the checkout's ducktape: its command, its output, its end, and what it reports of each test."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError, reason
from testbed.kafkatest.checkout import KafkaCheckout
from testbed.kafkatest.environment import TestEnvironment
from testbed.kafkatest.selection import SystemTest, test_environment
from testbed.network.kernel import lacking_capabilities
from testbed.network.namespaces import run_program
from testbed.runner.ducktape_process import LOG, run_ducktape

HOSTS_FILE = Path("/etc/hosts")
NAMES_SHELL = f'mount --bind "$0" {HOSTS_FILE} && exec "$@"'


def with_names(names: Path) -> tuple[str, ...]:
    """Return the words that run a command with `names` as its /etc/hosts.

    The names are in a mount namespace of the command's own: no other process sees them, and they end with it. A user
    without root may make one in a user namespace.
    """
    user = ("--user", "--map-root-user") if lacking_capabilities() else ()
    return ("unshare", *user, "--mount", "--propagation", "private", "--", "sh", "-c", NAMES_SHELL, str(names))


def require_names() -> None:
    """Raise `TestbedError` when this user cannot give ducktape an /etc/hosts of its own."""
    try:
        run_program([*with_names(HOSTS_FILE), "true"])
    except TestbedError as error:
        raise TestbedError(
            f"ducktape cannot have the hosts' names: {error}. Run it as root, or allow user namespaces "
            "(Ubuntu: `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`)"
        ) from error


@dataclass(frozen=True, slots=True)
class TestReport:
    """What ducktape reports of one test: times are seconds since the epoch, `folder` has the services' logs."""

    __test__ = False

    test: SystemTest
    status: str
    """`PASS`, `FAIL`, `FLAKY` or `IGNORE`."""
    summary: str
    started: float
    ended: float
    folder: str

    @property
    def seconds(self) -> float:
        """Return how long the test took, with its set-up and its end."""
        return max(0.0, self.ended - self.started)

    @property
    def interrupted(self) -> bool:
        """Return whether Ctrl-C ended the test: ducktape reports that as a failure, by the exception's name."""
        return self.status == "FAIL" and self.summary.lstrip().startswith(KeyboardInterrupt.__name__)


@dataclass(frozen=True, slots=True)
class TestSession:
    """A session of ducktape: everything it writes is in `folder`; `options` are more of ducktape's own arguments."""

    __test__ = False

    checkout: KafkaCheckout
    python: TestEnvironment
    folder: Path
    options: Sequence[str] = ()

    @property
    def results(self) -> Path:
        """Return the folder of ducktape's results."""
        return self.folder / "ducktape"

    def command(self, symbols: Sequence[str], cluster: Path, names: Path) -> list[str]:
        """Return the command line: ducktape on its own `JsonCluster`, without the user's own settings of ducktape."""
        return [
            *with_names(names),
            *(str(self.python.program), "-m", "ducktape", *symbols),
            *("--cluster", "ducktape.cluster.json.JsonCluster", "--cluster-file", str(cluster)),
            *("--results-root", str(self.results), "--config-file", os.devnull, *self.options),
        ]

    def run(
        self, symbols: Sequence[str], cluster: Mapping[str, Any], names: str, progress: Callable[[str], None]
    ) -> None:
        """Run the tests of `symbols` to their end; the output goes into `ducktape.log`. Ctrl-C ends the session."""
        cluster_path, names_path = self.folder / "cluster.json", self.folder / "hosts"
        cluster_path.write_text(json.dumps(cluster, indent=1) + "\n", encoding="utf-8")
        names_path.write_text(names, encoding="utf-8")
        command = self.command(symbols, cluster_path, names_path)
        run_ducktape(command, self.folder, test_environment(self.checkout), progress_of, progress)

    def reports(self, tests: Sequence[SystemTest], *, interrupted: bool = False) -> tuple[TestReport, ...]:
        """Return what ducktape reports, in the order of `tests`; a repeated test has a report for each time.

        A test that ducktape did not come to is absent; so is, of an `interrupted` session, one that Ctrl-C ended.
        """
        known = {test.id: test for test in tests}
        found: dict[str, list[TestReport]] = {each: [] for each in known}
        # Each test's own report: an interrupted session has no report of all.
        sessions = [path for path in self.results.glob("*") if path.is_dir() and not path.is_symlink()]
        for path in sorted(report for session in sessions for report in session.rglob("report.json")):
            try:
                document = json.loads(path.read_text(encoding="utf-8"))
                if (test := known.get(document.get("test_id", ""))) is not None:
                    report = TestReport(
                        test,
                        str(document["test_status"]).upper(),
                        str(document["summary"] or ""),
                        float(document["start_time"]),
                        float(document["stop_time"]),
                        str(document["results_dir"]),
                    )
                    if not (interrupted and report.interrupted):
                        found[test.id].append(report)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise TestbedError(f"{path}: not a report of ducktape ({reason(error)})") from error
        return tuple(report for of_test in found.values() for report in sorted(of_test, key=lambda each: each.started))

    def last_lines(self) -> str:
        """Return the end of ducktape's output."""
        log = self.folder / LOG
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
        return "\n".join(f"  {line}" for line in lines[-12:])


def progress_of(line: str) -> str:
    """Return what a line of ducktape's output says of a test that begins or ends; empty for any other line. Pure."""
    text = line.rstrip("\n").partition("RunnerClient: ")[2]
    test, _colon, what = text.rpartition(": ")
    if what in ("Running...", "PASS") or (": FAIL" in text and (test := text.partition(": FAIL")[0])):
        state = "runs" if what == "Running..." else "PASS" if what == "PASS" else f"FAIL{text.partition(': FAIL')[2]}"
        return f"{test.removeprefix('kafkatest.tests.')}: {state}"
    return ""
