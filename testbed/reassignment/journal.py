"""What was there before a throttle was set, on disk before the first change is made.

One file for each throttle, in ``reassign/`` of the state folder. It exists exactly as long as something may
have to be put back, and names the process that will do so.
"""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from results.contract import durable
from testbed.errors import TestbedError
from testbed.kafka.types import ConfigResource
from testbed.owner import Owner
from testbed.paths import state_dir
from testbed.reassignment.changes import Change

_SCHEMA = 1


class JournalError(TestbedError):
    """A journal cannot be written or read."""


@dataclass(frozen=True)
class Journal:
    """One throttle: in which cluster, what it changes from what, and whose it is."""

    id: str
    bootstrap: str
    cluster_id: str
    changes: tuple[Change, ...]
    owner: Owner
    command_config: str | None = None
    """The file that says how to connect to it; a path, and nothing of its content."""
    raises: bool = False
    """Whether it only raised what somebody else had set: what has changed since is theirs again."""

    @classmethod
    def new(cls, bootstrap: str, cluster_id: str, changes: tuple[Change, ...]) -> "Journal":
        """Make a journal owned by this process; nothing is written yet."""
        return cls(str(uuid.uuid4()), bootstrap, cluster_id, changes, Owner.this_process())


class JournalFolder:
    """The folder of journals; by default that of this user's state folder."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path if path is not None else state_dir() / "reassign"

    def write(self, journal: Journal) -> None:
        """Write a journal so that it survives a crash of the machine: on return it is on disk, whole."""
        durable.make_folder(self.path, 0o700)
        durable.write(self.file(journal.id), json.dumps({"schema": _SCHEMA, **asdict(journal)}, indent=1))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within the block nobody else reads what is there before a throttle, corrects it, or puts it back.

        Not to be entered twice. The lock is the kernel's, and ends with the process that holds it.
        """
        durable.make_folder(self.path, 0o700)
        with durable.lock(self.path / "lock"):
            yield

    def latest(self, journal: Journal) -> Journal:
        """Return a journal as it is on disk: a fault that lay beneath it, and was healed, has corrected it there.

        One that is not there, or cannot be read, is returned as it was given.
        """
        try:
            return self.read(journal.id)
        except JournalError:
            return journal

    def remove(self, journal_id: str) -> None:
        """Remove a journal; one that is not there is not an error (it may never have been written)."""
        self.file(journal_id).unlink(missing_ok=True)
        if self.path.is_dir():
            durable.sync(self.path)

    def file(self, journal_id: str) -> Path:
        """Return where a journal lies."""
        return self.path / f"{journal_id}.json"

    def ids(self) -> list[str]:
        """Return the journals there are, readable or not."""
        return sorted(path.stem for path in self.path.glob("*.json"))

    def read(self, journal_id: str) -> Journal:
        """Read one journal; `JournalError` says what is wrong with it."""
        path = self.file(journal_id)
        try:
            return _journal(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise JournalError(f"{path}: not a journal of this testbed: {error!r}") from error

    def forget_cluster(self, cluster_id: str) -> int:
        """Remove the journals of a cluster that no longer exists; returns how many there were."""
        mine = [journal for journal in open_journals(self) if journal.cluster_id == cluster_id]
        for journal in mine:
            self.remove(journal.id)
        return len(mine)


def open_journals(folder: JournalFolder | None = None) -> list[Journal]:
    """Return every readable journal: throttles that are set now, or that a dead process left behind."""
    folder = folder or JournalFolder()
    found = []
    for journal_id in folder.ids():
        try:
            found.append(folder.read(journal_id))
        except JournalError:
            continue  # its owner has just finished; one that cannot be read is reported by `recover`
    return found


def _journal(document: dict[str, Any]) -> Journal:
    if document["schema"] != _SCHEMA:
        raise ValueError(f"schema {document['schema']}, not {_SCHEMA}: written by another version")
    changes = tuple(
        Change(
            ConfigResource(**c["resource"]),
            c["key"],
            c["original"],
            c["value"],
            tuple(c.get("earlier", ())),
            c.get("removed", False),
        )
        for c in document["changes"]
    )
    return Journal(
        document["id"],
        document["bootstrap"],
        document["cluster_id"],
        changes,
        Owner(**document["owner"]),
        document.get("command_config"),
        document.get("raises", False),
    )
