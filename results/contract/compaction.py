"""Compaction: many small runs' files become few larger ones, one pack for each experiment and month.

A pack is written whole, read back and compared, and only then named by the index, which is replaced in one step. What
it took the place of stays for a while (`grace`), for readers that hold its names; then a sweep takes it away. A
compaction that was killed leaves files that nobody reads; the next one takes them away.
"""

import contextlib
import hashlib
import secrets
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any

import pyarrow.parquet as pq

from results.contract.catalogue import StoreError
from results.contract.document import encode
from results.contract.manifest import FileKind, Manifest, StoredFile
from results.contract.packs import PACK_FILES, Pack, PackFile, group_bytes, pack_document
from results.contract.store import SCHEMAS, Store, entry_of
from results.contract.tables import same, stored_form

GRACE = timedelta(hours=24)
TARGET_BYTES = 128 << 20
"""About how large a pack gets, in bytes."""
LOOK_S = 1.0
"""So often whoever waits for the lock looks whether it is free."""


@dataclass(slots=True)
class Compacted:
    """What was done: packs written and the runs in them, paths taken away, and what could not be read."""

    packs: list[str] = field(default_factory=list)
    runs: int = 0
    removed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@contextlib.contextmanager
def locked(store: Store, wait: timedelta = timedelta()) -> Iterator[None]:
    """The store's lock for the block, waited for so long when another process changes the store.

    Raises StoreError when it still does then, or the store is read-only.
    """
    try:
        with contextlib.ExitStack() as held:
            _take(held, store, wait)
            yield
    except BlockingIOError as error:
        raise StoreError(
            f"{store.location} is being compacted, thinned out or imported to: {error.strerror}; "
            "try again when that is done"
        ) from error
    except OSError as error:
        raise StoreError(f"{store.location} cannot be written: {error.strerror or error}") from error


def _take(held: contextlib.ExitStack, store: Store, wait: timedelta) -> None:
    deadline = time.monotonic() + wait.total_seconds()
    while True:
        try:
            held.enter_context(store.files.lock())
        except BlockingIOError:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise
            time.sleep(min(LOOK_S, left_s))  # whoever gives it back tells nobody
        else:
            return


def compact(
    store: Store, *, grace: timedelta = GRACE, target_bytes: int = TARGET_BYTES, now: datetime | None = None
) -> Compacted:
    """Pack what is loose, merge small packs, and sweep. Runs that land meanwhile stay as they are.

    A damaged run stays where it is and is named; so do all of an experiment and month that do not read back from a
    pack as they were. Raises StoreError when the store cannot be written or is locked; what was packed by then counts,
    and nothing is lost.
    """
    moment = now or datetime.now(UTC)
    done = Compacted()
    with locked(store):
        if problem := store.catalogue.problem():
            done.problems.append(problem)
            store.catalogue.write(store.catalogue.index().next())
        done.removed += sweep(store, moment, grace)
        for old, runs in _groups(store, target_bytes, done):
            try:
                written = list(write_packs(store, runs, moment, target_bytes))
            except StoreError as error:  # what was written of it is in no index: the sweep below takes it away
                done.problems.append(f"{' of '.join(_group(runs[0]))}: nothing of it was packed: {error}")
                continue
            switch(store, old, written, moment)
            done.packs += [pack.id for pack in written]
            done.runs += len(runs)
        done.removed += sweep(store, moment, grace)
    return done


def switch(store: Store, old: Iterable[Pack], new: Iterable[Pack], moment: datetime, **changes: Any) -> None:
    """Replace packs in the index, and change other fields of it, in one step."""
    index = store.catalogue.index()
    gone = {pack.id for pack in old}
    kept = [pack for pack in index.packs if pack.id not in gone]
    replaced = {**index.replaced, **dict.fromkeys(gone, stamp(moment))}
    store.catalogue.write(index.next(packs=(*kept, *new), replaced=replaced, **changes))


def whole(store: Store, run_ids: Iterable[str], problems: list[str]) -> list[Manifest]:
    """The manifests of those runs that read well; `problems` names the others."""
    found = []
    for run_id in run_ids:
        try:
            manifest = store.manifest(run_id)
            for kind in SCHEMAS:
                store.table_of(manifest, kind)
            if report := entry_of(manifest, "report"):
                store.bytes_of(report)
        except StoreError as error:
            problems.append(str(error))
        else:
            found.append(manifest)
    return found


def _groups(store: Store, target_bytes: int, done: Compacted) -> Iterator[tuple[list[Pack], list[Manifest]]]:
    """For each experiment and month that is worth it: the packs to be replaced, and all runs of the new ones."""
    index, places = store.catalogue.index(), store.catalogue.places()
    loose = [r for r in store.loose() if r not in places and r not in index.hidden()]
    groups: dict[tuple[str, str], tuple[list[Pack], list[Manifest]]] = {}
    for manifest in whole(store, loose, done.problems):
        groups.setdefault(_group(manifest), ([], []))[1].append(manifest)
    for pack in index.packs:
        if pack.bytes < target_bytes // 2:
            groups.setdefault((pack.experiment, pack.month), ([], []))[0].append(pack)
    for packs, new in (groups[key] for key in sorted(groups)):
        old, runs = [], list(new)
        for pack in packs if len(packs) + len(new) > 1 else []:
            problems: list[str] = []
            found = whole(store, pack.runs, problems)
            done.problems += problems
            if not problems:  # else it stays: what is damaged in it would be lost
                old.append(pack)
                runs += found
        if len(runs) > 1 and (new or len(old) > 1):
            yield old, sorted(runs, key=lambda m: m.run_id)


def _group(manifest: Manifest) -> tuple[str, str]:
    return manifest.experiment, f"{manifest.run_id[:4]}-{manifest.run_id[4:6]}"


def write_packs(
    store: Store,
    runs: Sequence[Manifest],
    moment: datetime,
    target_bytes: int = TARGET_BYTES,
) -> Iterator[Pack]:
    """Write these runs (of one experiment and month) as packs that no index names yet.

    Raises StoreError when what was written does not read back as what it was made from.
    """
    writer: _Writer | None = None
    for manifest in runs:
        writer = writer or _Writer(store, moment)
        writer.add(manifest)
        if writer.size >= target_bytes:
            yield writer.close()
            writer = None
    if writer:
        yield writer.close()


class _Writer:
    """One pack, in memory until it is whole."""

    def __init__(self, store: Store, moment: datetime) -> None:
        self.store, self.moment = store, moment
        self.sinks = {kind: BytesIO() for kind in SCHEMAS}
        schemas = {kind: stored_form("", schema.empty_table()).schema for kind, schema in SCHEMAS.items()}
        self.writers = {k: pq.ParquetWriter(self.sinks[k], schemas[k], compression="zstd") for k in SCHEMAS}
        self.groups = dict.fromkeys(SCHEMAS, 0)
        self.reports = BytesIO()
        self.runs: list[tuple[Manifest, list[StoredFile]]] = []

    @property
    def size(self) -> int:
        """Bytes so far."""
        return sum(sink.tell() for sink in (*self.sinks.values(), self.reports))

    def add(self, manifest: Manifest) -> None:
        """Append a run. Where its parts lie is known once the footers are."""
        parts = []
        for kind in SCHEMAS:
            table = self.store.table_of(manifest, kind)
            group = None
            if table.num_rows:
                stored = stored_form(manifest.run_id, table)
                self.writers[kind].write_table(stored, row_group_size=stored.num_rows)
                group, self.groups[kind] = self.groups[kind], self.groups[kind] + 1
            parts.append(StoredFile("", kind, table.num_rows, 0, "", 0, group))
        if report := entry_of(manifest, "report"):
            data = self.store.bytes_of(report)
            parts.append(StoredFile("", "report", 0, len(data), "", self.reports.tell()))
            self.reports.write(data)
        self.runs.append((manifest, parts))

    def close(self) -> Pack:
        """Write the files, and read back what they hold."""
        for writer in self.writers.values():
            writer.close()
        experiment, month = _group(self.runs[0][0])
        identity = f"{experiment}-{month}-{secrets.token_hex(6)}"
        data: dict[FileKind, bytes] = {kind: sink.getvalue() for kind, sink in self.sinks.items()}
        footers = {kind: pq.read_metadata(BytesIO(data[kind])) for kind in SCHEMAS}
        names: dict[FileKind, str] = {kind: f"{kind}.parquet" for kind in SCHEMAS} | {"report": "reports"}
        data["report"] = self.reports.getvalue()
        packed = []
        for manifest, parts in self.runs:
            entries = []
            for part in parts:
                offset, size = part.offset, part.bytes
                if part.kind != "report":
                    offset, size = (0, 0) if part.group is None else group_bytes(footers[part.kind], part.group)
                digest = hashlib.sha256(data[part.kind][offset : offset + size]).hexdigest()
                path = f"packs/{identity}/{names[part.kind]}"
                entries.append(replace(part, path=path, offset=offset, bytes=size, sha256=digest))
            report = f"packs/{identity}/reports" if manifest.report else None
            packed.append(replace(manifest, files=tuple(entries), report=report))
        files = {names[kind]: content for kind, content in data.items() if content}
        for kind, footer in footers.items():
            sink = BytesIO()
            footer.write_metadata_file(sink)
            files[f"{kind}.footer"] = sink.getvalue()
        pack = Pack(identity, experiment, month, stamp(self.moment), tuple(m.run_id for m, _ in self.runs), ())
        pack = self._put(pack, files)
        document = pack_document(pack, [encode(manifest) for manifest in packed])
        pack = self._put(pack, dict.fromkeys(PACK_FILES, document))
        self._compare(packed)
        return pack

    def _put(self, pack: Pack, files: dict[str, bytes]) -> Pack:
        written = []
        for name, content in files.items():
            path = f"{pack.folder}/{name}"
            self.store.files.put(path, content)
            written.append(PackFile(path, len(content), hashlib.sha256(content).hexdigest()))
        return replace(pack, files=(*pack.files, *written))

    def _compare(self, packed: list[Manifest]) -> None:
        for (old, _), new in zip(self.runs, packed, strict=True):
            for kind in SCHEMAS:
                if not same(self.store.table_of(new, kind), self.store.table_of(old, kind)):
                    raise StoreError(f"run {old.run_id}: its {kind} do not read back from a pack as they were")
            if (report := entry_of(new, "report")) is not None:
                self.store.bytes_of(report)


def without(
    store: Store, run_ids: set[str], moment: datetime, hurt: Collection[str] = ()
) -> tuple[list[Pack], list[Pack], list[str]]:
    """The packs that hold any of those runs, or are `hurt` (ids); packs like them without those runs, which the index
    does not name yet; and problems.

    A pack of which another run is damaged stays as it is: that run is to be set aside first.
    """
    old, new, problems = list[Pack](), list[Pack](), list[str]()
    for pack in store.catalogue.index().packs:
        if run_ids.isdisjoint(pack.runs) and pack.id not in hurt:
            continue
        damaged: list[str] = []
        rest = whole(store, [r for r in pack.runs if r not in run_ids], damaged)
        if damaged:
            problems += [f"pack {pack.id} stays: {each}" for each in damaged]
            continue
        old.append(pack)
        new += write_packs(store, rest, moment, sys.maxsize)
    return old, new, problems


def sweep(store: Store, moment: datetime, grace: timedelta) -> list[str]:
    """Take away what no reader can need any more; only under the store's lock. Returns the paths.

    That is what packs took the place of, and what was dropped, longer than `grace` ago; and what a killed compaction
    or sweep left.
    """
    index, places = store.catalogue.index(), store.catalogue.places()
    limit = stamp(moment - grace)
    removed = [f.path for f in store.files.list("index") if PurePosixPath(f.path).name.startswith(".index.json.")]
    loose = set(store.loose())
    folders = {PurePosixPath(f.path).parts[1] for f in store.files.list("runs")}
    dropped = {run_id for run_id, since in index.dropped.items() if since <= limit}
    packed = {run_id for run_id, pack in places.items() if pack.created <= limit or run_id not in loose}
    for run_id in sorted((dropped | packed) & (loose | folders)):
        # The manifest first: a run of which a file is missing must not look like one.
        removed += [f"manifests/{run_id}.json", f"runs/{run_id}"]
    kept = {pack.id for pack in index.packs} | {p for p, since in index.replaced.items() if since > limit}
    found = {PurePosixPath(f.path).parts[1] for f in store.files.list("packs")}
    removed += [f"packs/{pack_id}" for pack_id in sorted(found - kept)]
    for path in removed:
        store.files.discard(path)
    swept = index.next(
        dropped={r: s for r, s in index.dropped.items() if r not in dropped},
        replaced={p: s for p, s in index.replaced.items() if p in kept},
    )
    if replace(swept, generation=index.generation) != index:
        store.catalogue.write(swept)
    return removed


def stamp(moment: datetime) -> str:
    """A moment as the index has it; such texts sort by time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
