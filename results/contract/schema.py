"""The tables of a run: samples, events, criteria.

Times are UTC with microseconds. `docs/schema.md` says what each metric and event means.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from results.contract.aliases import criterion_name
from results.contract.verdict import Finding, Power

_TIME = pa.timestamp("us", tz="UTC")

SAMPLES = pa.schema(
    [
        pa.field("ts", _TIME, nullable=False),
        pa.field("host", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("label", pa.string()),
        pa.field("value", pa.float64(), nullable=False),
    ]
)

EVENTS = pa.schema(
    [
        pa.field("ts", _TIME, nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("host", pa.string()),
        pa.field("detail", pa.string(), nullable=False),
    ]
)

CRITERIA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("host", pa.string()),
        pa.field("direction", pa.string()),
        pa.field("expected", pa.string(), nullable=False),
        pa.field("observed_number", pa.float64()),
        pa.field("observed_text", pa.string()),
        pa.field("unit", pa.string(), nullable=False),
        pa.field("tolerance", pa.string(), nullable=False),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("why", pa.string(), nullable=False),
        pa.field("series", pa.list_(pa.field("item", pa.string(), nullable=False)), nullable=False),
        pa.field("power_value", pa.float64()),
        pa.field("power_unit", pa.string()),
        pa.field("power_text", pa.string()),
    ]
)


class TableError(ValueError):
    """A table that is not of its schema; the message names the column."""


class Sample(NamedTuple):
    """One value read at one instant; `ts_us` is microseconds since the epoch, UTC."""

    ts_us: int
    host: str
    metric: str
    value: float
    topic: str | None = None
    partition: int | None = None
    label: str | None = None


class Event(NamedTuple):
    """Something that happened; `ts_us` is microseconds since the epoch, UTC; `detail` must be JSON-able."""

    ts_us: int
    kind: str
    name: str = ""
    host: str | None = None
    detail: Mapping[str, Any] = {}


def samples_table(samples: Iterable[Sample]) -> pa.Table:
    """Return samples as a table of schema SAMPLES, in order of time."""
    rows = sorted(samples, key=lambda s: (s.ts_us, s.host, s.metric))
    columns = {
        "ts": pa.array([s.ts_us for s in rows], pa.int64()).cast(_TIME),
        **{name: [getattr(s, name) for s in rows] for name in ("host", "metric", "topic", "partition", "label")},
        "value": [float(s.value) for s in rows],
    }
    return pa.table(columns, schema=SAMPLES)


def events_table(events: Iterable[Event]) -> pa.Table:
    """Return events as a table of schema EVENTS, in order of time (those of one instant stay in the order given)."""
    rows = sorted(events, key=lambda e: e.ts_us)
    columns = {
        "ts": pa.array([e.ts_us for e in rows], pa.int64()).cast(_TIME),
        "kind": [e.kind for e in rows],
        "name": [e.name for e in rows],
        "host": [e.host for e in rows],
        "detail": [json.dumps(e.detail, ensure_ascii=False, allow_nan=False) for e in rows],
    }
    return pa.table(columns, schema=EVENTS)


_AS_THEY_ARE = ("name", "host", "direction", "expected", "unit", "tolerance", "verdict", "why")


def criteria_table(criteria: Iterable[Finding]) -> pa.Table:
    """Return criteria as a table of schema CRITERIA; an observed number and observed words have a column each."""
    rows = list(criteria)
    columns = {
        **{name: [getattr(c, name) for c in rows] for name in _AS_THEY_ARE},
        "observed_number": [None if isinstance(c.observed, str | None) else float(c.observed) for c in rows],
        "observed_text": [c.observed if isinstance(c.observed, str) else None for c in rows],
        "series": [list(c.series) for c in rows],
        "power_value": [None if c.power is None else float(c.power.value) for c in rows],
        "power_unit": [None if c.power is None else c.power.unit for c in rows],
        "power_text": [None if c.power is None else c.power.text for c in rows],
    }
    return pa.table(columns, schema=CRITERIA)


def criteria_from_table(table: pa.Table) -> list[Finding]:
    """Return the findings that `criteria_table` wrote, under today's names of their criteria."""
    criteria = []
    for row in conform(table, CRITERIA, "criteria").to_pylist():
        number, text = row.pop("observed_number"), row.pop("observed_text")
        series = tuple(row.pop("series"))
        row["name"] = criterion_name(row["name"])
        value, unit, words = (row.pop(f"power_{part}") for part in ("value", "unit", "text"))
        power = None if value is None else Power(value, unit, words)
        criteria.append(Finding(observed=text if number is None else number, series=series, power=power, **row))
    return criteria


def conform(table: Any, schema: pa.Schema, what: str) -> pa.Table:
    """Return `table` (Arrow, or a pandas DataFrame) with exactly the columns and types of `schema`.

    Raise TableError naming the column that is missing, unknown, of another type, or null.
    """
    if not isinstance(table, pa.Table):
        table = pa.Table.from_pandas(table, preserve_index=False)
    missing = [n for n in schema.names if n not in table.column_names]
    unknown = [n for n in table.column_names if n not in schema.names]
    if missing or unknown:
        raise TableError(f"{what}: missing columns {missing}, unknown columns {unknown}; expected {schema.names}")
    columns = []
    for wanted in schema:
        column = table.column(wanted.name)
        try:
            column = column.cast(wanted.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise TableError(f"{what}.{wanted.name}: {column.type} is not {wanted.type}: {error}") from error
        if not wanted.nullable and column.null_count:
            raise TableError(f"{what}.{wanted.name}: {column.null_count} nulls; a value is required in every row")
        columns.append(column)
    return pa.table(columns, schema=schema)
