"""A case of a suite: its run on a testbed that is ready for it, and its outcome."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from results.contract import durable
from results.contract.document import DocumentError, decode
from results.contract.manifest import new_run_id
from results.contract.store import Store
from results.contract.texts import and_more
from results.contract.untrusted import parse_json
from results.contract.verdict import Verdict
from results.criteria import Judgement
from results.criteria.criterion import FACTS
from results.criteria.judgement import by_machine, catalogue
from testbed.errors import TestbedError
from testbed.experiments.experiment_run import Progress, run_on
from testbed.experiments.reports import write_report
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed
from testbed.runner.time_limit import bounded
from testbed.runner.variant import of_case, resolve
from testbed.suites.suite import Case

FILE = "outcome.json"
Ending = Literal["pass", "fail", "inconclusive", "not done"]
"""A verdict, or `not done`: the case raised, was stopped, or never began. `not done` ranks with `fail`."""
WORST: Sequence[Ending] = ("not done", "fail", "inconclusive", "pass")
EXIT: dict[Ending, int] = {"pass": 0, "fail": 1, "not done": 1, "inconclusive": 2}


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The outcome of one case. `run_id` is None without a run in the store; `why` is empty for a pass."""

    case: str
    experiment: str
    topology: str
    verdict: Verdict | None
    run_id: str | None
    why: str
    seconds: float
    evidence: str | None = None
    """The folder with the logs, samples and report of the case."""
    disturbed: tuple[str, ...] = ()
    """The earlier runs of the case that were inconclusive because of the machine alone, each with the reason."""

    @property
    def ending(self) -> Ending:
        """Return the verdict, or `not done`."""
        return self.verdict or "not done"

    def write(self, folder: Path) -> None:
        """Write the outcome into `folder`, atomically."""
        folder.mkdir(parents=True, exist_ok=True)
        durable.write(folder / FILE, json.dumps(asdict(self), indent=1) + "\n")

    @staticmethod
    def read(path: Path) -> "CaseOutcome":
        """Return the outcome that `write` wrote. Raise `TestbedError` when the file is damaged."""
        try:
            return decode(CaseOutcome, parse_json(path.read_text(encoding="utf-8")), str(path))
        except (ValueError, DocumentError) as error:
            raise TestbedError(f"{path}: not a case's outcome: {error}") from error


def gather(root: Path) -> dict[str, CaseOutcome]:
    """Return every outcome under `root` by its case; of a case that ran twice, the worse outcome."""
    found: dict[str, CaseOutcome] = {}
    for path in sorted(root.rglob(FILE)):
        outcome = CaseOutcome.read(path)
        known = found.get(outcome.case)
        if known is None or WORST.index(outcome.ending) < WORST.index(known.ending):
            found[outcome.case] = outcome
    return found


def worst(endings: Sequence[Ending]) -> Ending:
    """Return the ending of all cases: `not done` and `fail` before `inconclusive`; `not done` when no case ran."""
    return min(endings, key=WORST.index, default="not done")


EVIDENCE = "evidence"
MOST_SHOWN = 3


class CaseRun:
    """A running case. It writes its outcome into `folder`, however it ends."""

    def __init__(self, case: Case, profile: str, kafka: str | None, folder: Path, before: tuple[str, ...] = ()) -> None:
        self.case = case
        self.resolved = resolve(of_case(case, profile, kafka))
        self.folder = folder
        self._profile = profile
        self._begun = time.monotonic()
        self._recorder = Recorder()
        self.testbed: Testbed | None = None
        """The testbed of the case, as soon as it is known; its logs are evidence."""
        self.disturbed = False
        """Whether the case is inconclusive because of the machine alone."""
        self._before = before

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Bound the time of the block, keep evidence, write the outcome. Raise its exception, or `TimeLimitError`."""
        evidence = self.folder / EVIDENCE
        # The outcome of the attempt before must not stand for this one, whose process may be killed.
        (self.folder / FILE).unlink(missing_ok=True)
        try:
            what, limit_s = f"case {self.case.name}", self.case.limit_s
            with bounded(what, limit_s, evidence, self._recorder, lambda: self.testbed, BaseException):
                yield
        except BaseException as error:
            names = self.case.name, self.resolved.experiment.name, self.resolved.topology.name
            why, seconds = str(error) or type(error).__name__, time.monotonic() - self._begun
            CaseOutcome(*names, None, None, why, seconds, str(self.folder), self._before).write(self.folder)
            raise

    def run(self, testbed: Testbed, store: Store, progress: Progress) -> CaseOutcome:
        """Run the experiment to its verdict, commit the run, write its report. Raise `TestbedError` when that fails."""
        self.testbed = testbed
        experiment = self.resolved.experiment
        run_id = new_run_id(experiment.name)
        judgement = run_on(
            testbed, experiment, self.resolved.settings, self._profile, run_id, store, progress, recorder=self._recorder
        )
        report = write_report(store, store.manifest(run_id), judgement)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "report.html").write_bytes(report.read_bytes())
        self.disturbed = by_machine(judgement)
        outcome = CaseOutcome(
            self.case.name,
            experiment.name,
            self.resolved.topology.name,
            judgement.verdict,
            run_id,
            reason(judgement),
            time.monotonic() - self._begun,
            None if judgement.verdict == "pass" else str(self.folder),
            self._before,
        )
        outcome.write(self.folder)
        return outcome


def reason(judgement: Judgement) -> str:
    """Return the reason of the verdict in a few words: the causes, without the criteria that they left unjudged.

    Facts come first: a quota that another client changed explains the rates.
    """
    wrong = [c for c in judgement.criteria if c.verdict == judgement.verdict != "pass"]
    facts = {name for name, criterion in catalogue().items() if criterion.section == FACTS}
    causes = [c for c in wrong if not c.why.startswith("not judged")] or wrong
    causes.sort(key=lambda c: c.name not in facts)
    shown = [f"{f'{c.name} {c.where}'.rstrip()}: {c.why}" for c in causes[:MOST_SHOWN]]
    return "; ".join([*shown, *and_more(len(wrong) - len(shown))])
