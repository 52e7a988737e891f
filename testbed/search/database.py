"""The database of a search on disk: its settings, and a line of JSON with the outcome of each try.

A search is a function of its settings and of the answers of its tries. So a resumed search asks the same questions
again, and the database answers those that were answered before.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from results.contract import durable
from results.contract.document import DocumentError, decode, encode
from results.contract.verdict import Finding
from results.criteria.expectations import EXPECTATIONS
from testbed.errors import UsageError
from testbed.search.draft import JUDGED, Draft

NAMES = frozenset(EXPECTATIONS[key].name() for key in JUDGED)
"""The criteria by which a search judges."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a try found: the invariants (criteria) that failed and why, those that could not be judged and why.

    `pairs` are the pairs of a fault or action and a phase that it showed. `refused` are kinds of fault that did not
    take effect. `void` says why the replay as a whole could not be judged; then nothing failed.
    """

    seconds: float
    failed: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    refused: tuple[str, ...] = ()
    void: str = ""
    run_id: str = ""

    @property
    def judged(self) -> bool:
        """Return whether an invariant was judged."""
        return bool(self.failed or self.kept)


def judged(findings: Sequence[Finding]) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Return which invariants failed and which could not be judged, each with why, and which held.

    What could not be measured is never a failure.
    """
    by_verdict: dict[str, dict[str, str]] = {"fail": {}, "inconclusive": {}, "pass": {}}
    for each in findings:
        if each.name in NAMES:
            by_verdict[each.verdict].setdefault(each.name, each.why)
    failed = by_verdict["fail"]
    unknown = {name: why for name, why in by_verdict["inconclusive"].items() if name not in failed}
    kept = tuple(name for name in by_verdict["pass"] if name not in failed and name not in unknown)
    return failed, unknown, kept


SETTINGS, TRIES = "search.json", "tries.jsonl"


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What a search looks at. `defects` are the defects of its brokers.

    `fault_kinds` are the kinds that it draws; None in searches of earlier versions: all that the machine can have.
    """

    topology: str
    seed: int
    defects: tuple[str, ...] = ()
    kafka: str | None = None
    fault_kinds: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one try. A `fresh` try had a testbed of its own."""

    draft: Draft
    fresh: bool
    outcome: Outcome


class Database:
    """The answers of a search so far, and its folder."""

    def __init__(self, folder: Path, settings: SearchSettings, answers: list[Answer]) -> None:
        self.folder, self.settings = folder, settings
        self._answers: dict[str, list[Outcome]] = {}
        self._asked: Counter[str] = Counter()
        for each in answers:
            self._answers.setdefault(_key(each.draft, each.fresh), []).append(each.outcome)

    @classmethod
    def new(cls, folder: Path, settings: SearchSettings) -> "Database":
        """Make the folder of a new search. Raise `UsageError` when it has one."""
        if (folder / SETTINGS).exists():
            raise UsageError(f"{folder} has a search already: `testbed search --resume {folder}` continues it")
        durable.make_folder(folder)
        durable.write(folder / SETTINGS, json.dumps(encode(settings), indent=1) + "\n")
        return cls(folder, settings, [])

    @classmethod
    def opened(cls, folder: Path) -> "Database":
        """Open the folder of an interrupted search. Raise `UsageError` when it has none, or one that is damaged.

        A last line that a kill cut off is dropped.
        """
        try:
            settings = decode(SearchSettings, json.loads((folder / SETTINGS).read_text()), str(folder / SETTINGS))
            text = (folder / TRIES).read_text() if (folder / TRIES).exists() else ""
            whole = text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]
            if not text.endswith("\n") and text:
                durable.write(folder / TRIES, "".join(f"{line}\n" for line in whole))
            answers = [decode(Answer, json.loads(line), f"{TRIES}:{n}") for n, line in enumerate(whole, 1)]
        except FileNotFoundError:
            raise UsageError(f"{folder} has no search: there is no {SETTINGS}") from None
        except (OSError, ValueError, DocumentError) as error:
            raise UsageError(f"{folder} has no search that can be read: {error}") from error
        return cls(folder, settings, answers)

    def answer(self, draft: Draft, fresh: bool, play: Callable[[], Outcome]) -> tuple[Outcome, bool]:
        """Return the answer to this question, and whether it was played now; asked again, the next one."""
        key = _key(draft, fresh)
        number = self._asked[key]
        self._asked[key] += 1
        known = self._answers.setdefault(key, [])
        if number < len(known):
            return known[number], False
        outcome = play()
        line = json.dumps(encode(Answer(draft, fresh, outcome))) + "\n"
        with (self.folder / TRIES).open("ab", buffering=0) as stream:
            durable.append(stream, line.encode())
        known.append(outcome)
        return outcome, True


def _key(draft: Draft, fresh: bool) -> str:
    return json.dumps([fresh, encode(draft)], sort_keys=True)
