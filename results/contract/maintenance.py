"""Maintenance of a store: compaction, removal of runs, and quarantine of damaged runs.

A pack is written whole, read back and compared; then the index, which is replaced in one step, names it. The
files that it replaces stay for a while (`grace`), for readers that hold their names; then a sweep removes them.
A compaction that is killed leaves files that no index names; the next one removes them.
"""

import contextlib
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

import pyarrow as pa

from results.contract.manifest import Manifest
from results.contract.packs import REPORTS, Pack, PackTable, StoreError, located
from results.contract.store import SCHEMAS, Store, entry_of
from results.contract.tables import same, stored_form, to_parquet

GRACE = timedelta(hours=24)
TARGET_BYTES = 128 << 20
"""About how large a pack becomes, by the bytes of its runs' files."""
POLL_S = 1.0
"""How often a waiting process tries to take the lock."""


@dataclass(slots=True)
class CompactionResult:
    """What was done: packs written, the runs in them, paths removed, and what could not be read."""

    packs: list[str] = field(default_factory=list)
    runs: int = 0
    removed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@contextlib.contextmanager
def locked(store: Store, wait: timedelta = timedelta()) -> Iterator[None]:
    """Hold the store's lock for the block; wait that long while another process changes the store.

    Raise StoreError when it still does then, or the store cannot be written.
    """
    deadline = time.monotonic() + wait.total_seconds()
    try:
        with contextlib.ExitStack() as held:
            while True:
                try:
                    held.enter_context(store.files.lock())
                    break
                except BlockingIOError:
                    left_s = deadline - time.monotonic()
                    if left_s <= 0:
                        raise
                    time.sleep(min(POLL_S, left_s))  # the holder of an object store's lock notifies no other process
            yield
    except BlockingIOError as error:
        raise StoreError(
            f"another command compacts {store.location}, drops runs of it or imports into it: {error.strerror}; "
            "try again when that is done"
        ) from error
    except OSError as error:
        raise StoreError(f"{store.location} cannot be written: {error.strerror or error}") from error


def compact(
    store: Store, *, grace: timedelta = GRACE, target_bytes: int = TARGET_BYTES, now: datetime | None = None
) -> CompactionResult:
    """Pack the runs that are not packed, merge small packs, and sweep. Runs that are committed meanwhile stay.

    A damaged run stays where it is and is named; so do all runs of a month that do not read back from a pack as they
    were. Raise StoreError when the store cannot be written or is locked; what was packed by then counts.
    """
    moment = now or datetime.now(UTC)
    done = CompactionResult()
    with locked(store):
        if problem := store.catalogue.problem():
            done.problems.append(problem)
            store.catalogue.write()
        done.removed += sweep(store, moment, grace)
        index, places = store.catalogue.index(), store.catalogue.places()
        loose = [r for r in store.unpacked() if r not in places and r not in index.hidden()]
        packs = [pack for pack in index.packs if pack.gaps or pack.bytes < target_bytes // 2]
        _repack(store, packs, _whole(store, loose, done.problems), moment, done, target_bytes)
        done.removed += sweep(store, moment, grace)
    return done


def drop(
    store: Store, run_ids: Iterable[str], moment: datetime, aside: Mapping[str, str] | None = None
) -> CompactionResult:
    """Take runs out of the index in one step, then write the packs that had them again. Only under the store's lock.

    A pack of which another run is damaged is not written again, and is named: only its space is not given back.
    """
    gone, done, index = set(run_ids), CompactionResult(), store.catalogue.index()
    why = {"aside": {**index.aside, **aside}} if aside else {"dropped": {**index.dropped, **_stamped(gone, moment)}}
    store.catalogue.write(packs=index.without(gone), **why)
    _repack(store, [pack for pack in store.catalogue.index().packs if pack.gaps], [], moment, done)
    return done


def set_aside(store: Store, damaged: Mapping[str, str]) -> list[str]:
    """Move runs (id → damage) to `aside/`, out of every reader's way, with all of their files that can be read.

    Return the runs that were moved; one that has gone meanwhile stays gone. Raise StoreError when the store cannot be
    written or is locked.
    """
    with locked(store):
        there = set(store.runs())
        moved = {run_id: problem for run_id, problem in damaged.items() if run_id in there}
        for run_id, problem in moved.items():
            for name, data in _remains(store, run_id):
                store.files.put(f"aside/{run_id}/{name}", data)
            store.files.put(f"aside/{run_id}/problem.txt", f"{problem}\n".encode())
        done = drop(store, moved, datetime.now(UTC), aside=moved) if moved else CompactionResult()
        for run_id in moved:
            store.files.discard(f"manifests/{run_id}.json")
            store.files.discard(f"runs/{run_id}")
    if done.problems:
        raise StoreError("; ".join(done.problems))
    return sorted(moved)


def _remains(store: Store, run_id: str) -> Iterator[tuple[str, bytes]]:
    """Return what can still be read of a run: its files as they are, or its tables in a pack."""
    for path in (f"manifests/{run_id}.json", *(f.path for f in store.files.list(f"runs/{run_id}"))):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            yield PurePosixPath(path).name, store.files.read(path)
    if run_id in store.catalogue.places():
        with contextlib.suppress(StoreError):
            manifest = store.manifest(run_id)
            yield "manifest.json", located(manifest, None).to_json().encode()
            for kind in SCHEMAS:
                with contextlib.suppress(StoreError):
                    yield f"{kind}.parquet", to_parquet(run_id, store.table_of(manifest, kind))
            if report := entry_of(manifest, "report"):
                yield "report.html", store.bytes_of(manifest, report)


def _whole(store: Store, run_ids: Iterable[str], problems: list[str]) -> list[Manifest]:
    """Return the manifests of the runs that read well; `problems` names the others."""
    found = []
    for run_id in run_ids:
        try:
            manifest = store.manifest(run_id)
            for kind in SCHEMAS:
                store.table_of(manifest, kind)
            if report := entry_of(manifest, "report"):
                store.bytes_of(manifest, report)
        except StoreError as error:
            problems.append(str(error))
        else:
            found.append(manifest)
    return found


def _repack(
    store: Store,
    packs: Iterable[Pack],
    loose: Iterable[Manifest],
    moment: datetime,
    done: CompactionResult,
    target_bytes: int = TARGET_BYTES,
) -> None:
    """Put, month by month, these packs and runs into new packs, where that makes fewer files or closes gaps."""
    months: dict[str, tuple[list[Pack], list[Manifest]]] = {}
    for manifest in loose:
        month = f"{manifest.run_id[:4]}-{manifest.run_id[4:6]}"
        months.setdefault(month, ([], []))[1].append(manifest)
    for pack in packs:
        months.setdefault(pack.month, ([], []))[0].append(pack)
    for month, (candidates, runs) in sorted(months.items()):
        old: list[Pack] = []
        new, several = len(runs), len(candidates) + len(runs) > 1
        for pack in (each for each in candidates if several or each.gaps):
            problems: list[str] = []
            found = _whole(store, pack.runs, problems)
            done.problems += [f"pack {pack.id} stays: {problem}" for problem in problems]
            if not problems:  # else it stays: the damaged rows would be lost
                old.append(pack)
                runs.extend(found)
        if not any(pack.gaps for pack in old) and (len(runs) < 2 or not (new or len(old) > 1)):
            continue
        try:
            written = [_write_pack(store, month, each, moment) for each in _chunks(runs, target_bytes)]
        except StoreError as error:  # no index names what was written: the next sweep removes it
            done.problems.append(f"{month}: nothing of it was packed: {error}")
            continue
        index, gone = store.catalogue.index(), {pack.id for pack in old}
        store.catalogue.write(
            packs=(*(pack for pack in index.packs if pack.id not in gone), *written),
            replaced={**index.replaced, **_stamped(gone, moment)},
        )
        done.packs += [pack.id for pack in written]
        done.runs += len(runs)


def _size(manifest: Manifest) -> int:
    return sum(file.bytes for file in manifest.files)


def _chunks(runs: Iterable[Manifest], target_bytes: int) -> Iterator[list[Manifest]]:
    chunk: list[Manifest] = []
    size = 0
    for manifest in sorted(runs, key=lambda each: each.run_id):
        chunk.append(manifest)
        size += _size(manifest)
        if size >= target_bytes:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _write_pack(store: Store, month: str, runs: Sequence[Manifest], moment: datetime) -> Pack:
    """Write a pack that no index names yet. Raise StoreError when a run does not read back as it was."""
    ids = tuple(manifest.run_id for manifest in runs)
    identity = f"{month}-{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    pack = Pack(identity, month, _stamp(moment), sum(map(_size, runs)), len(runs), ids)
    tables = {str(kind): PackTable(stored_form("", each.empty_table()).schema) for kind, each in SCHEMAS.items()}
    tables["report"] = PackTable(REPORTS)
    for manifest in runs:
        for kind in SCHEMAS:
            tables[kind].add(stored_form(manifest.run_id, store.table_of(manifest, kind)))
        if report := entry_of(manifest, "report"):
            html = store.bytes_of(manifest, report)
            tables["report"].add(pa.table([[manifest.run_id], [html]], schema=REPORTS))
    store.catalogue.put_pack(pack, tables, {m.run_id: located(m, None).to_json() for m in runs})
    for old in runs:
        new = located(old, pack)
        for kind in SCHEMAS:
            if not same(store.table_of(new, kind), store.table_of(old, kind)):
                raise StoreError(f"run {old.run_id}: its {kind} do not read back from a pack as they were")
        if report := entry_of(new, "report"):
            store.bytes_of(new, report)
    return pack


def sweep(store: Store, moment: datetime, grace: timedelta) -> list[str]:
    """Remove what no reader can need any more, and return the paths. Only under the store's lock.

    That is what packs replaced, and what was dropped, longer than `grace` ago; and what a killed compaction left.
    """
    index, places = store.catalogue.index(), store.catalogue.places()
    limit = _stamp(moment - grace)
    removed = [f.path for f in store.files.list("index") if PurePosixPath(f.path).name.startswith(".index.json.")]
    loose = set(store.unpacked())
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
    if dropped or index.replaced.keys() - kept:
        store.catalogue.write(
            dropped={r: s for r, s in index.dropped.items() if r not in dropped},
            replaced={p: s for p, s in index.replaced.items() if p in kept},
        )
    return removed


def _stamp(moment: datetime) -> str:
    """Return a moment as the index has it; such texts sort by time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _stamped(names: Iterable[str], moment: datetime) -> dict[str, str]:
    return dict.fromkeys(names, _stamp(moment))
