"""A series on disk: one line of JSON for each thing that happened, each of them there for good before the next begins.

The file is locked while a command works on the series; the lock is the kernel's and ends with the process. A line that
a kill cut short is the last one and is dropped; damage anywhere else is an error.
"""

import contextlib
import json
import re
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

from results.contract import durable
from testbed.errors import TestbedError, UsageError
from testbed.paths import state_dir
from testbed.runner.series import Entry, Series, decode, encode

SCHEMA = 1
_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[a-z]{1,16}-[0-9a-f]{6}")


def folder() -> Path:
    """Where journals lie."""
    return state_dir() / "runner"


def known() -> list[str]:
    """The ids of all series, oldest first."""
    return sorted(path.stem for path in folder().glob("*.jsonl") if _ID.fullmatch(path.stem))


class Journal:
    """One open, locked journal. Make one with `created` or `opened`."""

    def __init__(self, path: Path, file: FileIO, series: Series, entries: list[Entry]) -> None:
        self.path = path
        self.series = series
        self._file = file
        self._entries = entries

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that has happened, in order."""
        return tuple(self._entries)

    def append(self, entry: Entry) -> None:
        """Write an entry; on return it survives a crash of the machine. Raises `TestbedError` when it cannot be."""
        _write(self._file, encode(entry), self.path)
        self._entries.append(entry)


@contextlib.contextmanager
def created(series: Series) -> Iterator[Journal]:
    """A new journal, for the `with` block. Raises `TestbedError` when there is one of that id."""
    if not _ID.fullmatch(series.id):
        raise ValueError(f"series id {series.id!r}: expected one like 20261121T200000Z-sweep-0a1b2c")
    durable.make_folder(folder(), 0o700)
    path = folder() / f"{series.id}.jsonl"
    try:
        file = FileIO(path, "x+")
    except FileExistsError as error:
        raise TestbedError(f"series {series.id} is there already: {path}") from error
    with file:
        _lock(file, series.id)
        _write(file, {"schema": SCHEMA, "series": series.document()}, path)
        durable.sync(folder())
        yield Journal(path, file, series, [])


@contextlib.contextmanager
def opened(series_id: str) -> Iterator[Journal]:
    """The journal of a series, for the `with` block.

    Raises `UsageError` when there is no such series, `TestbedError` when another command works on it, or the
    journal is damaged.
    """
    path = folder() / f"{series_id}.jsonl"
    if not _ID.fullmatch(series_id) or not path.is_file():
        raise UsageError(f"there is no series {series_id}; there are: {', '.join(known()) or 'none'}")
    with FileIO(path, "r+") as file:
        _lock(file, series_id)
        lines, whole = _whole_lines(file.readall())
        series, entries = _parse(lines, path)
        # What a kill left of a line must not become the beginning of the next one.
        file.truncate(whole)
        file.seek(whole)
        yield Journal(path, file, series, entries)


def _whole_lines(content: bytes) -> tuple[list[bytes], int]:
    """The lines that were written to their end, and how many bytes they are."""
    whole = content.rfind(b"\n") + 1
    return content[:whole].splitlines(), whole


def _parse(lines: list[bytes], path: Path) -> tuple[Series, list[Entry]]:
    number = 1
    try:
        head = json.loads(lines[0])
        if head["schema"] != SCHEMA:
            raise ValueError(f"schema {head['schema']}, this version reads {SCHEMA}")
        series = Series.from_document(head["series"])
        entries = []
        for line in lines[1:]:
            number += 1
            entries.append(decode(json.loads(line)))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise TestbedError(
            f"{path}, line {number}: not a series' journal ({error!r}); begin a new series, and remove this file"
        ) from error
    return series, entries


def _write(file: FileIO, document: dict[str, Any], path: Path) -> None:
    line = json.dumps(document, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    try:
        durable.append(file, line)
    except OSError as error:
        raise TestbedError(f"{path} cannot be written: {error}; make room, then go on with --resume") from error


def _lock(file: FileIO, series_id: str) -> None:
    try:
        durable.lock_descriptor(file.fileno(), wait=False)
    except BlockingIOError as error:
        raise TestbedError(f"another command works on series {series_id} right now; wait for it or stop it") from error
