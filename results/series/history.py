"""The reported changes of a series and the beginning of its baseline: a pure state machine; the caller keeps the store.

A change is reported once. Its first bad run then begins the baseline, so that the next change is one from the new
level. The change is open until a user acknowledges it with a reason.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from results.contract.document import decode
from results.series.decision import LevelChange


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A user's acknowledgement of a change, with the reason for it."""

    reason: str
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class ReportedChange:
    """A change with its runs, by id: the first bad one, the last good one before it, the newest when it was found."""

    change: LevelChange
    first_bad: str
    last_good: str
    found: str
    acknowledged: Acknowledgement | None = None


@dataclass(frozen=True, slots=True)
class History:
    """`baseline` is the time (UTC, ISO 8601) of the first run that counts; empty: all do."""

    baseline: str = ""
    reported: tuple[ReportedChange, ...] = ()

    @property
    def open(self) -> tuple[ReportedChange, ...]:
        """Return the changes that no user has acknowledged."""
        return tuple(reported for reported in self.reported if reported.acknowledged is None)

    def acknowledge(self, first_bad: str, by: Acknowledgement) -> "History":
        """Return the history in which the change that begins with that run is acknowledged, if it is open.

        Raise ValueError without a reason.
        """
        if not by.reason.strip():
            raise ValueError("no reason: say why the change is as it is, for the next reader")
        done = tuple(
            replace(one, acknowledged=by) if one.first_bad == first_bad and one.acknowledged is None else one
            for one in self.reported
        )
        return replace(self, reported=done)

    def to_json(self) -> str:
        """Return the history as one line."""
        return json.dumps({"version": 1, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> "History":
        """Read a history back. Raise ValueError when the version is not known."""
        return decode(cls, history_document(json.loads(text)), "history")


def history_document(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a stored line that is a history. Raise ValueError when its version is not known."""
    if found.get("version") != 1:
        raise ValueError(f"history of version {found.get('version')}: expected 1")
    return {name: found[name] for name in ("baseline", "reported")}


def sealed(lines: Iterable[str]) -> bytes:
    """Return a file of histories, one a line; its first line says how many follow, and their digest."""
    body = "".join(f"{line}\n" for line in lines).encode()
    return json.dumps(_seal(body)).encode() + b"\n" + body


def unsealed(data: bytes) -> list[tuple[int, str]]:
    """Return a file's histories, each with the number of its line. Raise ValueError when the file was cut or changed.

    Files of earlier versions have no first line of that kind: their lines are read as they are.
    """
    if not data.strip():
        raise ValueError("the file is empty")
    first, _, body = data.partition(b"\n")
    seal, found = _read_seal(first), _seal(body)
    if seal is not None and seal != found:
        raise ValueError(f"the {found['lines']} lines after its first are not the {seal['lines']} that were written")
    lines = list(enumerate(data.decode(errors="replace").splitlines(), 1))
    return lines if seal is None else lines[1:]


def _seal(body: bytes) -> dict[str, Any]:
    return {"lines": body.count(b"\n"), "sha256": hashlib.sha256(body).hexdigest()}


def _read_seal(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.keys() == {"lines", "sha256"} else None
