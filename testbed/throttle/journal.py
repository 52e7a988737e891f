"""The journal of a throttle: the original configuration, on disk before the first change.

``reassign/`` of the state folder has one file for each throttle. The file exists exactly as long as a restore may be
necessary, and names the process that will restore.
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from results.contract import durable
from results.contract.document import decode
from results.contract.texts import shortened
from results.contract.untrusted import parse_json
from testbed.errors import TestbedError, reason
from testbed.owner import Owner
from testbed.paths import throttle_journals
from testbed.throttle.configs import ConfigChange, ConfigValues, ThrottleError

_SCHEMA = 1


class ThrottleJournalError(TestbedError):
    """A journal cannot be written or read."""


@dataclass(frozen=True)
class ThrottleJournal:
    """One throttle: its cluster, its changes with their originals, and its owner."""

    id: str
    bootstrap: str
    cluster_id: str
    changes: tuple[ConfigChange, ...]
    owner: Owner
    command_config: str | None = None
    """The path of the client's properties file; the journal holds none of its content."""
    raises: bool = False
    """Whether it only raised rates that another tool had set; a rate that has changed since belongs to that tool."""

    @classmethod
    def new(
        cls, bootstrap: str, cluster_id: str, changes: tuple[ConfigChange, ...], command_config: str | None = None
    ) -> "ThrottleJournal":
        """Return a journal owned by this process; nothing is written yet."""
        return cls(str(uuid.uuid4()), bootstrap, cluster_id, changes, Owner.this_process(), command_config)


class JournalFolder:
    """The folder of journals; by default in this user's state folder."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path if path is not None else throttle_journals()

    def write(self, journal: ThrottleJournal) -> None:
        """Write a journal; on return it is complete on disk and survives a crash of the machine."""
        durable.make_folder(self.path, 0o700)
        durable.write(self.file(journal.id), json.dumps({"schema": _SCHEMA, **asdict(journal)}, indent=1))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock under which originals are read, corrected and restored.

        A process must not enter it twice. The kernel releases the lock when its process ends.
        """
        durable.make_folder(self.path, 0o700)
        with durable.lock(self.path / "lock"):
            yield

    def latest(self, journal: ThrottleJournal) -> ThrottleJournal:
        """Return a journal as it is on disk: the heal of an earlier fault corrects it there.

        A journal that is missing or unreadable is returned as given.
        """
        try:
            return self.read(journal.id)
        except ThrottleJournalError:
            return journal

    def remove(self, journal_id: str) -> None:
        """Remove a journal; a missing one is not an error (it may never have been written)."""
        self.file(journal_id).unlink(missing_ok=True)
        if self.path.is_dir():
            durable.sync(self.path)

    def file(self, journal_id: str) -> Path:
        """Return the path of a journal."""
        return self.path / f"{journal_id}.json"

    def ids(self) -> list[str]:
        """Return the ids of all journals, readable or not."""
        return sorted(path.stem for path in self.path.glob("*.json"))

    def read(self, journal_id: str) -> ThrottleJournal:
        """Return one journal. Raise `ThrottleJournalError` naming the mistake."""
        path = self.file(journal_id)
        try:
            document = parse_json(path.read_text(encoding="utf-8"))
            if (schema := document.pop("schema")) != _SCHEMA:
                raise ValueError(f"schema {schema}, not {_SCHEMA}: written by another version")
            return decode(ThrottleJournal, document, "journal")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ThrottleJournalError(f"{path}: not a journal of this testbed: {reason(error)}") from error


def open_journals(folder: JournalFolder | None = None) -> list[ThrottleJournal]:
    """Return every readable journal: of throttles that are in force, or that a dead process has left."""
    folder = folder or JournalFolder()
    found = []
    for journal_id in folder.ids():
        try:
            found.append(folder.read(journal_id))
        except ThrottleJournalError:
            continue  # its owner has just finished; `recover` reports one that cannot be read
    return found


_SHOWN = 4


def refuse_shared(wanted: ConfigValues, present: ConfigValues, others: Iterable[ThrottleJournal]) -> None:
    """Refuse keys that another throttle has changed, or relies on, while its process lives.

    Otherwise the restore of one would delete the other's values. Two throttles may share values of a third tool:
    neither changes them. Raise `ThrottleError` naming the process, the keys, and the remedy.
    """
    for journal in others:
        shared = [
            f"{change.resource}: {change.key}"
            for change in journal.changes
            if (value := wanted.get(change.resource, {}).get(change.key)) is not None
            and (change.made or value != present.get(change.resource, {}).get(change.key))
        ]
        if shared and journal.owner.alive():
            shown = ", ".join(shortened(shared, _SHOWN))
            raise ThrottleError(
                f"process {journal.owner.pid} has a throttle on the same keys ({shown}): "
                f"the first to end would remove the other's. Nothing was changed; wait until that process has restored "
                f"the configuration, or end it"
            )


def handed_up(
    dead: ThrottleJournal, alive: Iterable[ThrottleJournal]
) -> tuple[tuple[ConfigChange, ...], tuple[ThrottleJournal, ...]]:
    """Return the changes of a dead throttle that a recovery restores now, and the live journals to correct.

    A key that a live throttle has set over the dead one's value keeps the live value. If the live journal has the dead
    throttle's value as its original, it inherits the dead throttle's original instead. A dead raise over a live
    throttle whose journal does not have the raised rate is restored now.
    """
    lower = {(change.resource, change.key): change for change in dead.changes if change.made}
    left, corrected = dict(lower), []
    for journal in alive:
        changes = []
        for change in journal.changes:
            beneath = lower.get((change.resource, change.key))
            inherits = beneath is not None and change.original in (beneath.now, beneath.value, *beneath.earlier)
            if beneath is not None and (inherits or not dead.raises):
                left.pop((change.resource, change.key), None)
            changes.append(replace(change, original=beneath.original) if beneath is not None and inherits else change)
        if tuple(changes) != journal.changes:
            corrected.append(replace(journal, changes=tuple(changes)))
    return tuple(left.values()), tuple(corrected)
