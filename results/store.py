"""The result store: runs committed whole or not at all.

    <root>/runs/<run_id>/{samples,events,criteria}.parquet [report.html]
    <root>/manifests/<run_id>.json

The manifest is written last and makes the run exist; readers list manifests only. That holds on object
stores, too, where a rename is not atomic.
"""

import contextlib
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from results.files import Files, LocalFiles, ObjectFiles
from results.manifest import RUN_ID, FileKind, Manifest, ManifestError, StoredFile
from results.schema import CRITERIA, EVENTS, SAMPLES, conform, criteria_from_table, criteria_table
from results.verdict import Criterion, overall

ORPHAN_AGE = timedelta(hours=1)


class StoreError(Exception):
    """The store cannot do what was asked; the message says which run or file, and what to do."""


@dataclass(frozen=True, slots=True)
class RunData:
    """Everything of one run, to be committed; `report_html` is optional."""

    manifest: Manifest
    samples: pa.Table
    events: pa.Table
    criteria: list[Criterion]
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

    @staticmethod
    def open(uri_or_path: str | Path) -> "Store":
        """A store at a path, `file://…`, or `s3://bucket/prefix?region=…&endpoint_override=…`.

        Nothing is created before the first commit. Raises StoreError for a scheme that is not known.
        """
        text = str(uri_or_path)
        parts = urlsplit(text)
        if isinstance(uri_or_path, Path) or "://" not in text:
            root = Path(text).expanduser().absolute()
            return Store(LocalFiles(root), str(root))
        if parts.scheme == "file":
            if parts.netloc not in ("", "localhost"):
                raise StoreError(f"store {text!r}: a file URI has three slashes: file:///path")
            return Store(LocalFiles(Path(unquote(parts.path))), text)
        if parts.scheme == "s3":
            try:
                filesystem, root_key = fs.FileSystem.from_uri(text)
            except (pa.ArrowInvalid, OSError) as error:
                raise StoreError(f"store {text!r}: {error}") from error
            return Store(ObjectFiles(filesystem, root_key), text)
        raise StoreError(f"store {text!r}: scheme {parts.scheme!r} is not known; use a path, file:// or s3://")

    def commit(self, run: RunData) -> str:
        """Write a run; returns its id. After a failure or a kill at any point it is there whole or not at
        all.

        Raises StoreError when the id exists, when the manifest's verdict is not that of its criteria, or when the
        store cannot be written, for instance because its disk is full; then nothing of the run is left.
        """
        run_id = run.manifest.run_id
        if run.manifest.verdict != (verdict := overall(run.criteria)):
            raise StoreError(
                f"run {run_id}: the manifest says {run.manifest.verdict!r}, its criteria say {verdict!r}; "
                "set the manifest's verdict to overall(criteria)"
            )
        if self.files.exists(_manifest_path(run_id)):
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
        except OSError as error:
            with contextlib.suppress(OSError):  # the first error is the one to tell; `orphans` names what stays
                self.files.discard(f"runs/{run_id}")
            raise self._unwritable(run_id, error) from error
        return run_id

    def _write(self, run: RunData, tables: Sequence[tuple[FileKind, pa.Table]]) -> None:
        run_id = run.manifest.run_id
        stored = [self._put(run_id, f"{k}.parquet", k, t.num_rows, _parquet(t)) for k, t in tables]
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
            "make room there, or give another store with --store"
        )

    def runs(self) -> list[str]:
        """The ids of all runs, oldest first, by the manifests' names alone."""
        names = [PurePosixPath(f.path) for f in self.files.list("manifests")]
        return sorted(n.stem for n in names if n.suffix == ".json" and RUN_ID.match(n.stem))

    def scan(self) -> Scan:
        """All manifests read; a corrupt one is named in `problems` and hides no other."""
        manifests: list[Manifest] = []
        problems: list[str] = []
        for run_id in self.runs():
            try:
                manifests.append(self.manifest(run_id))
            except StoreError as error:
                problems.append(str(error))
        return Scan(tuple(manifests), tuple(problems))

    def manifest(self, run_id: str) -> Manifest:
        """A run's manifest; raises StoreError when there is none, or it is corrupt."""
        path = _manifest_path(run_id)
        try:
            manifest = Manifest.from_json(self.files.read(path), f"{self.location}/{path}")
        except FileNotFoundError:
            raise StoreError(f"no run {run_id} in {self.location}") from None
        except ManifestError as error:
            raise StoreError(f"corrupt manifest {error}") from error
        if manifest.run_id != run_id:
            raise StoreError(f"corrupt manifest {self.location}/{path}: it says run_id {manifest.run_id!r}")
        return manifest

    def samples(self, run_id: str) -> pa.Table:
        """The run's samples (schema SAMPLES)."""
        return self._table(run_id, "samples", SAMPLES)

    def events(self, run_id: str) -> pa.Table:
        """The run's events (schema EVENTS)."""
        return self._table(run_id, "events", EVENTS)

    def criteria(self, run_id: str) -> list[Criterion]:
        """The run's criteria as they were judged when it was recorded."""
        return criteria_from_table(self._table(run_id, "criteria", CRITERIA))

    def report(self, run_id: str) -> str | None:
        """The run's HTML report, None when it was committed without one."""
        entry = self._entry(self.manifest(run_id), "report")
        return None if entry is None else self._read_verified(entry).decode()

    def verify(self, run_id: str) -> None:
        """Read every file of the run, compare size and sha256; raises StoreError naming all that differ."""
        self._check_files(self.manifest(run_id))

    def uri_of(self, run_id: str, kind: FileKind) -> str:
        """The path or URI of one file of a run, for readers other than this class (Spark, duckdb)."""
        entry = self._entry(self.manifest(run_id), kind)
        if entry is None:
            raise StoreError(f"run {run_id}: its manifest lists no {kind} file")
        return f"{self.location.split('?')[0].rstrip('/')}/{entry.path}"

    def orphans(self, now: datetime | None = None) -> list[str]:
        """Run ids of leftovers: `runs/<id>` without a manifest whose newest file is older than an hour."""
        known = set(self.runs())
        newest: dict[str, datetime] = {}
        for found in self.files.list("runs"):
            run_id = PurePosixPath(found.path).parts[1]
            newest[run_id] = max(found.modified, newest.get(run_id, found.modified))
        limit = (now or datetime.now(UTC)) - ORPHAN_AGE
        return sorted(r for r, modified in newest.items() if r not in known and modified < limit)

    def _put(self, run_id: str, name: str, kind: FileKind, rows: int, data: bytes) -> StoredFile:
        path = f"runs/{run_id}/{name}"
        self.files.put(path, data)
        return StoredFile(path, kind, rows, len(data), hashlib.sha256(data).hexdigest())

    def _table(self, run_id: str, kind: FileKind, schema: pa.Schema) -> pa.Table:
        entry = self._entry(self.manifest(run_id), kind)
        if entry is None:
            raise StoreError(f"run {run_id}: its manifest lists no {kind} file")
        data = self._read_verified(entry)
        return conform(pq.read_table(io.BytesIO(data)), schema, entry.path)

    @staticmethod
    def _entry(manifest: Manifest, kind: FileKind) -> StoredFile | None:
        return next((f for f in manifest.files if f.kind == kind), None)

    def _read_verified(self, entry: StoredFile) -> bytes:
        if difference := self._difference(entry):
            raise StoreError(difference)
        return self.files.read(entry.path)

    def _check_files(self, manifest: Manifest) -> None:
        differences = [d for f in manifest.files if (d := self._difference(f))]
        if differences:
            raise StoreError(f"run {manifest.run_id}: " + "; ".join(differences))

    def _difference(self, entry: StoredFile) -> str | None:
        where = f"{self.location}/{entry.path}"
        try:
            data = self.files.read(entry.path)
        except FileNotFoundError:
            return f"{where} is missing"
        if len(data) != entry.bytes:
            return f"{where} has {len(data)} bytes, the manifest says {entry.bytes}"
        if (digest := hashlib.sha256(data).hexdigest()) != entry.sha256:
            return f"{where} has sha256 {digest}, the manifest says {entry.sha256}"
        return None


def _manifest_path(run_id: str) -> str:
    if not RUN_ID.match(run_id):
        raise StoreError(f"{run_id!r} is not a run id; they look like 20261121T181500Z-kip73-two-node-ab12cd")
    return f"manifests/{run_id}.json"


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()
