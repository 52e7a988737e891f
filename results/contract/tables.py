"""A run's tables as they are stored: Parquet whose rows name their run.

Version 1 stored them without that column; columns that came later and may be null are null where an older file has
none.
"""

import io
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from results.contract.schema import TableError, conform

COMPRESSION = "zstd"
"""The codec of every Parquet file of a store."""
MOST_ROWS, MOST_BYTES = 50_000_000, 4 * 2**30
"""Of one table, uncompressed: a small file may decompress to any size."""
RUN_ID = pa.field("run_id", pa.string(), nullable=False)


def stored_form(run_id: str, table: pa.Table) -> pa.Table:
    """Return the table with its run in front of each row; one chunk, so that the same rows make the same bytes."""
    return table.add_column(0, RUN_ID, pa.repeat(run_id, table.num_rows)).combine_chunks()


USE_THREADS = False
"""A thread of Arrow's that holds a Python object when Python ends waits for the GIL. Python then ends that thread, and
C++ ends the process: *terminate called without an active exception*. So files are read in the calling thread."""


def to_parquet(run_id: str, table: pa.Table) -> bytes:
    """Return a file of one run, a single row group."""
    sink = io.BytesIO()
    pq.write_table(stored_form(run_id, table), sink, compression=COMPRESSION, row_group_size=max(table.num_rows, 1))
    return sink.getvalue()


def from_parquet(
    data: bytes, run_id: str, schema: pa.Schema, what: str, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return a file of one run, of this version or an earlier one, or those columns of it.

    Raise TableError when it is no such file.
    """
    try:
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            check_size(file.metadata, range(file.num_row_groups), what)
            table = file.read(columns=None if columns is None else [RUN_ID.name, *columns], use_threads=USE_THREADS)
            table.validate(full=True)
    except TableError:
        raise
    except (pa.ArrowException, ValueError, OSError) as error:
        raise TableError(f"{what}: not readable as Parquet: {error}") from error
    return api_form(table, run_id, some(schema, columns), what)


def check_size(metadata: pq.FileMetaData, numbers: Iterable[int], what: str) -> None:
    """Raise TableError when these row groups have more rows, or more bytes uncompressed, than a run's table has."""
    groups = [metadata.row_group(number) for number in numbers]
    rows, size = sum(group.num_rows for group in groups), sum(group.total_byte_size for group in groups)
    if rows > MOST_ROWS or size > MOST_BYTES:
        raise TableError(f"{what}: {rows} rows of {size} bytes; a run's table has {MOST_ROWS} rows at most")


def some(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """Return the schema with those columns alone (None: all); the run's column is read in any case."""
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


def api_form(table: pa.Table, run_id: str, schema: pa.Schema, what: str) -> pa.Table:
    """Return the table as the API has it. Raise TableError for rows of another run, or another schema."""
    if len(set(table.column_names)) < len(table.column_names):
        raise TableError(f"{what}: two columns have one name, of {table.column_names}")
    if RUN_ID.name in table.column_names:
        others = set(table.column(RUN_ID.name).unique().to_pylist()) - {run_id}
        if others:
            raise TableError(f"{what}: rows of {', '.join(sorted(map(str, others)))}; expected {run_id} alone")
        table = table.drop_columns([RUN_ID.name])
    for field in schema:
        if field.nullable and field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return conform(table, schema, what)


def same(one: pa.Table, other: pa.Table) -> bool:
    """Return whether both hold the same, a NaN where the other has one: Arrow's `equals` says that they differ."""
    if one.equals(other):
        return True
    return bool(one.schema.equals(other.schema)) and all(map(_same_column, one.columns, other.columns))


def _same_column(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(one.type):
        return bool(one.equals(other))
    nowhere = [pc.is_nan(column) for column in (one, other)]
    numbers = [pc.if_else(nan, 0.0, column) for nan, column in zip(nowhere, (one, other), strict=True)]
    return bool(nowhere[0].equals(nowhere[1])) and bool(numbers[0].equals(numbers[1]))
