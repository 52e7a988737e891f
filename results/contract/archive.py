"""Runs in one file, to be carried from store to store: a tar of a store that has just those.

    archive.json                 run id -> sha256 of its manifest, so that a cut archive is known to be one;
                                 and the same of what is in canaries/
    runs/<run_id>/…              the run's files
    canaries/<run_id>.json       what was read of the machine beside it, if anything was, then
    manifests/<run_id>.json      its manifest

Whoever unpacks it has a store. An import writes nothing by the names in the archive, and nothing that differs from its
digest; the run is there whole, or not at all, or it was there before.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

from results.contract.canaries import FOLDER, canary_bytes, parse, path_of
from results.contract.catalogue import StoreError, difference
from results.contract.compaction import locked
from results.contract.manifest import RUN_ID, FileKind, Manifest, ManifestError, StoredFile
from results.contract.schema import TableError
from results.contract.store import SCHEMAS, Store, entry_of
from results.contract.tables import from_parquet, same, to_parquet

HEAD = "archive.json"
ARCHIVE_SCHEMA = 1
FILES: Mapping[str, FileKind] = {
    "samples.parquet": "samples",
    "events.parquet": "events",
    "criteria.parquet": "criteria",
    "report.html": "report",
}


class ArchiveError(Exception):
    """The file is no archive of runs; the message says why."""


@dataclass(slots=True)
class Imported:
    """Run ids that came, and that were there already; a line for each that did neither."""

    new: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def export_runs(store: Store, run_ids: Sequence[str], target: Path) -> tuple[list[str], list[str]]:
    """Write an archive of those runs to `target`, whole or not at all; returns the runs in it, and a line for each
    other one, which is left out: it is damaged, or went meanwhile. The same runs make the same bytes.

    Raises OSError when `target` cannot be written.
    """
    problems: list[str] = []
    texts: dict[str, bytes] = {}
    for run_id in sorted(set(run_ids)):
        try:
            texts[run_id] = _alone(store, run_id)[0].to_json().encode()
        except StoreError as error:
            problems.append(str(error))
    beside = _beside(store, texts, problems)
    aside = target.with_name(f".{target.name}.partial")
    try:
        # The head, which comes first, names a run that may go before its turn comes: then once more without it.
        while lost := _write(store, aside, texts, beside):
            problems.append(lost.problem)
            del texts[lost.run_id]
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)
    return list(texts), problems


@dataclass(frozen=True, slots=True)
class _Lost:
    """A run that could be read once, and then no more."""

    run_id: str
    problem: str


def _write(store: Store, target: Path, texts: Mapping[str, bytes], beside: Mapping[str, bytes]) -> _Lost | None:
    """The archive of these runs, by their manifests; or the run of which it has no files."""
    own = {run_id: beside[run_id] for run_id in texts if run_id in beside}
    head = {"schema": ARCHIVE_SCHEMA, "runs": _digests(texts), FOLDER: _digests(own)}
    with tarfile.open(target, "w") as tar:
        _add(tar, HEAD, json.dumps(head, indent=1).encode())
        for run_id, text in texts.items():
            try:
                _, files = _alone(store, run_id)
            except StoreError as error:
                return _Lost(run_id, str(error))
            for path, data in files.items():
                _add(tar, path, data)
            if run_id in own:
                _add(tar, path_of(run_id), own[run_id])
            _add(tar, f"manifests/{run_id}.json", text)
    return None


def import_runs(store: Store, source: Path) -> Imported:
    """Put an archive's runs into a store. A run that is there stays as it is; when it is another one under the same
    id, that is a problem. A damaged run, or a cut archive, loses no other run; nor does a damaged head, without which
    each run is taken for what its own manifest says of it.

    Raises ArchiveError for a file that is no archive, OSError when it cannot be read, and StoreError when the store
    cannot be written or is locked; what came by then is there, and importing again brings the rest.
    """
    done = Imported()
    promised = _Promised({}, {})
    pending: dict[str, dict[str, bytes]] = {}
    beside: dict[str, bytes] = {}
    with source.open("rb") as stream, locked(store):
        try:
            for path, data in _members(source, stream):
                if str(path) == HEAD:
                    promised = promised.and_more(_promised(data, source, done.problems))
                elif path.parts[0] == "runs" and path.name in FILES:
                    pending.setdefault(path.parts[1], {})[path.name] = data
                elif path.parts[0] == FOLDER and not promised.damaged:
                    beside[path.stem] = data
                elif path.parts[0] == "manifests":
                    run_id = path.stem
                    files, read = pending.pop(run_id, {}), beside.pop(run_id, None)
                    _receive(store, run_id, data, files, read, promised, done)
        except tarfile.TarError as error:
            done.problems.append(f"{source} is cut or damaged: {error}")
    seen = {*done.new, *done.known, *(p.split()[1].rstrip(":") for p in done.problems if p.startswith("run "))}
    done.problems += [f"run {r}: not in {source}, which should have it" for r in promised.runs if r not in seen]
    return done


def _members(source: Path, stream: IO[bytes]) -> Iterator[tuple[PurePosixPath, bytes]]:
    """The archive's files in their order. Names that are not those of an archive are passed over. So is a
    header that is damaged: the file that it was of is missing then, and no other."""
    try:
        # Without `ignore_zeros` a damaged header is the end; with it the next one is searched for behind it.
        tar = tarfile.open(fileobj=stream, mode="r:", ignore_zeros=True)  # noqa: SIM115 - what cannot be opened is told otherwise than what is cut
    except tarfile.TarError as error:
        raise ArchiveError(f"{source} is no archive of runs: {error}") from error
    with tar:
        first = True
        for member in tar:
            path = PurePosixPath(member.name)
            if first and str(path) != HEAD:
                raise ArchiveError(f"{source} is no archive of runs: it begins with {member.name}, not with {HEAD}")
            first = False
            content = tar.extractfile(member) if member.isfile() else None
            wanted = str(path) == HEAD or (
                len(path.parts) in (2, 3)
                and path.parts[0] in ("runs", "manifests", FOLDER)
                and _run_of(path) is not None
            )
            if content is None or not wanted:
                continue
            data = content.read()
            if len(data) != member.size:
                raise tarfile.ReadError(f"{member.name} ends early")
            yield path, data
        if first:
            raise ArchiveError(f"{source} is no archive of runs: there is no {HEAD} in it")


def _run_of(path: PurePosixPath) -> str | None:
    run_id = path.parts[1] if path.parts[0] == "runs" else path.stem
    return run_id if RUN_ID.match(run_id) else None


@dataclass(frozen=True, slots=True)
class _Promised:
    """Run id → sha256: of each run's manifest, and of what was read beside it. A `damaged` head promises nothing."""

    runs: Mapping[str, str]
    canaries: Mapping[str, str]
    damaged: bool = False

    def and_more(self, other: "_Promised") -> "_Promised":
        """Of archives that were put one behind the other."""
        runs, beside = {**other.runs, **self.runs}, {**other.canaries, **self.canaries}
        return _Promised(runs, beside, self.damaged or other.damaged)


def _promised(data: bytes, source: Path, problems: list[str]) -> _Promised:
    try:
        head = json.loads(data)
        if head["schema"] != ARCHIVE_SCHEMA:
            raise ArchiveError(f"{source}: archive of schema {head['schema']!r}; this version reads {ARCHIVE_SCHEMA}")
        runs, beside = head["runs"], head.get(FOLDER, {})  # archives had none of the latter once
        return _Promised({str(r): str(d) for r, d in runs.items()}, {str(r): str(d) for r, d in beside.items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problems.append(
            f"{source}: {HEAD} is damaged: {type(error).__name__}: {error}; which runs were in the archive is not "
            "known, and what canaries read, which only it vouches for, is left out"
        )
        return _Promised({}, {}, damaged=True)


def _receive(
    store: Store,
    run_id: str,
    text: bytes,
    files: Mapping[str, bytes],
    beside: bytes | None,
    promised: _Promised,
    done: Imported,
) -> None:
    try:
        for what, data, digest in (
            ("manifest", text, promised.runs.get(run_id)),
            ("canaries", beside, promised.canaries.get(run_id)),
        ):
            if digest is not None and data is None:
                raise StoreError(f"its {what} are missing")
            if data is not None and digest is not None and hashlib.sha256(data).hexdigest() != digest:
                raise StoreError(f"its {what} differs from what the archive says of it")
        (done.new if ingest(store, run_id, text, files, beside) else done.known).append(run_id)
    except StoreError as error:
        done.problems.append(f"run {run_id}: {error}")


def ingest(store: Store, run_id: str, text: bytes, files: Mapping[str, bytes], beside: bytes | None = None) -> bool:
    """Put one run into the store, under its lock; `files` by name (`samples.parquet`, …), `beside` what canaries
    read. False: it was there.

    Raises StoreError when it is damaged, or when another run has that id; then the store is as it was.
    """
    try:
        manifest = Manifest.from_json(text, "its manifest")
    except ManifestError as error:
        raise StoreError(str(error)) from error
    if manifest.run_id != run_id:
        raise StoreError(f"its manifest says run_id {manifest.run_id!r}")
    if beside is not None:
        parse(beside, "its canaries")
    tables = _tables(manifest, files)
    index = store.catalogue.index()
    if run_id in store.runs():
        _compare(store, manifest, tables)
        _put_beside(store, run_id, beside, new=False)
        return False
    if run_id in index.hidden():  # it comes back: what is left of it goes first
        store.files.discard(f"manifests/{run_id}.json")
        store.files.discard(f"runs/{run_id}")
        kept = {k: {r: s for r, s in getattr(index, k).items() if r != run_id} for k in ("dropped", "aside")}
        store.catalogue.write(index.next(**kept))
    entries = []
    for entry in manifest.files:
        name = PurePosixPath(entry.path).name
        store.files.put(f"runs/{run_id}/{name}", files[name])
        entries.append(replace(entry, path=f"runs/{run_id}/{name}"))
    report = next((e.path for e in entries if e.kind == "report"), None)
    document = replace(manifest, files=tuple(entries), report=report).to_json()
    _put_beside(store, run_id, beside, new=True)
    store.files.put(f"manifests/{run_id}.json", document.encode())
    return True


def _tables(manifest: Manifest, files: Mapping[str, bytes]) -> dict[FileKind, Any]:
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


def _compare(store: Store, manifest: Manifest, tables: Mapping[FileKind, Any]) -> None:
    there = store.manifest(manifest.run_id)
    other = ["manifest"] if _said(there) != _said(manifest) else []
    other += [kind for kind, table in tables.items() if not same(store.table(manifest.run_id, kind), table)]
    if other:
        raise StoreError(f"{store.location} has another run of that id: {', '.join(other)} differ; it stays")


def _put_beside(store: Store, run_id: str, beside: bytes | None, *, new: bool) -> None:
    """What is there beside a known run stays: more may have been known when it was written."""
    if beside is not None and (new or canary_bytes(store, run_id) is None):
        store.files.put(path_of(run_id), beside)


def _said(manifest: Manifest) -> Manifest:
    return replace(manifest, files=(), report=None)


def _beside(store: Store, run_ids: Iterable[str], problems: list[str]) -> dict[str, bytes]:
    """What canaries read beside each run; what cannot be read is left out, and a line of `problems`."""
    found = {}
    for run_id in run_ids:
        if (data := canary_bytes(store, run_id)) is not None:
            try:
                parse(data, f"{store.location}/{path_of(run_id)}")
            except StoreError as error:
                problems.append(str(error))
            else:
                found[run_id] = data
    return found


def _digests(texts: Mapping[str, bytes]) -> dict[str, str]:
    return {run_id: hashlib.sha256(text).hexdigest() for run_id, text in texts.items()}


def _alone(store: Store, run_id: str) -> tuple[Manifest, dict[str, bytes]]:
    """A run as if it had never been packed: its manifest, and its files by path. Raises StoreError when damaged."""
    manifest = store.manifest(run_id)
    files: dict[str, bytes] = {}
    entries = []
    for kind in SCHEMAS:
        table = store.table(run_id, kind)
        path, data = f"runs/{run_id}/{kind}.parquet", to_parquet(run_id, table)
        files[path] = data
        entries.append(StoredFile(path, kind, table.num_rows, len(data), hashlib.sha256(data).hexdigest()))
    report = None
    if (entry_of(manifest, "report")) is not None:
        report = f"runs/{run_id}/report.html"
        files[report] = (store.report(run_id) or "").encode()
        digest = hashlib.sha256(files[report]).hexdigest()
        entries.append(StoredFile(report, "report", 0, len(files[report]), digest))
    return replace(manifest, files=tuple(entries), report=report), files


def _add(tar: tarfile.TarFile, path: str, data: bytes) -> None:
    member = tarfile.TarInfo(path)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))
