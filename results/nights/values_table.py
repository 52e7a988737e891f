"""The values table in a store: `<root>/values/<part>.parquet`, written once each, read together.

A part appears whole (one put) and never changes, and a run that is in two of them counts once: so a killed ingest
loses nothing and doubles nothing. Small parts are put together now and then. Values stay when their runs' samples go.
"""

import hashlib
import io
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from results.contract.aliases import VALUES_COLUMNS
from results.contract.store import Store, StoreError
from results.contract.tables import COMPRESSION, USE_THREADS
from results.nights.values import VALUES

T = TypeVar("T")
FOLDER = "values"
MOST_SMALL = 32
"""With more small parts than that, they are put together."""
SMALL_BYTES = 8 << 20


def paths(store: Store) -> list[str]:
    """Return the parts, relative to the store's root."""
    found = (f.path for f in store.files.list(FOLDER))
    return sorted(p for p in found if p.endswith(".parquet") and not PurePosixPath(p).name.startswith("."))


def write(store: Store, table: pa.Table) -> str:
    """Add a part and return its path. The same rows give the same part: adding them again changes nothing."""
    sink = io.BytesIO()
    # Runs in order of time: a reader of the newest nights can pass over row groups.
    pq.write_table(table.sort_by([("at", "ascending")]), sink, compression=COMPRESSION, row_group_size=1 << 17)
    data = sink.getvalue()
    path = f"{FOLDER}/{hashlib.sha256(data).hexdigest()[:20]}.parquet"
    if not store.files.exists(path):
        store.files.put(path, data)
    return path


def read(store: Store, path: str) -> pa.Table:
    """Return a part whole. Raise StoreError when its bytes differ from the written ones."""
    data = store.files.read(path)
    if not _whole(path, data):
        raise StoreError(f"{store.location}/{path} is damaged: its bytes are not those of its name")
    return of_today(pq.read_table(pa.BufferReader(data), use_threads=USE_THREADS))


def of_today(table: pa.Table) -> pa.Table:
    """Return a part of any version with today's columns; a column that a part lacks is null."""
    table = table.rename_columns([VALUES_COLUMNS.get(name, name) for name in table.column_names])
    for field in VALUES:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(VALUES.names)


def readable(store: Store) -> tuple[list[str], list[str]]:
    """Return the parts that are as they were written, and a line for each other one, which is set aside for good.

    Under the store's lock.

    Runs whose values were in a damaged part are ingested again, as long as their samples are there.
    """
    good, problems = [], []
    for path in paths(store):
        if _whole(path, store.files.read(path)):
            good.append(path)
        else:
            problems.append(quarantine(store, path))
    return good, problems


def whole(store: Store) -> list[str]:
    """Return the parts that are as they were written, for a reader without the store's lock.

    Raise FileNotFoundError when one is put together with others meanwhile.
    """
    return [path for path in paths(store) if _whole(path, store.files.read(path))]


def read_unlocked(store: Store, reader: Callable[[], T], *also: type[Exception]) -> T:
    """Return what a reader without the store's lock finds; it reads again where parts were put together meanwhile.

    It then fails with FileNotFoundError, or with one of `also`.
    """
    gone: tuple[type[Exception], ...] = (FileNotFoundError, *also)
    there = paths(store)
    try:
        return reader()
    except gone:
        if paths(store) == there:
            raise
        return reader()


NAMING = ("series", "scenario", "experiment", "metric", "parameters")
"""The columns that a user's name of series is compared with."""


def known_series(store: Store) -> set[tuple[str, ...]]:
    """Return the columns `NAMING` of each series of the store, without the store's lock."""
    return read_unlocked(store, lambda: _known_series(store))


def _known_series(store: Store) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for path in whole(store):
        source = pa.BufferReader(store.files.read(path))
        rows = pq.read_table(source, columns=list(NAMING), use_threads=USE_THREADS)
        # A count is of no use here; each group is a series.
        groups = rows.group_by(list(NAMING)).aggregate([("series", "count")])
        found |= set(zip(*(groups.column(name).to_pylist() for name in NAMING), strict=True))
    return found


def _whole(path: str, data: bytes) -> bool:
    return hashlib.sha256(data).hexdigest()[:20] == PurePosixPath(path).stem


def quarantine(store: Store, path: str) -> str:
    """Move a damaged part to `aside/` and return a line that says so."""
    target = f"aside/{path}"
    store.files.put(target, store.files.read(path))
    store.files.discard(path)
    return f"{store.location}/{path} is damaged and was moved to {target}; its runs are ingested again"


def _once(table: pa.Table) -> pa.Table:
    """Return the table without the rows that a killed merge left in two parts."""
    rows = table.append_column("row", pa.array(np.arange(table.num_rows)))
    first = rows.group_by(["run_id", "series"]).aggregate([("row", "min")]).column("row_min")
    return table.take(first.combine_chunks().sort())


def merge(store: Store, most: int = MOST_SMALL) -> None:
    """Put small parts together when there are many. Under the store's lock, after `readable`.

    The new part is there before the old ones go: a reader, or a kill, in between meets runs twice, which count once.
    """
    small = [path for path in paths(store) if len(store.files.read(path)) < SMALL_BYTES]
    if len(small) <= most:
        return
    new = write(store, _once(pa.concat_tables([read(store, path) for path in small])))
    for path in small:
        if path != new:
            store.files.discard(path)
