"""Running one case on a testbed that is ready for it: the one runner, a time limit, evidence, and what became of it."""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from results.contract.manifest import new_run_id
from results.contract.store import Store
from results.criteria import Judgement
from results.criteria.judgement import noisy
from testbed.experiments.reports import write_report
from testbed.experiments.runner import run_on
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed
from testbed.suites.evidence import keep
from testbed.suites.limit import time_limit
from testbed.suites.outcome import CaseOutcome
from testbed.suites.suite import Case

Progress = Callable[[str], None]
EVIDENCE = "evidence"
MOST_TOLD = 3


class CaseRun:
    """One case being run; what became of it is left in `folder`, whatever happens."""

    def __init__(self, case: Case, profile: str, kafka: str | None, folder: Path, before: tuple[str, ...] = ()) -> None:
        self.case = case
        self.resolved = case.resolve(profile, kafka)
        self.folder = folder
        self._profile = profile
        self._begun = time.monotonic()
        self._recorder = Recorder()
        self.testbed: Testbed | None = None
        """Where it runs, as soon as that is known: its logs are evidence."""
        self.disturbed = False
        """Whether it came to no more than that the machine was not fit to judge on."""
        self._before = before

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """The time in which the case may raise: its time limit, its evidence, its outcome.

        Raises what the block raises, or `TimeLimitError`.
        """
        evidence = self.folder / EVIDENCE
        try:
            with time_limit(self.case.limit_s, f"case {self.case.name}", evidence):
                yield
        except BaseException as error:
            try:
                keep(evidence, self._recorder, self.testbed)
            finally:
                self._outcome(str(error) or type(error).__name__).write(self.folder)
            raise
        if not any(evidence.iterdir()):
            evidence.rmdir()

    def run(self, testbed: Testbed, store: Store, progress: Progress) -> CaseOutcome:
        """Run the experiment to its verdict, commit it, write its report. Raises `TestbedError`."""
        self.testbed = testbed
        experiment = self.resolved.experiment
        run_id = new_run_id(experiment.name, datetime.now(UTC), secrets.token_hex(3))
        judgement = run_on(
            testbed,
            experiment,
            self.resolved.settings,
            self._profile,
            run_id,
            store,
            progress,
            recorder=self._recorder,
        )
        report = write_report(store, store.manifest(run_id), judgement)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "report.html").write_bytes(report.read_bytes())
        self.disturbed = noisy(judgement)
        outcome = CaseOutcome(
            self.case.name,
            experiment.name,
            self.resolved.topology.name,
            judgement.verdict,
            run_id,
            _why(judgement),
            time.monotonic() - self._begun,
            None if judgement.verdict == "pass" else str(self.folder),
            self._before,
        )
        outcome.write(self.folder)
        return outcome

    def _outcome(self, why: str) -> CaseOutcome:
        seconds = time.monotonic() - self._begun
        names = self.case.name, self.resolved.experiment.name, self.resolved.topology.name
        return CaseOutcome(*names, None, None, why, seconds, str(self.folder), self._before)


def _why(judgement: Judgement) -> str:
    """What made the verdict, in a few words: causes, and not what could not be judged because of them."""
    wrong = [c for c in judgement.criteria if c.verdict == judgement.verdict != "pass"]
    causes = [c for c in wrong if not c.why.startswith("not judged")] or wrong
    told = [f"{' '.join(filter(None, (c.name, c.host, c.direction)))}: {c.why}" for c in causes[:MOST_TOLD]]
    more = [f"and {len(wrong) - len(told)} more"] if len(wrong) > len(told) else []
    return "; ".join([*told, *more])
