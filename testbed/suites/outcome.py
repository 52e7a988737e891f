"""What became of a case: a small JSON document that its test leaves, and that the suite gathers."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from results.contract import durable
from results.contract.document import DocumentError, decode
from results.contract.verdict import Verdict
from testbed.errors import TestbedError

FILE = "outcome.json"
Ending = Literal["pass", "fail", "inconclusive", "not done"]
"""A verdict, or that there is none: the case raised, was stopped, or never began. Not done is as bad as a fail."""
WORST: Sequence[Ending] = ("not done", "fail", "inconclusive", "pass")
EXIT: dict[Ending, int] = {"pass": 0, "fail": 1, "not done": 1, "inconclusive": 2}


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """One case that was run. `run_id` is None without a run in the store; `why` is empty for a pass."""

    case: str
    experiment: str
    topology: str
    verdict: Verdict | None
    run_id: str | None
    why: str
    seconds: float
    evidence: str | None = None
    """The folder with what is left of it: logs, samples, report."""
    disturbed: tuple[str, ...] = ()
    """The runs before it that only the machine made inconclusive, each with why."""

    @property
    def ending(self) -> Ending:
        """The verdict, or that there is none."""
        return self.verdict or "not done"

    def write(self, folder: Path) -> None:
        """Leave it in `folder`, whole."""
        folder.mkdir(parents=True, exist_ok=True)
        durable.write(folder / FILE, json.dumps(asdict(self), indent=1) + "\n")

    @staticmethod
    def read(path: Path) -> "CaseOutcome":
        """The inverse of `write`, from the file. Raises `TestbedError` for one that is damaged."""
        try:
            return decode(CaseOutcome, json.loads(path.read_text(encoding="utf-8")), str(path))
        except (ValueError, DocumentError) as error:
            raise TestbedError(f"{path}: not a case's outcome: {error}") from error


def gather(root: Path) -> dict[str, CaseOutcome]:
    """Every outcome under `root` by its case; of a case that ran twice, the worse one counts."""
    found: dict[str, CaseOutcome] = {}
    for path in sorted(root.rglob(FILE)):
        outcome = CaseOutcome.read(path)
        known = found.get(outcome.case)
        if known is None or WORST.index(outcome.ending) < WORST.index(known.ending):
            found[outcome.case] = outcome
    return found


def worst(endings: Sequence[Ending]) -> Ending:
    """The ending of the whole: not done and fail before inconclusive; nothing run is not done."""
    return min(endings, key=WORST.index, default="not done")
