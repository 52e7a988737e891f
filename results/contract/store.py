"""The result store: runs committed whole or not at all.

    <root>/runs/<run_id>/{samples,events,criteria}.parquet [report.html]
    <root>/manifests/<run_id>.json

The manifest is written last and makes the run exist; readers list manifests only. That holds on object
stores, too, where a rename is not atomic. Compaction moves runs to packs, which exist by an index
(`results/contract/packs.py`); a run that is there both ways is one run.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from results.contract.files import Files, LocalFiles
from results.contract.manifest import RUN_ID, FileKind, Manifest, ManifestError, StoredFile
from results.contract.packs import HTML, Catalogue, NoRunError, Pack, StoreError
from results.contract.schema import CRITERIA, EVENTS, SAMPLES, TableError, conform, criteria_from_table, criteria_table
from results.contract.tables import api_form, from_parquet, some, to_parquet
from results.contract.verdict import Finding, overall

__all__ = ["ORPHAN_AGE", "SCHEMAS", "NoRunError", "RunData", "Scan", "Store", "StoreError", "difference", "entry_of"]

ORPHAN_AGE = timedelta(hours=1)
SCHEMAS: Mapping[FileKind, pa.Schema] = {"samples": SAMPLES, "events": EVENTS, "criteria": CRITERIA}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunData:
    """Everything of one run, to be committed.

    `report_html` is the report of a program that stores one; the testbed writes its reports from the stored run.
    """

    manifest: Manifest
    samples: pa.Table
    events: pa.Table
    criteria: list[Finding]
    report_html: str | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """All manifests that read well, in order of run id, and a line for each that does not."""

    manifests: tuple[Manifest, ...]
    problems: tuple[str, ...]


class Store:
    """Runs under one root."""

    def __init__(self, files: Files, location: str) -> None:
        self.files = files
        self.location = location
        self.catalogue = Catalogue(files, location)

    @staticmethod
    def open(uri_or_path: str | Path) -> "Store":
        """Return a store at a path, `file:///path` (`file:/path` is the same), or
        `s3://bucket/prefix?region=…&endpoint_override=…` (`s3a://` is the same).

        Nothing is created before the first commit. Raise StoreError for a scheme that is not known, and for a file.
        """
        text = str(uri_or_path)
        if text.startswith("file:/") and not text.startswith("file://"):
            text = text.replace("file:/", "file:///", 1)
        parts = urlsplit(text)
        if isinstance(uri_or_path, Path) or "://" not in text:
            root = Path(text).expanduser().absolute()
            return Store(LocalFiles(_folder(root)), str(root))
        if parts.scheme == "file":
            if parts.netloc not in ("", "localhost"):
                raise StoreError(f"store {text!r}: a file URI has three slashes: file:///path")
            return Store(LocalFiles(_folder(Path(unquote(parts.path)))), text)
        if parts.scheme in ("s3", "s3a"):
            try:
                filesystem, root_key = fs.FileSystem.from_uri(text.replace("s3a://", "s3://", 1))
            except (pa.ArrowInvalid, OSError) as error:
                raise StoreError(f"store {text!r}: {error}") from error
            return Store(Files(filesystem, PurePosixPath(root_key)), text)
        raise StoreError(f"store {text!r}: scheme {parts.scheme!r} is not known; use a path, file:// or s3://")

    def commit(self, run: RunData) -> str:
        """Write a run and return its id. After a failure or a kill at any point it is there whole or not at all.

        Raise StoreError when the id exists, or when the manifest's verdict is not that of its criteria. Also raise it
        when the store cannot be written, for instance because its disk is full. Nothing of the run is left then, nor
        after an interruption before its manifest is there.
        """
        run_id = run.manifest.run_id
        if run.manifest.verdict != (verdict := overall(run.criteria)):
            raise StoreError(
                f"run {run_id}: the manifest says {run.manifest.verdict!r}, its criteria say {verdict!r}; "
                "set the manifest's verdict to overall(criteria)"
            )
        if self.holds(run_id):
            raise StoreError(f"run {run_id} exists in {self.location}; a run is never written twice")
        tables: tuple[tuple[FileKind, pa.Table], ...] = (
            ("samples", conform(run.samples, SAMPLES, "samples")),
            ("events", conform(run.events, EVENTS, "events")),
            ("criteria", criteria_table(run.criteria)),
        )
        try:
            self.files.claim(f"runs/{run_id}")
        except FileExistsError:
            raise StoreError(
                f"run {run_id}: {self.location}/runs/{run_id} is left from a commit that did not finish, "
                "or is being written; commit under a new run id"
            ) from None
        except OSError as error:
            raise self._unwritable(run_id, error) from error
        try:
            self._write(run, tables)
        except BaseException as error:  # also Ctrl-C
            with contextlib.suppress(OSError):  # the first error is the one to report; `orphans` names what stays
                if not self.files.exists(_manifest_path(run_id)):  # else the run is whole
                    self.files.discard(f"runs/{run_id}")
            if isinstance(error, OSError):
                raise self._unwritable(run_id, error) from error
            raise
        return run_id

    def holds(self, run_id: str) -> bool:
        """Return whether a run is committed, packed or not, also one that the index hides."""
        return self.files.exists(_manifest_path(run_id)) or run_id in self.catalogue.places()

    def _write(self, run: RunData, tables: Sequence[tuple[FileKind, pa.Table]]) -> None:
        run_id = run.manifest.run_id
        stored = [self._put(run_id, f"{k}.parquet", k, t.num_rows, to_parquet(run_id, t)) for k, t in tables]
        report = None
        if run.report_html is not None:
            entry = self._put(run_id, "report.html", "report", 0, run.report_html.encode())
            stored.append(entry)
            report = entry.path
        manifest = replace(run.manifest, files=tuple(stored), report=report)
        self._check_files(manifest)
        self.files.put(_manifest_path(run_id), manifest.to_json().encode())

    def _unwritable(self, run_id: str, error: OSError) -> StoreError:
        return StoreError(
            f"run {run_id} is not committed: {self.location} cannot be written: {error.strerror or error}; "
            "free space there, or give another store with --store"
        )

    def unpacked(self) -> list[str]:
        """Return the ids of runs that have a manifest of their own, packed since or not, by the manifests' names."""
        names = [PurePosixPath(f.path) for f in self.files.list("manifests")]
        return sorted(n.stem for n in names if n.suffix == ".json" and RUN_ID.match(n.stem))

    def runs(self) -> list[str]:
        """Return the ids of all runs, oldest first, by names alone."""
        unpacked = self.unpacked()  # first: what a compaction takes from here meanwhile is in the index by then
        return sorted((set(unpacked) | self.catalogue.places().keys()) - self.catalogue.index().hidden())

    def scan(self) -> Scan:
        """Read all manifests. `problems` names each corrupt one; a run that goes meanwhile is in neither."""
        manifests: list[Manifest] = []
        problems: list[str] = [problem] if (problem := self.catalogue.problem()) else []
        for run_id in self.runs():
            try:
                manifests.append(self.manifest(run_id))
            except NoRunError:
                continue
            except StoreError as error:
                problems.append(str(error))
        return Scan(tuple(manifests), tuple(problems))

    def manifest(self, run_id: str) -> Manifest:
        """Return a run's manifest. Raise NoRunError when there is none (any more), StoreError when it is corrupt."""
        path = _manifest_path(run_id)
        pack: Pack | None = None
        for _ in range(2):  # a compaction may move the run between the reads of the index and of the manifest
            index, pack = self.catalogue.index(), self.catalogue.places().get(run_id)
            if why := index.aside.get(run_id):
                raise NoRunError(f"run {run_id} was set aside in {self.location}/aside/{run_id}: {why}")
            if run_id in index.hidden():
                raise NoRunError(f"no run {run_id} in {self.location}")
            where = f"{self.location}/{f'{pack.folder}: {run_id}' if pack else path}"
            try:
                if pack:
                    manifest = self.catalogue.manifest(pack, run_id)
                else:
                    manifest = Manifest.from_json(self.files.read(path), where)
            except FileNotFoundError:
                continue
            except ManifestError as error:
                raise StoreError(f"corrupt manifest {error}") from error
            except (ValueError, OSError) as error:
                raise StoreError(f"corrupt manifest {where}: {error}") from error
            if manifest.run_id != run_id:
                raise StoreError(f"corrupt manifest {where}: it says run_id {manifest.run_id!r}")
            return manifest
        if pack is not None and pack == self.catalogue.places().get(run_id):
            raise StoreError(f"run {run_id}: {self.location}/{pack.folder} is missing")
        raise NoRunError(f"no run {run_id} in {self.location}")

    def samples(self, run_id: str) -> pa.Table:
        """Return the run's samples (schema SAMPLES). Raise as `table` does."""
        return self.table(run_id, "samples")

    def events(self, run_id: str) -> pa.Table:
        """Return the run's events (schema EVENTS). Raise as `table` does."""
        return self.table(run_id, "events")

    def criteria(self, run_id: str) -> list[Finding]:
        """Return the run's criteria as they were judged when it was recorded. Raise as `table` does."""
        table = self.table(run_id, "criteria")
        try:
            return criteria_from_table(table)
        except ValueError as error:
            raise StoreError(f"run {run_id}: its criteria are damaged: {error}") from error

    def table(self, run_id: str, kind: FileKind, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the table of that kind, of the schema of the same name, or those columns of it.

        Raise `NoRunError` when the store has no such run, and `StoreError` when its files are missing or damaged.
        """
        return self._settled(run_id, lambda manifest: self.table_of(manifest, kind, columns))

    def report(self, run_id: str) -> str | None:
        """Return the run's HTML report, None when it was committed without one."""

        def read(manifest: Manifest) -> str | None:
            entry = entry_of(manifest, "report")
            return None if entry is None else self.bytes_of(manifest, entry).decode(errors="replace")

        return self._settled(run_id, read)

    def verify(self, run_id: str) -> None:
        """Read every file of the run and compare size and sha256. Raise StoreError naming all that differ."""
        self._settled(run_id, self._check_files)

    def _settled(self, run_id: str, read: Callable[[Manifest], T]) -> T:
        """Return what a reader finds; look up once more what it misses because a compaction moved it."""
        manifest = self.manifest(run_id)
        try:
            return read(manifest)
        except StoreError:
            again = self.manifest(run_id)
            if again.files == manifest.files:
                raise
            return read(again)

    def uris(self, kind: FileKind, run_ids: Iterable[str] | None = None) -> list[str]:
        """Return the Parquet files with that table of all runs, or of those; each once, for Spark and duckdb.

        A file may hold other runs as well when `run_ids` are given: filter by the column `run_id` then.
        """
        wanted = set(self.runs() if run_ids is None else run_ids)
        places = self.catalogue.places()
        paths = {f"{places[r].folder}/{kind}.parquet" if r in places else f"runs/{r}/{kind}.parquet" for r in wanted}
        # The query of an object store's URI names its endpoint; a folder's name may contain any character.
        root = (self.location.split("?")[0] if "://" in self.location else self.location).rstrip("/")
        return [f"{root}/{path}" for path in sorted(paths)]

    def orphans(self, now: datetime | None = None) -> list[str]:
        """Return the ids of leftovers: `runs/<id>` without a manifest whose newest file is older than an hour."""
        known = set(self.unpacked())
        newest: dict[str, datetime] = {}
        for found in self.files.list("runs"):
            run_id = PurePosixPath(found.path).parts[1]
            newest[run_id] = max(found.modified, newest.get(run_id, found.modified))
        limit = (now or datetime.now(UTC)) - ORPHAN_AGE
        return sorted(r for r, modified in newest.items() if r not in known and modified < limit)

    def unfinished_files(self, run_id: str) -> list[str]:
        """Return the files of a run whose commit did not finish (or has not yet); none of a run that is whole."""
        found = [f.path for f in self.files.list("runs") if PurePosixPath(f.path).parts[1] == run_id]
        if self.holds(run_id):
            found = []
        # The manifest may lie there under the name that it has while it is written.
        name = PurePosixPath(_manifest_path(run_id)).name
        return found + [
            f.path for f in self.files.list("manifests") if PurePosixPath(f.path).name.startswith(f".{name}.")
        ]

    def discard(self, run_id: str) -> None:
        """Remove the paths that `unfinished_files` returns. Only for the run of a writer that is known to be dead."""
        for path in self.unfinished_files(run_id):
            self.files.discard(path)
        if not self.holds(run_id):
            self.files.discard(f"runs/{run_id}")

    def _put(self, run_id: str, name: str, kind: FileKind, rows: int, data: bytes) -> StoredFile:
        path = f"runs/{run_id}/{name}"
        self.files.put(path, data)
        return StoredFile(path, kind, rows, len(data), hashlib.sha256(data).hexdigest())

    def table_of(self, manifest: Manifest, kind: FileKind, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table, or some columns of it, from where this manifest says. Raise StoreError when it differs."""
        entry = entry_of(manifest, kind)
        if entry is None:
            raise StoreError(f"run {manifest.run_id}: its manifest lists no {kind} file")
        where, schema = f"{self.location}/{entry.path}", SCHEMAS[kind]
        if entry.packed:
            return self._packed_rows(manifest, entry, some(schema, columns))
        try:
            return from_parquet(self.bytes_of(manifest, entry), manifest.run_id, schema, where, columns)
        except TableError as error:
            raise StoreError(f"run {manifest.run_id}: {error}") from error

    def bytes_of(self, manifest: Manifest, entry: StoredFile) -> bytes:
        """Return a run's file that is in no pack, or its report. Raise StoreError when it is not as it was stored."""
        where = f"{self.location}/{entry.path}"
        if entry.packed:
            table = self._packed_rows(manifest, entry, HTML)
            data = table["html"][0].as_py() if table.num_rows else b""
        else:
            try:
                data = self.files.read(entry.path)
            except FileNotFoundError:
                raise StoreError(f"{where} is missing") from None
            except OSError as error:
                raise StoreError(f"{where} cannot be read: {error.strerror or error}") from error
        if problem := difference(data, entry.bytes, entry.sha256):
            raise StoreError(f"{where} {problem}")
        return data

    def _packed_rows(self, manifest: Manifest, entry: StoredFile, schema: pa.Schema) -> pa.Table:
        where, run_id = f"{self.location}/{entry.path}", manifest.run_id
        try:
            found = self.catalogue.rows(entry.path, run_id, schema.names)
            table = schema.empty_table() if found is None else api_form(found, run_id, schema, where)
        except FileNotFoundError:
            raise StoreError(f"{where} is missing") from None
        except TableError as error:
            raise StoreError(f"run {run_id}: {error}") from error
        except (ValueError, OSError) as error:
            raise StoreError(f"run {run_id}: {where}: {' '.join(str(error).split())}") from error
        if entry.kind != "report" and table.num_rows != entry.rows:
            raise StoreError(f"run {run_id}: {where} has {table.num_rows} rows of it, the manifest says {entry.rows}")
        return table

    def _check_files(self, manifest: Manifest) -> None:
        problems = []
        for entry in manifest.files:
            try:
                if entry.packed and entry.kind != "report":
                    self.table_of(manifest, entry.kind)
                else:
                    self.bytes_of(manifest, entry)
            except StoreError as error:
                problems.append(str(error))
        if problems:
            raise StoreError(f"run {manifest.run_id}: " + "; ".join(problems))


def difference(data: bytes, size: int, sha256: str) -> str | None:
    """Return how bytes differ from what a manifest says of them; None when they do not."""
    if len(data) != size:
        return f"has {len(data)} bytes, the manifest says {size}"
    if (digest := hashlib.sha256(data).hexdigest()) != sha256:
        return f"has sha256 {digest}, the manifest says {sha256}"
    return None


def entry_of(manifest: Manifest, kind: FileKind) -> StoredFile | None:
    """Return the run's file of that kind."""
    return next((f for f in manifest.files if f.kind == kind), None)


def _folder(root: Path) -> Path:
    if root.exists() and not root.is_dir():
        raise StoreError(f"{root} is a file, not a store; `testbed results import` puts an archive into one")
    return root


def _manifest_path(run_id: str) -> str:
    if not RUN_ID.match(run_id):
        raise StoreError(f"{run_id!r} is not a run id; they look like 20261121T181500Z-kip73-two-node-ab12cd")
    return f"manifests/{run_id}.json"
