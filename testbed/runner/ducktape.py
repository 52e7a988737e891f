"""The invocation of ducktape for a suite: its command, its environment, the outcome of each case, and its cleaning."""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError, reason
from testbed.owner import Owner
from testbed.provision import state as states
from testbed.provision.containers import Engine
from testbed.provision.resources import garbage, remove
from testbed.runner.ducktape_process import Progress, run_ducktape
from testbed.runner.time_limit import GRACE_S
from testbed.software.automq import lasting_variable
from testbed.suites.suite import CASES_VARIABLE, PROFILE_VARIABLE, Case, Suite

SUITE_VARIABLE = "TESTBED_SUITE_PROCESS"
"""The environment variable with the process number of the `testbed suite` that started ducktape."""
MARK = "testbed: "


def print_progress(text: str) -> None:
    """Print one step; several lines of text become one."""
    print(f"{MARK}{' '.join(text.split())}", flush=True)


def progress_of(line: str) -> str:
    """Return the text of a line that `print_progress` printed, or an empty one for any other line."""
    return line[len(MARK) :].rstrip("\n") if line.startswith(MARK) else ""


ROOT = Path(__file__).parents[2]
SPARE_S = 60.0
"""Seconds that ducktape takes in addition to its tests."""
BRING_UP_S = 180.0


@dataclass(frozen=True, slots=True)
class DucktapeSession:
    """One invocation of ducktape, for the cases of one profile; all its files are in `folder`."""

    suite: Suite
    profile: str
    cases: Sequence[Case]
    kafka: str | None
    store: str
    folder: Path
    again: int = 0
    """How many times an inconclusive case is repeated, if only the machine made it inconclusive."""

    @property
    def hang_s(self) -> float:
        """Return the seconds without output after which ducktape gives up; a case's own time limit ends first."""
        return max(case.limit_s for case in self.cases) + GRACE_S + SPARE_S

    @property
    def longest_s(self) -> float:
        """Return the seconds after which ducktape is killed."""
        return (1 + self.again) * sum(case.limit_s + GRACE_S + BRING_UP_S for case in self.cases) + SPARE_S

    def command(self) -> list[str]:
        """Return ducktape's command line. It ignores the user's ducktape settings, which may retry a failed test."""
        return [
            *(sys.executable, "-P", "-m", "ducktape", str(ROOT / "ducktests" / self.suite.tests)),
            *("--cluster", "ducktests.cluster.TestbedCluster", "--cluster-file", str(self.folder / "cluster.json")),
            *("--results-root", str(self.folder / "ducktape"), "--config-file", os.devnull, "--max-parallel", "1"),
            *("--test-runner-timeout", str(int(self.hang_s * 1000))),
        ]

    def environment(self) -> dict[str, str]:
        """Return the environment variables of ducktape: the profile, the cases, and the process number of the suite."""
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        return {
            **os.environ,
            **lasting_variable(),
            "PYTHONPATH": path,
            PROFILE_VARIABLE: self.profile,
            CASES_VARIABLE: ",".join(case.name for case in self.cases),
            SUITE_VARIABLE: str(os.getpid()),
        }


def run(session: DucktapeSession, progress: Progress) -> None:
    """Run ducktape to its end, failed or not. The folder then has the outcome of each case.

    ducktape's output goes into `ducktape.log`. Ctrl-C interrupts the running test, which then restores its changes.
    """
    session.folder.mkdir(parents=True, exist_ok=True)
    options = {"kafka": session.kafka, "store": session.store, "again": session.again}
    (session.folder / "cluster.json").write_text(json.dumps(options) + "\n", encoding="utf-8")
    run_ducktape(
        session.command(),
        session.folder,
        session.environment(),
        progress_of,
        progress,
        longest_s=session.longest_s,
        after=lambda pid: _remove_left(pid, progress),
    )


def statuses(folder: Path) -> dict[str, tuple[bool, str]]:
    """Return whether ducktape passed each case, and its summary. Raise `TestbedError` when its report is damaged."""
    found: dict[str, tuple[bool, str]] = {}
    for path in sorted((folder / "ducktape").glob("*/report.json")):
        try:
            results: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["results"]
            for result in results:
                passed = result["test_status"] == "PASS"
                case = (result["injected_args"] or {}).get("case", result["test_id"])
                known = found.get(case, (True, ""))
                found[case] = (passed and known[0], known[1] or result["summary"])
        except (ValueError, KeyError, TypeError) as error:
            raise TestbedError(
                f"{path}: not a report of ducktape ({reason(error)}); its log is in the same folder"
            ) from error
    return found


def _remove_left(pid: int, progress: Progress) -> None:
    """Remove the testbeds that an ended ducktape left."""
    with closing(Engine()) as engine:
        for name in garbage(engine):
            state = states.load(name)
            owner = Owner.parse(state.owner) if state else None
            if owner is not None and owner.pid == pid:
                progress(f"removing {name}")
                remove(engine, name)
