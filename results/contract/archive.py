"""Archives: runs in one file, to be carried from store to store; a tar of a store that has just those runs.

    archive.json                 run id → sha256 of its manifest, so that a cut archive is detected;
                                 and the same of the files in canaries/
    runs/<run_id>/…              the run's files
    canaries/<run_id>.json       the readings of the machine taken with the run, if any, then
    manifests/<run_id>.json      its manifest

An import takes no path from the archive, and nothing that differs from its digest. It leaves each run whole,
or absent, or as it was before.
"""

import hashlib
import io
import json
import secrets
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

from results.contract import durable
from results.contract.canaries import FOLDER, canary_bytes, parse, path_of
from results.contract.maintenance import locked
from results.contract.manifest import RUN_ID, FileKind, Manifest, ManifestError, StoredFile
from results.contract.packs import located
from results.contract.schema import TableError
from results.contract.store import SCHEMAS, Store, StoreError, difference
from results.contract.tables import from_parquet, same, to_parquet
from results.contract.untrusted import parse_json

HEAD = "archive.json"
ARCHIVE_SCHEMA = 1
MOST_BYTES = 2**30
"""Of one file of a run. The samples of an hour on six brokers have some 10 MB."""
FILES: Mapping[str, FileKind] = {
    "samples.parquet": "samples",
    "events.parquet": "events",
    "criteria.parquet": "criteria",
    "report.html": "report",
}


class ArchiveError(Exception):
    """The file is no archive of runs; the message says why."""


@dataclass(slots=True)
class ImportResult:
    """Ids of the imported runs and of the runs that existed; a line for each other run."""

    new: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def export_runs(store: Store, run_ids: Sequence[str], target: Path) -> tuple[list[str], list[str]]:
    """Write an archive of those runs to `target`, whole or not at all. Return the runs in it, and a line for each
    other one: it is damaged, or was removed meanwhile. The same runs make the same bytes.

    Raise OSError when `target` cannot be written.
    """
    problems: list[str] = []
    head: dict[str, Any] = {"schema": ARCHIVE_SCHEMA, "runs": {}, FOLDER: {}}
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}{durable.TEMPORARY}")
    try:
        # The head comes first in the archive and is known last: the rest is written to a file of its own before.
        with tempfile.TemporaryFile(dir=target.parent) as rest, partial.open("wb") as out:
            with tarfile.open(fileobj=rest, mode="w") as tar:
                for run_id in sorted(set(run_ids)):
                    try:
                        text, files = _files_of(store, run_id)
                    except StoreError as error:
                        problems.append(str(error))
                        continue
                    if (readings := _readings(store, run_id, problems)) is not None:
                        files[path_of(run_id)] = readings
                        head[FOLDER][run_id] = hashlib.sha256(readings).hexdigest()
                    for path, data in {**files, f"manifests/{run_id}.json": text}.items():
                        tar.addfile(_member(path, data), io.BytesIO(data))
                    head["runs"][run_id] = hashlib.sha256(text).hexdigest()
            data = json.dumps(head, indent=1).encode()
            out.write(_member(HEAD, data).tobuf() + data + bytes(-len(data) % tarfile.BLOCKSIZE))
            rest.seek(0)
            shutil.copyfileobj(rest, out)
        durable.sync(partial)
        partial.replace(target)
        durable.sync(target.parent)
    finally:
        partial.unlink(missing_ok=True)
    return list(head["runs"]), problems


def _member(path: str, data: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.size = len(data)
    return member


def _files_of(store: Store, run_id: str) -> tuple[bytes, dict[str, bytes]]:
    """Return a run's manifest and its files by path, as if it were in no pack. Raise StoreError when damaged."""
    manifest = located(store.manifest(run_id), None)
    files: dict[str, bytes] = {}
    entries = []
    for entry in manifest.files:
        if entry.kind == "report":
            data, rows = (store.report(run_id) or "").encode(), 0
        else:
            table = store.table(run_id, entry.kind)
            data, rows = to_parquet(run_id, table), table.num_rows
        files[entry.path] = data
        entries.append(StoredFile(entry.path, entry.kind, rows, len(data), hashlib.sha256(data).hexdigest()))
    return replace(manifest, files=tuple(entries)).to_json().encode(), files


def _readings(store: Store, run_id: str, problems: list[str]) -> bytes | None:
    """Return the machine's readings taken with a run, None when there are none; damaged ones are a problem."""
    data = canary_bytes(store, run_id)
    try:
        if data is not None:
            parse(data, f"{store.location}/{path_of(run_id)}")
    except StoreError as error:
        problems.append(str(error))
        return None
    return data


def import_runs(
    store: Store, source: Path, noted: Callable[[str], AbstractContextManager[None]] = lambda _run_id: nullcontext()
) -> ImportResult:
    """Put an archive's runs into a store. An existing run stays as it is; another one under the same id is a problem.
    A damaged run, head or member, or a cut archive, loses no other run: each manifest vouches for its files.
    `noted` surrounds the writing of a run, so that another program can find what a killed one has half written.

    Raise ArchiveError for a file that is no archive, OSError when it cannot be read, and StoreError when the store
    cannot be written or is locked; the runs imported by then exist, and importing again adds the rest.
    """
    done = ImportResult()
    head: dict[str, dict[str, str]] = {"runs": {}, FOLDER: {}}
    pending: dict[str, dict[str, bytes]] = {}
    seen: set[str] = set()
    with source.open("rb") as stream, locked(store):
        try:
            for path, data in _members(source, stream):
                if str(path) == HEAD:  # more than one: archives that were put one behind the other
                    for name, digests in _head(data, source, done.problems).items():
                        head[name] |= digests
                    continue
                run_id = path.parts[1] if path.parts[0] == "runs" else path.stem
                files = pending.setdefault(run_id, {})
                if path.parts[0] == "manifests":
                    seen.add(run_id)
                    with noted(run_id):
                        _receive(store, run_id, data, pending.pop(run_id), head, done)
                elif path.parts[0] == FOLDER or path.name in FILES:
                    files[FOLDER if path.parts[0] == FOLDER else path.name] = data
        except tarfile.TarError as error:
            done.problems.append(f"{source} is cut or damaged: {error}")
    done.problems += [f"run {r}: not in {source}, which should have it" for r in head["runs"] if r not in seen]
    return done


def _members(source: Path, stream: IO[bytes]) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Return the archive's files of runs, in their order. A damaged tar header loses its own file and no other."""
    try:
        # `ignore_zeros` makes tarfile search for the next header behind a damaged one, and behind an archive's end.
        tar = tarfile.open(fileobj=stream, mode="r:", ignore_zeros=True)  # noqa: SIM115
    except (tarfile.TarError, ValueError) as error:
        raise ArchiveError(f"{source} is no archive of runs: {error}") from error
    with tar:
        first = True
        while (member := _next(tar)) is not None:
            path = PurePosixPath(member.name)
            if first and str(path) != HEAD:
                raise ArchiveError(f"{source} is no archive of runs: it begins with {member.name}, not with {HEAD}")
            first = False
            # A sparse file of some bytes has any size when it is read; an export writes none.
            content = tar.extractfile(member) if member.isfile() and not member.issparse() else None
            if content is None or not (str(path) == HEAD or _is_of_a_run(path)):
                continue
            if member.size > MOST_BYTES:
                raise tarfile.ReadError(f"{member.name} has {member.size} bytes; allowed are {MOST_BYTES}")
            data = content.read()
            if len(data) != member.size:
                raise tarfile.ReadError(f"{member.name} ends early")
            yield path, data
        if first:
            raise ArchiveError(f"{source} is no archive of runs: there is no {HEAD} in it")


def _next(tar: tarfile.TarFile) -> tarfile.TarInfo | None:
    try:
        return tar.next()
    except (ValueError, MemoryError) as error:  # tarfile checks no number of an extended header, nor its length
        raise tarfile.ReadError(f"a header is damaged: {error or 'it is too long'}") from error


def _is_of_a_run(path: PurePosixPath) -> bool:
    match path.parts:
        case ("runs", run_id, _):
            return bool(RUN_ID.match(run_id))
        case ("manifests" | "canaries", _):
            return bool(RUN_ID.match(path.stem))
    return False


def _head(data: bytes, source: Path, problems: list[str]) -> dict[str, dict[str, str]]:
    """Return the digests in an archive's head; none when it is damaged, which is a problem."""
    try:
        head = parse_json(data)
        if head["schema"] != ARCHIVE_SCHEMA:
            raise ArchiveError(f"{source}: archive of schema {head['schema']!r}; this version reads {ARCHIVE_SCHEMA}")
        digests = {"runs": head["runs"], FOLDER: head.get(FOLDER, {})}  # early archives have no canaries
        return {name: {str(r): str(d) for r, d in each.items()} for name, each in digests.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problems.append(
            f"{source}: {HEAD} is damaged: {type(error).__name__}: {error}; which runs were in the archive is not "
            "known, and what canaries read, which only it vouches for, is left out"
        )
        return {}


def _receive(
    store: Store,
    run_id: str,
    text: bytes,
    files: dict[str, bytes],
    head: Mapping[str, Mapping[str, str]],
    done: ImportResult,
) -> None:
    readings = files.pop(FOLDER, None)
    try:
        for what, data, digest in (
            ("manifest", text, head["runs"].get(run_id)),
            ("canaries", readings, head[FOLDER].get(run_id)),
        ):
            if digest is not None and data is None:
                raise StoreError(f"its {what} are missing")
            if data is not None and digest is not None and hashlib.sha256(data).hexdigest() != digest:
                raise StoreError(f"its {what} differs from what the archive says of it")
        if run_id not in head[FOLDER]:
            readings = None
        (done.new if _ingest(store, run_id, text, files, readings) else done.known).append(run_id)
    except StoreError as error:
        done.problems.append(f"run {run_id}: {error}")


def _ingest(store: Store, run_id: str, text: bytes, files: Mapping[str, bytes], readings: bytes | None) -> bool:
    """Put one run into the store, under its lock; return whether it is new. `files` are by name.

    Raise StoreError when it is damaged, or when another run has that id; then the store is as it was.
    """
    try:
        manifest = Manifest.from_json(text, "its manifest")
    except ManifestError as error:
        raise StoreError(str(error)) from error
    if manifest.run_id != run_id:
        raise StoreError(f"its manifest says run_id {manifest.run_id!r}")
    if readings is not None:
        parse(readings, "its canaries")
    tables = _tables(manifest, files)
    manifest = located(manifest, None)
    index = store.catalogue.index()
    known = store.holds(run_id) and run_id not in index.hidden()
    if known:
        there = replace(store.manifest(run_id), files=(), report=None)
        other = ["manifest"] if there != replace(manifest, files=(), report=None) else []
        other += [kind for kind, table in tables.items() if not same(store.table(run_id, kind), table)]
        if other:
            raise StoreError(f"{store.location} has another run of that id: {', '.join(other)} differ; it stays")
    if readings is not None and (not known or canary_bytes(store, run_id) is None):
        store.files.put(path_of(run_id), readings)  # existing readings of a known run stay: they may be more
    if known:
        return False
    if run_id in index.hidden():  # it comes back: the leftovers go first
        store.files.discard(f"manifests/{run_id}.json")
        store.files.discard(f"runs/{run_id}")
        kept = {name: {r: s for r, s in getattr(index, name).items() if r != run_id} for name in ("dropped", "aside")}
        store.catalogue.write(**kept)
    for entry in manifest.files:
        store.files.put(entry.path, files[PurePosixPath(entry.path).name])
    store.files.put(f"manifests/{run_id}.json", manifest.to_json().encode())
    return True


def _tables(manifest: Manifest, files: Mapping[str, bytes]) -> dict[FileKind, Any]:
    """Return the run's tables, when `files` are the files that its manifest lists. Raise StoreError."""
    tables: dict[FileKind, Any] = {}
    kinds = [entry.kind for entry in manifest.files]
    if missing := [kind for kind in SCHEMAS if kinds.count(kind) != 1]:
        raise StoreError(f"its manifest does not list {', '.join(missing)} once each")
    for entry in manifest.files:
        name = PurePosixPath(entry.path).name
        if entry.packed or FILES.get(name) != entry.kind:
            raise StoreError(f"its manifest lists {entry.path} as {entry.kind}")
        if name not in files:
            raise StoreError(f"{name} is missing")
        if problem := difference(files[name], entry.bytes, entry.sha256):
            raise StoreError(f"{name} {problem}")
        if entry.kind in SCHEMAS:
            try:
                tables[entry.kind] = from_parquet(files[name], manifest.run_id, SCHEMAS[entry.kind], name)
            except TableError as error:
                raise StoreError(str(error)) from error
    return tables
