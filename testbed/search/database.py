"""The database of a search on disk: its settings, and a line of JSON for each try.

A search is a function of its settings and of the answers of its tries. So a resumed search asks the same questions
again, and the database answers those that were answered before.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from results.contract import durable
from results.contract.document import DocumentError, decode, encode
from testbed.errors import UsageError
from testbed.search.draft import Draft
from testbed.search.outcome import Outcome

SETTINGS, TRIES = "search.json", "tries.jsonl"


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What a search looks at. `defects` are the defects of its brokers."""

    topology: str
    seed: int
    defects: tuple[str, ...] = ()
    kafka: str | None = None


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
            raise UsageError(f"{folder} has a search already: `testbed search --resume {folder}` goes on with it")
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
