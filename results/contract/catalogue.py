"""What an index and its packs say of a store, read once and kept as long as it does not change."""

import hashlib
import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any

import pyarrow.parquet as pq

from results.contract.files import Files
from results.contract.packs import INDEX, PACK_FILES, Index, IndexDamagedError, Pack, PackFile, rebuilt

KEPT_PACKS = 8
_ANEW = "`testbed results compact` writes it anew"


class StoreError(Exception):
    """The store cannot do what was asked; the message says which run or file, and what to do."""


class NoRunError(StoreError):
    """There is no such run, or none any more: it was dropped or set aside, maybe since it was listed."""


class Catalogue:
    """The index of one store, and the manifests in its packs."""

    def __init__(self, files: Files, location: str) -> None:
        self.files = files
        self.location = location
        self._known: tuple[bytes | None, Index, dict[str, Pack]] | None = None
        self._packed: dict[str, dict[str, Any]] = {}
        self._footers: dict[str, pq.FileMetaData] = {}

    def index(self) -> Index:
        """What was packed, dropped and set aside. One that is damaged or gone is made again from the packs."""
        try:
            text = self.files.read(INDEX)
        except FileNotFoundError:
            text = None
        if self._known is None or text != self._known[0]:
            try:
                index = rebuilt(self.files) if text is None else Index.from_json(text, INDEX)
            except IndexDamagedError:
                index = rebuilt(self.files)
            self._known = (text, index, index.places())
        return self._known[1]

    def problem(self) -> str | None:
        """What is wrong with the index; None when it reads well, or there is none and need not be."""
        try:
            Index.from_json(self.files.read(INDEX), f"{self.location}/{INDEX}")
        except FileNotFoundError:
            if not self.index().packs:
                return None
            return f"{self.location}/{INDEX} is missing; what is packed was found without it; {_ANEW}"
        except IndexDamagedError as error:
            return f"{error}; what is packed was found without it; {_ANEW}"
        return None

    def places(self) -> Mapping[str, Pack]:
        """Run id -> its pack, of all that are packed."""
        self.index()
        return self._known[2] if self._known else {}

    def write(self, index: Index) -> None:
        """Replace the index, whole. Only under the store's lock."""
        self.files.put(INDEX, index.to_json().encode())

    def manifests(self, pack: Pack) -> Mapping[str, Any]:
        """Run id -> its manifest as a document. Raises FileNotFoundError when the pack is gone, StoreError when
        it is damaged."""
        if pack.id not in self._packed:
            documents = {run["run_id"]: run for run in self._document(pack)["runs"]}
            # A few are kept: runs are mostly read in their order.
            self._packed = dict([*self._packed.items(), (pack.id, documents)][-KEPT_PACKS:])
        return self._packed[pack.id]

    def _document(self, pack: Pack) -> Any:
        problems = []
        for file in filter(None, map(pack.file, PACK_FILES)):
            if not (problem := self.file_problem(file)):
                return json.loads(self.files.read(file.path))
            problems.append(problem)
        if all(problem.endswith(" is missing") for problem in problems):
            raise FileNotFoundError(pack.folder)
        raise StoreError(f"corrupt manifests of {len(pack.runs)} runs: " + "; ".join(problems))

    def footer(self, path: str) -> pq.FileMetaData:
        """The footer of a pack's file: from beside it, or from the file itself when that is damaged."""
        if path not in self._footers:
            beside = PurePosixPath(path).with_suffix(".footer")
            files = (pack.file(beside.name) for pack in self.index().packs if path.startswith(f"{pack.folder}/"))
            file = next(files, None)
            source = file.path if file and not self.file_problem(file) else path
            footer = pq.read_metadata(BytesIO(self.files.read(source)))
            self._footers = dict([*self._footers.items(), (path, footer)][-3 * KEPT_PACKS :])
        return self._footers[path]

    def file_problem(self, file: PackFile) -> str | None:
        """How a pack's file differs from what was written; None when it does not."""
        try:
            problem = difference(self.files.read(file.path), file.bytes, file.sha256)
        except FileNotFoundError:
            problem = "is missing"
        return f"{self.location}/{file.path} {problem}" if problem else None


def difference(data: bytes, size: int, sha256: str) -> str | None:
    """How bytes differ from what a manifest says of them; None when they do not."""
    if len(data) != size:
        return f"has {len(data)} bytes, the manifest says {size}"
    if (digest := hashlib.sha256(data).hexdigest()) != sha256:
        return f"has sha256 {digest}, the manifest says {sha256}"
    return None
