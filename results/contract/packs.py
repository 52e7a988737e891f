"""Packs: the runs of a month in one Parquet file for each kind of table, and the index that makes them exist.

    <root>/packs/<pack>/{samples,events,criteria,report}.parquet   sorted by run id, one row group for each run
    <root>/packs/<pack>/manifests.parquet                          the manifests as committed; written last
    <root>/index/index.json                                        the packs that count; replaced whole

A pack never changes. Its pages carry checksums, so that damage to one run's rows loses that run alone.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from results.contract.document import DocumentError, decode, encode
from results.contract.files import Files
from results.contract.manifest import FileKind, Manifest
from results.contract.schema import conform
from results.contract.tables import COMPRESSION, RUN_ID, USE_THREADS, check_size
from results.contract.untrusted import parse_json

INDEX = "index/index.json"
MANIFESTS = "manifests.parquet"
INDEX_SCHEMA = 2
CACHED_PACKS = 8
HTML = pa.schema([pa.field("html", pa.large_binary(), nullable=False)])
REPORTS = pa.schema([RUN_ID, *HTML])
_TEXTS = pa.schema([RUN_ID, pa.field("manifest", pa.string(), nullable=False)])
_PACK = b"pack"
"""Key of the Parquet metadata that holds the Pack, from which a lost index is rebuilt."""


class StoreError(Exception):
    """The store cannot do what was asked; the message names the run or file, and the remedy."""


class NoRunError(StoreError):
    """The run does not exist: it never did, or it was dropped or set aside, perhaps since it was listed."""


class IndexDamagedError(ValueError):
    """The index cannot be read."""


@dataclass(frozen=True, slots=True)
class Pack:
    """Runs of one month (``2026-11``), oldest first; `created` is UTC, RFC 3339.

    `bytes` is the size of the runs' files before they were packed. `runs` are the existing ones: a run that
    was dropped since leaves a gap, of which `written` is the evidence.
    """

    id: str
    month: str
    created: str
    bytes: int
    written: int
    runs: tuple[str, ...]

    @property
    def folder(self) -> str:
        """Return the path relative to the store's root."""
        return f"packs/{self.id}"

    @property
    def gaps(self) -> bool:
        """Return whether the pack's files have rows of runs that do not exist any more."""
        return len(self.runs) < self.written


@dataclass(frozen=True, slots=True)
class Index:
    """What compaction and retention decided. `dropped` (run id) and `replaced` (pack id) hold the moment: the files
    stay for a while, for readers that hold their names. `aside` are damaged runs, with the damage."""

    packs: tuple[Pack, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, str] = field(default_factory=dict)
    aside: Mapping[str, str] = field(default_factory=dict)
    schema: int = INDEX_SCHEMA

    def hidden(self) -> set[str]:
        """Return the runs whose manifests do not count."""
        return self.dropped.keys() | self.aside.keys()

    def without(self, run_ids: set[str]) -> tuple[Pack, ...]:
        """Return the packs without those runs."""
        return tuple(replace(p, runs=tuple(r for r in p.runs if r not in run_ids)) for p in self.packs)

    @staticmethod
    def from_json(text: bytes, source: str) -> "Index":
        """Parse and validate. Raise IndexDamagedError that starts with `source`, StoreError for another version."""
        try:
            document = parse_json(text)
        except ValueError as error:
            raise IndexDamagedError(f"{source}: not a JSON document: {error}") from error
        if isinstance(document, dict) and document.get("schema") == 1:
            if document.get("packs"):
                raise StoreError(f"{source}: an earlier version packed this store; export the runs with that version")
            document = {name: each for name, each in document.items() if name != "generation"} | {
                "schema": INDEX_SCHEMA
            }
        if isinstance(document, dict) and document.get("schema") != INDEX_SCHEMA:
            raise IndexDamagedError(f"{source}: schema {document.get('schema')!r}; this version reads {INDEX_SCHEMA}")
        try:
            return decode(Index, document, source)
        except DocumentError as error:
            raise IndexDamagedError(str(error)) from error


def located(manifest: Manifest, pack: Pack | None) -> Manifest:
    """Return the manifest with the paths that its files have in a pack, or outside of any."""
    where = pack.folder if pack else f"runs/{manifest.run_id}"
    names: dict[FileKind, str] = {"report": "report.parquet" if pack else "report.html"}
    files = tuple(replace(f, path=f"{where}/{names.get(f.kind, f'{f.kind}.parquet')}") for f in manifest.files)
    return replace(manifest, files=files, report=next((f.path for f in files if f.kind == "report"), None))


class Catalogue:
    """The index of one store and the contents of its packs, cached while the index does not change."""

    def __init__(self, files: Files, location: str) -> None:
        self.files = files
        self.location = location
        self._index: tuple[bytes | None, Index, dict[str, Pack]] | None = None
        self._texts: dict[str, dict[str, str]] = {}
        self._footers: dict[str, tuple[pq.FileMetaData, dict[str, int]]] = {}

    def index(self) -> Index:
        """Return what was packed, dropped and set aside. A damaged or missing index is rebuilt from the packs."""
        try:
            text = self.files.read(INDEX)
        except FileNotFoundError:
            text = None
        if self._index is None or text != self._index[0]:
            try:
                index = self._rebuilt() if text is None else Index.from_json(text, INDEX)
            except IndexDamagedError:
                index = self._rebuilt()
            self._index = (text, index, {run_id: pack for pack in index.packs for run_id in pack.runs})
        return self._index[1]

    def problem(self) -> str | None:
        """Return what is wrong with the index; None when it reads well, or is absent where there are no packs."""
        remedy = "what is packed was found without it; `testbed results compact` writes it again"
        try:
            Index.from_json(self.files.read(INDEX), f"{self.location}/{INDEX}")
        except FileNotFoundError:
            return f"{self.location}/{INDEX} is missing; {remedy}" if self.index().packs else None
        except IndexDamagedError as error:
            return f"{error}; {remedy}"
        return None

    def places(self) -> Mapping[str, Pack]:
        """Return run id → its pack, for all that are packed."""
        self.index()
        return self._index[2] if self._index else {}

    def write(self, **changes: Any) -> None:
        """Replace the index by one with these changes. Only under the store's lock."""
        document = encode(replace(self.index(), **changes))
        self.files.put(INDEX, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())

    def manifest(self, pack: Pack, run_id: str) -> Manifest:
        """Return a packed run's manifest. Raise FileNotFoundError without its pack, else ValueError or OSError."""
        if pack.id not in self._texts:
            path = f"{pack.folder}/{MANIFESTS}"
            texts = conform(self._read_texts(path), _TEXTS, path)
            # Few packs are cached: runs are mostly read in their order.
            found = dict(zip(texts["run_id"].to_pylist(), texts["manifest"].to_pylist(), strict=True))
            self._texts = dict([*self._texts.items(), (pack.id, found)][-CACHED_PACKS:])
        if run_id not in self._texts[pack.id]:
            raise ValueError("not in the pack")
        manifest = Manifest.from_json(self._texts[pack.id][run_id], f"{self.location}/{pack.folder}: {run_id}")
        return located(manifest, pack)

    def _read_texts(self, path: str) -> pa.Table:
        with pq.ParquetFile(pa.BufferReader(self.files.read(path)), page_checksum_verification=True) as file:
            check_size(file.metadata, range(file.num_row_groups), path)
            return file.read(use_threads=USE_THREADS)

    def rows(self, path: str, run_id: str, columns: Sequence[str]) -> pa.Table | None:
        """Return some columns of a run's rows of a pack's file; None when it has no rows there.

        Raise FileNotFoundError when the file is gone, another OSError or ValueError when the rows are damaged.
        """
        with self.files.open(path) as source:
            if path not in self._footers:
                footer = pq.read_metadata(source)
                firsts = (footer.row_group(i).column(0).statistics for i in range(footer.num_row_groups))
                groups = {first.min: i for i, first in enumerate(firsts) if first is not None}
                self._footers = dict([*self._footers.items(), (path, (footer, groups))][-4 * CACHED_PACKS :])
            footer, groups = self._footers[path]
            if run_id not in groups:
                return None
            check_size(footer, [groups[run_id]], path)
            file = pq.ParquetFile(source, metadata=footer, pre_buffer=True, page_checksum_verification=True)
            # A column that the file lacks is no error: it was written before there was one.
            return file.read_row_group(groups[run_id], columns=[RUN_ID.name, *columns], use_threads=USE_THREADS)

    def put_pack(self, pack: Pack, tables: Mapping[str, "PackTable"], texts: Mapping[str, str]) -> None:
        """Write a pack's files, the manifests last; no index names it yet."""
        for name, table in tables.items():
            self.files.put(f"{pack.folder}/{name}.parquet", table.close())
        table = pa.table([list(texts), list(texts.values())], schema=_TEXTS)
        described = table.replace_schema_metadata({_PACK: json.dumps(encode(pack)).encode()})
        sink = BytesIO()
        pq.write_table(described, sink, compression=COMPRESSION, write_page_checksum=True)
        self.files.put(f"{pack.folder}/{MANIFESTS}", sink.getvalue())

    def _rebuilt(self) -> Index:
        """Return the index that the packs imply, without what was dropped or set aside since.

        A pack whose runs all have manifests of their own is left out: it may not be complete.
        """
        found = []
        for path in (f.path for f in self.files.list("packs") if f.path.endswith(f"/{MANIFESTS}")):
            try:
                metadata = self._read_texts(path).schema.metadata
                found.append(decode(Pack, parse_json(metadata[_PACK]), path))
            except (OSError, ValueError, TypeError, KeyError):
                continue  # damaged: its runs cannot be read without their manifests
        loose = {PurePosixPath(f.path).stem for f in self.files.list("manifests")}
        packs, seen = [], set[str]()
        for pack in sorted(found, key=lambda each: each.created, reverse=True):
            runs = tuple(run_id for run_id in pack.runs if run_id not in seen)
            if not loose.issuperset(runs):  # none are left where newer packs took its place
                seen |= set(runs)
                packs.append(replace(pack, runs=runs))
        return Index(packs=tuple(packs))


class PackTable:
    """One file of a pack, in memory until it is complete; every run is a row group of its own."""

    def __init__(self, schema: pa.Schema) -> None:
        self._sink = BytesIO()
        self._writer = pq.ParquetWriter(self._sink, schema, compression=COMPRESSION, write_page_checksum=True)

    def add(self, table: pa.Table) -> None:
        """Append one run's rows, which name their run."""
        if table.num_rows:
            self._writer.write_table(table, row_group_size=table.num_rows)

    def close(self) -> bytes:
        """Return the file."""
        self._writer.close()
        return self._sink.getvalue()
