"""Artefacts that are made once: built in a temporary folder, renamed when complete, verified by digest at use.

An artefact is a folder `<cache>/<name>/<key>` with its record `.artefact.json`, so that one rename creates both. A
kill during the build leaves only a temporary sibling, which the next builder removes.
"""

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from results.contract import durable
from results.contract.texts import shortened
from testbed.errors import SoftwareError
from testbed.paths import cache_dir

LOG = logging.getLogger(__name__)
RECORD = ".artefact.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The record of one file of an artefact."""

    sha256: str
    size_bytes: int


def artefact(name: str, key: str, build: Callable[[Path], None]) -> Path:
    """Return the folder of the artefact `name`/`key`; when it is missing, `build(empty folder)` makes it first.

    Every call verifies every file against its recorded digest (0.1 s for 100 MB).
    A damaged artefact is logged as a warning and rebuilt.
    Safe for any number of processes and threads: one builds, the others wait for it.
    An exception of `build` is passed on, an OSError (a full disk) as SoftwareError; the artefact does not exist then.
    """
    final = _place(name, key)
    if final.is_dir() and not _damage(final):
        return final
    with durable.lock(final.parent / f".{key}.lock"):
        for leftover in final.parent.glob(f".{final.name}.tmp-*"):  # of a dead process: this one holds the lock
            shutil.rmtree(leftover)
        if final.is_dir():
            damage = _damage(final)
            if not damage:
                return final
            LOG.warning("%s is damaged (%s): making it again", final, "; ".join(shortened(damage, 3)))
            doomed = _temporary(final, "damaged")
            final.rename(doomed)
            shutil.rmtree(doomed)
        fresh = _temporary(final, str(os.getpid()))
        try:
            fresh.mkdir()
            build(fresh)
            _seal(fresh)
            fresh.rename(final)
        except BaseException as error:
            shutil.rmtree(fresh, ignore_errors=True)
            if isinstance(error, OSError):
                what = f"{final} cannot be made: {error.strerror or error}"
                raise SoftwareError(f"{what}; free space there, or set XDG_CACHE_HOME to another place") from error
            raise
        durable.sync(final.parent)
    return final


def existing(name: str, key: str) -> Path | None:
    """Return the artefact's folder when it exists and is intact, else None; build nothing."""
    final = _place(name, key)
    return final if final.is_dir() and not _damage(final) else None


def digests(folder: Path) -> dict[str, str]:
    """Return the recorded sha256 of each file of an artefact, by its path relative to the folder."""
    return {path: record.sha256 for path, record in _record(folder).items()}


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file's content, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_of(files: Iterable[tuple[str, str]]) -> str:
    """Return one sha256 over the names and sha256s of files, in their order."""
    return hashlib.sha256("".join(f"{digest}  {name}\n" for name, digest in files).encode()).hexdigest()


def _place(name: str, key: str) -> Path:
    for part in (name, key):
        if not _NAME.fullmatch(part):
            raise SoftwareError(f"{part!r} cannot name an artefact: letters, digits and . _ + - only")
    return cache_dir() / name / key


def _temporary(final: Path, suffix: str) -> Path:
    return final.parent / f".{final.name}.tmp-{suffix}"


def _seal(folder: Path) -> None:
    records = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        record = FileRecord(sha256_of(path), path.stat().st_size)
        records[str(path.relative_to(folder))] = asdict(record)
        durable.sync(path)
    if not records:
        raise SoftwareError(f"{folder}: nothing was built")
    durable.write(folder / RECORD, json.dumps(records, indent=1, sort_keys=True))
    for path in (folder, *(p for p in folder.rglob("*") if p.is_dir())):
        durable.sync(path)


def _record(folder: Path) -> dict[str, FileRecord]:
    document = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    return {path: FileRecord(str(record["sha256"]), int(record["size_bytes"])) for path, record in document.items()}


def _damage(folder: Path) -> list[str]:
    try:
        records = _record(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return [f"its record {RECORD} cannot be read: {error}"]
    found = []
    for relative, record in records.items():
        path = folder / relative
        try:
            size_bytes = path.stat().st_size
            if size_bytes != record.size_bytes:
                found.append(f"{relative}: {size_bytes} bytes, not {record.size_bytes}")
            elif sha256_of(path) != record.sha256:
                found.append(f"{relative}: its sha256 is not the one recorded")
        except OSError as error:
            found.append(f"{relative}: {error.strerror}")
    return found
