"""The values table in a store: `<root>/values/<part>.parquet`, written once each, read together.

A part appears whole (one put) and never changes, and a run that is in two of them counts once: so a killed ingest
loses nothing and doubles nothing. Small parts are put together now and then. Values stay when their runs' samples go.
"""

import hashlib
import io
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq

from results.catalogue import StoreError
from results.files import LocalFiles
from results.nights.values import VALUES
from results.store import Store

FOLDER = "values"
MOST_SMALL = 32
"""With more small parts than that, they are put together."""
SMALL_BYTES = 8 << 20


def paths(store: Store) -> list[str]:
    """The parts, relative to the store's root."""
    found = (f.path for f in store.files.list(FOLDER))
    return sorted(p for p in found if p.endswith(".parquet") and not PurePosixPath(p).name.startswith("."))


def to_bytes(table: pa.Table) -> bytes:
    """A part's bytes: runs in order of time, so that a reader of the newest nights can pass over row groups."""
    sink = io.BytesIO()
    pq.write_table(table.sort_by([("at", "ascending")]), sink, compression="zstd", row_group_size=1 << 17)
    return sink.getvalue()


def write(store: Store, table: pa.Table) -> str:
    """Add a part; returns its path. The same rows give the same part: adding them again changes nothing."""
    data = to_bytes(table)
    path = f"{FOLDER}/{hashlib.sha256(data).hexdigest()[:20]}.parquet"
    if not store.files.exists(path):
        store.files.put(path, data)
    return path


def read(store: Store, path: str) -> pa.Table:
    """A part whole. Raises StoreError when its bytes are not those that were written."""
    data = store.files.read(path)
    if hashlib.sha256(data).hexdigest()[:20] != PurePosixPath(path).stem:
        raise StoreError(f"{store.location}/{path} is damaged: its bytes are not those of its name")
    return _of_today(pq.read_table(io.BytesIO(data)))


def _of_today(table: pa.Table) -> pa.Table:
    """A part of an earlier version: columns that came later are null, those that are gone are passed over."""
    for field in VALUES:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(VALUES.names)


def readable(store: Store) -> tuple[list[str], list[str]]:
    """The parts whose footer can be read, and a line for each of the others, which are set aside for good.

    Runs whose values were in a damaged part are ingested again, as long as their samples are there.
    """
    good, problems = [], []
    for path in paths(store):
        try:
            with _opened(store, path) as source:
                pq.read_metadata(source)
        except (pa.ArrowInvalid, OSError) as error:
            problems.append(set_aside(store, path, str(error)))
        else:
            good.append(path)
    return good, problems


def _opened(store: Store, path: str) -> pa.NativeFile:
    if isinstance(store.files, LocalFiles):
        return pa.OSFile(str(store.files.root / path))
    return pa.BufferReader(store.files.read(path))


def set_aside(store: Store, path: str, why: str) -> str:
    """Move a damaged part to `aside/`; returns a line that tells."""
    target = f"aside/{path}"
    store.files.put(target, store.files.read(path))
    store.files.discard(path)
    return f"{store.location}/{path} is damaged ({why}) and was moved to {target}; its runs are ingested again"


def merge(store: Store, most: int = MOST_SMALL, small_bytes: int = SMALL_BYTES) -> list[str]:
    """Put small parts together when there are many; returns a line for each that is damaged. Under the store's lock.

    The new part is there before the old ones go: a reader, or a kill, in between meets runs twice, which count once.
    """
    sizes = {path: _bytes(store, path) for path in paths(store)}
    old = [path for path, size in sizes.items() if size < small_bytes]
    if len(old) <= most:
        return []
    tables, problems, merged = [], [], []
    for path in old:
        try:
            tables.append(read(store, path))
            merged.append(path)
        except (StoreError, pa.ArrowInvalid, OSError) as error:
            problems.append(set_aside(store, path, str(error)))
    new = write(store, pa.concat_tables(tables)) if tables else ""
    for path in merged:
        if path != new:
            store.files.discard(path)
    return problems


def _bytes(store: Store, path: str) -> int:
    if isinstance(store.files, LocalFiles):
        return (store.files.root / path).stat().st_size
    return len(store.files.read(path))
