"""Packs: many runs' files in few larger ones, and the index that makes them exist.

    <root>/packs/<pack>/{samples,events,criteria}.parquet   one row group for each run
    <root>/packs/<pack>/{samples,events,criteria}.footer    their footers, again: a cut file loses the runs cut off
    <root>/packs/<pack>/reports                             the reports, one after the other
    <root>/packs/<pack>/pack.json, pack-copy.json           the manifests
    <root>/index/index.json                                 the packs that count; replaced whole

A pack never changes. Of each run it is known which bytes are its own, with their digest: one is read, and checked,
without the others.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from results.contract.document import DocumentError, decode, encode
from results.contract.files import Files

INDEX = "index/index.json"
PACK_SCHEMA = 1
PACK_FILES = ("pack.json", "pack-copy.json")


class IndexDamagedError(ValueError):
    """The index cannot be read as one."""


@dataclass(frozen=True, slots=True)
class PackFile:
    """A file of a pack, relative to the store's root."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Pack:
    """Runs of one experiment and month (``2026-11``); `created` is UTC, RFC 3339. `runs` are those that count."""

    id: str
    experiment: str
    month: str
    created: str
    runs: tuple[str, ...]
    files: tuple[PackFile, ...]

    @property
    def folder(self) -> str:
        """Relative to the store's root."""
        return f"packs/{self.id}"

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(f.bytes for f in self.files)

    def file(self, name: str) -> PackFile | None:
        """The file of that name."""
        return next((f for f in self.files if f.path == f"{self.folder}/{name}"), None)


@dataclass(frozen=True, slots=True)
class Index:
    """What compaction and retention decided. `dropped` (run id) and `replaced` (pack id) say since when: their files
    stay for a while, for readers that hold their names. `aside` are damaged runs, with what was wrong."""

    generation: int = 0
    packs: tuple[Pack, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, str] = field(default_factory=dict)
    aside: Mapping[str, str] = field(default_factory=dict)
    schema: int = PACK_SCHEMA

    def places(self) -> dict[str, Pack]:
        """Run id -> the pack it lies in."""
        return {run_id: pack for pack in self.packs for run_id in pack.runs}

    def hidden(self) -> set[str]:
        """Runs that are in the store no more."""
        return self.dropped.keys() | self.aside.keys()

    def next(self, **changes: Any) -> "Index":
        """The index to be written after this one."""
        return replace(self, generation=self.generation + 1, **changes)

    def to_json(self) -> str:
        """One document."""
        return json.dumps(encode(self), indent=1, ensure_ascii=False) + "\n"

    @staticmethod
    def from_json(text: bytes, source: str) -> "Index":
        """Parse and validate; raises IndexDamagedError that starts with `source`."""
        try:
            document = json.loads(text)
        except ValueError as error:
            raise IndexDamagedError(f"{source}: not a JSON document: {error}") from error
        if isinstance(document, dict) and document.get("schema") != PACK_SCHEMA:
            raise IndexDamagedError(f"{source}: schema {document.get('schema')!r}; this version reads {PACK_SCHEMA}")
        try:
            return decode(Index, document, source)
        except DocumentError as error:
            raise IndexDamagedError(str(error)) from error


def pack_document(pack: Pack, manifests: list[Any]) -> bytes:
    """`pack.json`; of `files`, those that were written before it."""
    head = {"schema": PACK_SCHEMA, "id": pack.id, "experiment": pack.experiment, "month": pack.month}
    document = {**head, "created": pack.created, "files": encode(pack.files), "runs": manifests}
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()


def rebuilt(files: Files) -> Index:
    """The index as the packs themselves tell it; what was dropped or set aside since is not known any more.

    A pack whose runs all have manifests of their own is passed over: it may not be finished.
    """
    loose = {PurePosixPath(f.path).stem for f in files.list("manifests")}
    documents: dict[str, Any] = {}
    texts: dict[str, bytes] = {}
    for name in PACK_FILES:
        for path in (f.path for f in files.list("packs") if f.path.endswith(f"/{name}")):
            try:
                document = json.loads(text := files.read(path))
                if documents.setdefault(document["id"], document) is document:
                    texts[document["id"]] = text
            except (ValueError, TypeError, KeyError):  # damaged: its copy tells the same
                continue
    packs, seen = [], set[str]()
    for document in sorted(documents.values(), key=lambda each: str(each["created"]), reverse=True):
        runs = tuple(run["run_id"] for run in document["runs"] if run["run_id"] not in seen)
        if loose.issuperset(runs):
            continue  # or there are none: newer packs took its place
        seen |= set(runs)
        head = {name: document[name] for name in ("id", "experiment", "month", "created")}
        written = [PackFile(**f) for f in document["files"]]
        text = texts[document["id"]]
        digest = hashlib.sha256(text).hexdigest()
        written += [PackFile(f"packs/{document['id']}/{name}", len(text), digest) for name in PACK_FILES]
        packs.append(Pack(**head, runs=runs, files=tuple(written)))
    return Index(packs=tuple(packs))


class _Window(io.RawIOBase):
    """A file of which only the bytes from `offset` on are there; whoever reads others finds its end."""

    def __init__(self, data: bytes, offset: int) -> None:
        super().__init__()
        self._data, self._offset, self._at = data, offset, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, to: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._offset + len(self._data)}[whence]
        self._at = base + to
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        begin = self._at - self._offset
        if begin < 0:
            raise OSError(f"read at {self._at}, before the part that starts at {self._offset}")
        found = self._data[begin:] if size < 0 else self._data[begin : begin + size]
        self._at += len(found)
        return found


def row_group(data: bytes, offset: int, group: int, footer: pq.FileMetaData) -> pa.Table:
    """The table whose row group is `data`, which lies at `offset` of its file."""
    with pa.PythonFile(_Window(data, offset), mode="r") as source:
        return pq.ParquetFile(source, metadata=footer).read_row_group(group)


def group_bytes(footer: pq.FileMetaData, group: int) -> tuple[int, int]:
    """Where a row group lies in its file: offset and length. Raises ValueError when its columns are not in a row."""
    found = footer.row_group(group)
    columns = [found.column(i) for i in range(found.num_columns)]
    begins = [c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset for c in columns]
    offset, length = min(begins), sum(c.total_compressed_size for c in columns)
    ends = max(b + c.total_compressed_size for b, c in zip(begins, columns, strict=True))
    if ends - offset != length:
        raise ValueError(f"row group {group} has gaps: {length} bytes between {offset} and {ends}")
    return offset, length
