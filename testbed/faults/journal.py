"""The journal of a testbed's faults: one file for each in its state folder, on disk before the fault is applied.

The required state of every NIC, process and quota follows from the topology and these files alone. So any process can
heal a fault at any time, in any order.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from results.contract import durable
from results.contract.untrusted import parse_json
from testbed.errors import TestbedError
from testbed.faults.fault import Fault, HostFault
from testbed.faults.parse import as_text, notes, parse_fault
from testbed.owner import Owner
from testbed.provision import state as states
from testbed.provision.testbed import Testbed

_SCHEMA = 1
_ACTIVE, _HEALED, _DAMAGED, _RESTORED = ".json", ".healed", ".damaged", ".restored"
HEALED_MOST = 500
"""Healed faults that a testbed's state keeps: many more than one run injects, and a soak's state stays bounded."""
F = TypeVar("F", bound=Fault)
H = TypeVar("H", bound=HostFault)


@dataclass(frozen=True, slots=True)
class FaultEntry:
    """One fault of a testbed. `owner` None: applied by hand; it stays until a user clears it."""

    id: int
    fault: Fault
    owner: Owner | None
    since: str
    healing: bool = False

    @property
    def dead(self) -> bool:
        """Return whether the owner has died."""
        return self.owner is not None and not self.owner.alive()

    @property
    def by(self) -> str:
        """Return the owner, for a message."""
        if self.owner is None:
            return "hand"
        return f"process {self.owner.pid}" + (" (dead: `testbed gc` heals it)" if self.dead else "")

    def document(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        return {
            "id": self.id,
            "fault": as_text(self.fault),
            "since": self.since,
            "owner": self.by,
            "healing": self.healing,
        }

    def __str__(self) -> str:
        return f"{self.id} ({as_text(self.fault)})"


class FaultJournalError(TestbedError):
    """An entry cannot be written or read."""


class FaultJournal:
    """The entries of one testbed, by its name."""

    def __init__(self, testbed: str) -> None:
        self._testbed = testbed
        self._folder = states.folder(testbed) / "faults"

    def add(self, fault: Fault, owner: Owner | None) -> FaultEntry:
        """Write a new entry; on return it is on disk. An id is never used twice."""
        used = [int(path.stem) for path in self._files(_ACTIVE, _HEALED, _DAMAGED, _RESTORED)]
        entry = FaultEntry(max(used, default=0) + 1, fault, owner, datetime.now(UTC).isoformat(timespec="milliseconds"))
        self._write(entry)
        return entry

    def healing(self, entry: FaultEntry) -> None:
        """Record that the heal has begun: the fault no longer counts as active."""
        self._write(replace(entry, healing=True))

    def healed(self, entry: FaultEntry) -> None:
        """Record that the fault is healed; its entry stays as a record, until there are `HEALED_MOST` newer ones."""
        path = self._path(entry.id)
        if path.exists():
            path.replace(path.with_suffix(_HEALED))
            for old in self._files(_HEALED)[:-HEALED_MOST]:
                old.unlink(missing_ok=True)
            durable.sync(self._folder)

    def entries(self) -> tuple[FaultEntry, ...]:
        """Return every fault that is not healed, oldest first. Raise `FaultJournalError` when one is unreadable."""
        return self._all(_ACTIVE)

    def history(self) -> tuple[FaultEntry, ...]:
        """Return all faults and the last healed ones, oldest first. Raise `FaultJournalError` for an unreadable one."""
        return self._all(_ACTIVE, _HEALED)

    def set_aside_damaged(self) -> list[Path]:
        """Rename the unreadable entries, and return the paths of all whose faults are not restored yet."""
        for path in self._files(_ACTIVE):
            try:
                self._read(path)
            except FaultJournalError:
                path.replace(path.with_suffix(_DAMAGED))
        return self._files(_DAMAGED)

    def restored(self, damaged: Sequence[Path]) -> None:
        """Record that everything was restored, whatever these entries were; call it only after that."""
        for path in damaged:
            path.replace(path.with_suffix(_RESTORED))

    def _all(self, *suffixes: str) -> tuple[FaultEntry, ...]:
        found = []
        for path in self._files(*suffixes):
            try:
                found.append(self._read(path))
            except FaultJournalError:
                if path.exists():  # otherwise another process has healed it meanwhile
                    raise
        return tuple(found)

    def _files(self, *suffixes: str) -> list[Path]:
        found = self._folder.glob("*") if self._folder.is_dir() else []
        return sorted((p for p in found if p.suffix in suffixes and p.stem.isdigit()), key=lambda p: int(p.stem))

    def _path(self, entry_id: int) -> Path:
        return self._folder / f"{entry_id}{_ACTIVE}"

    def _write(self, entry: FaultEntry) -> None:
        document = {
            "schema": _SCHEMA,
            "fault": as_text(entry.fault),
            "notes": notes(entry.fault),
            "owner": str(entry.owner) if entry.owner else None,
            "since": entry.since,
            "healing": entry.healing,
        }
        path = self._path(entry.id)
        try:
            # Not its parents: the folder of a removed testbed must not reappear.
            self._folder.mkdir(mode=0o700, exist_ok=True)
            durable.write(path, json.dumps(document, indent=1))
        except OSError as error:
            raise FaultJournalError(
                f"{path}: cannot be written ({error}); is testbed {self._testbed} still up?"
            ) from error

    def _read(self, path: Path) -> FaultEntry:
        try:
            document: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"))
            if document["schema"] != _SCHEMA:
                raise ValueError(f"schema {document['schema']}, not {_SCHEMA}: written by another version")
            fault = replace(parse_fault(document["fault"]), **document["notes"])
            owner = Owner.parse(document["owner"]) if document["owner"] else None
            return FaultEntry(int(path.stem), fault, owner, str(document["since"]), bool(document["healing"]))
        except (OSError, ValueError, KeyError, TypeError, TestbedError) as error:
            raise FaultJournalError(
                f"{path}: not a fault of this testbed ({error}); "
                f"`testbed fault clear {self._testbed}` sets it aside and heals everything"
            ) from error


def active(testbed: str, kind: type[F]) -> tuple[F, ...]:
    """Return the active faults of this class (or a subclass), oldest first."""
    entries = FaultJournal(testbed).entries()
    return tuple(each.fault for each in entries if not each.healing and isinstance(each.fault, kind))


def active_on(testbed: Testbed, host: str, kind: type[H]) -> list[H]:
    """Return the active faults of this class on one host, oldest first."""
    return [fault for fault in active(testbed.name, kind) if fault.host == host]
