"""Ingest of new runs into the values table: one worker of Spark reads each run, once."""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from results.contract.aliases import MEASURES, VALUES_COLUMNS
from results.contract.canaries import canaries
from results.contract.files import LocalFiles
from results.contract.manifest import Manifest
from results.contract.store import Store, StoreError
from results.criteria.judgement import Judgement, UnknownExperimentError, criteria_of, judge, noisy, sound
from results.criteria.run_view import RunView
from results.nights import values_table
from results.nights.values import (
    READ,
    VALUES,
    Value,
    canary_values,
    duration_values,
    move_values,
    rows,
    summarise,
    summary_values,
)

RUNS_A_TASK = 200
PROBLEMS = pa.schema([("run_id", pa.string()), ("problem", pa.string()), ("lost", pa.bool_())])


@dataclass(frozen=True, slots=True)
class IngestResult:
    """How many runs were new, and a line for each that could not be taken in."""

    runs: int
    problems: tuple[str, ...]


def ingest(spark: SparkSession, store: Store) -> IngestResult:
    """Take in every run that is not in the values table yet. Only under the store's lock.

    What cannot be read is named, hides no other, and is tried again the next time.
    """
    known, problems = values_table.readable(store)
    ids = store.runs()
    if not ids:
        return IngestResult(0, tuple(problems))
    wanted = spark.createDataFrame([(run_id,) for run_id in ids], "run_id string")
    if known:
        with table(spark, store, known) as values:
            wanted = wanted.join(values.select("run_id").distinct(), "run_id", "left_anti")
            new = [row.run_id for row in wanted.collect()]
    else:
        new = list(ids)
    if not new:
        return IngestResult(0, tuple(problems))
    tasks = max(spark.sparkContext.defaultParallelism, -(-len(new) // RUNS_A_TASK))
    # Sorted into ranges, since runs of one pack are read together.
    frame = spark.createDataFrame([(r,) for r in new], "run_id string")
    done = frame.repartitionByRange(min(tasks, len(new)), "run_id").mapInArrow(
        functools.partial(_take_in, store.location), "run_id string, problem string, lost boolean"
    )
    rows = done.collect()
    problems += [f"run {row.run_id}: {row.problem}" for row in rows]
    values_table.merge(store)
    return IngestResult(len(new) - sum(row.lost for row in rows), tuple(problems))


@contextlib.contextmanager
def table(spark: SparkSession, store: Store, known: list[str]) -> Iterator[DataFrame]:
    """Yield the parts as one data frame for the block.

    A run that is in two of them is there twice, with the same values.

    Those of a store that is not local are copied: Spark's S3 client is not part of the project.
    """
    with TemporaryDirectory(prefix="testbed-values-") as folder:
        files = []
        for path in known:
            if isinstance(store.files, LocalFiles):
                files.append(str(store.files.root / path))
            else:
                copy = Path(folder) / PurePosixPath(path).name
                copy.write_bytes(store.files.read(path))
                files.append(str(copy))
        stored = spark.read.schema(SPARK_VALUES).parquet(*files)
        today = f.create_map(*(f.lit(word) for pair in MEASURES.items() for word in pair))
        for before, name in VALUES_COLUMNS.items():  # a part has the column under one of both names
            stored = stored.withColumn(name, f.coalesce(name, before)).drop(before)
        yield stored.withColumn("metric", f.coalesce(today[f.col("metric")], f.col("metric")))


_SPARK_TYPES = {"at": "TIMESTAMP", "value": "DOUBLE", "noisy": "BOOLEAN", "disturbed": "BOOLEAN"}
SPARK_VALUES = ", ".join(f"`{name}` {_SPARK_TYPES.get(name, 'STRING')}" for name in (*VALUES.names, *VALUES_COLUMNS))


def _take_in(location: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Put the runs' rows into parts of their own, on a worker; yield what could not be read."""
    store = Store.open(location)
    failed: list[dict[str, Any]] = []
    for batch in batches:
        found: list[dict[str, Any]] = []
        for run_id in batch.column("run_id").to_pylist():
            try:
                read = canaries(store, run_id)
            except Exception as error:  # noqa: BLE001 - the run itself is whole
                failed.append({"run_id": run_id, "problem": _as_text(error), "lost": False})
                read = {}
            try:
                found += rows_of(store, run_id, read)
            except Exception as error:  # noqa: BLE001 - whatever it is, one run shall not keep the others out
                failed.append({"run_id": run_id, "problem": _as_text(error), "lost": True})
        if found:
            values_table.write(store, pa.Table.from_pylist(found, schema=VALUES))
    yield pa.RecordBatch.from_pylist(failed, schema=PROBLEMS)


def _as_text(error: Exception) -> str:
    return str(error) if isinstance(error, StoreError | ValueError) else f"{type(error).__name__}: {error}"


def rows_of(store: Store, run_id: str, read: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return a run's rows; `read` are its canaries' readings.

    Raise StoreError when it cannot be read, ValueError when what it says makes no sense.
    """
    run = store.manifest(run_id)
    values, failed, judged = _numbers(store, run)
    every = [*values, *canary_values(run, read)]
    if judged is None or run.verdict != "inconclusive":
        return rows(run, failed, every)
    return rows(run, failed, every, noisy=noisy(judged), sound=sound(judged))


def _numbers(store: Store, run: Manifest) -> tuple[list[Value], list[str], Judgement | None]:
    """Return the run's numbers, the criteria that failed, and the judgement, of what has rules."""
    if run.incident is None:
        with contextlib.suppress(UnknownExperimentError):
            criteria_of(RunView(run))  # before anything is read: what has no rules is only summarised
            samples = store.samples(run.run_id)
            judged = judge(run, samples, store.events(run.run_id))
            failed = [c.name for c in judged.criteria if c.verdict == "fail"]
            moved = run.move is not None or run.relocation is not None
            return list(move_values(run, judged.measures) if moved else duration_values(samples)), failed, judged
    failed = [c.name for c in store.criteria(run.run_id) if c.verdict == "fail"]
    if run.incident is not None:
        return [], failed, None
    names, _, numbers = summarise(store.table(run.run_id, "samples", READ))
    return list(summary_values(names, numbers)), failed, None
