"""The newest runs of each series, for a page: so many at most, however long the history is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from results.contract.store import Store
from results.nights import values_table
from results.nights.ingest import table
from results.nights.night import BUCKET, counted_rows, due_by, fast
from results.nights.scenarios import ScenarioResult

NEWEST = 120
_POINT = "series string, ids array<string>, kafka array<string>, values array<double>"


@dataclass(frozen=True, slots=True)
class RecentValues:
    """A series' newest runs, oldest first: ids, versions, and values (None where a run has none).

    `kafka` has Kafka's version of each run; of a run without Kafka, such as one of `bench`, the testbed's commit.
    """

    ids: tuple[str, ...]
    kafka: tuple[str, ...]
    values: tuple[float | None, ...]


def recent_values(
    spark: SparkSession,
    store: Store,
    found: Sequence[ScenarioResult],
    newest: int = NEWEST,
    *,
    include_noisy: bool = False,
    now: datetime | None = None,
) -> dict[str, RecentValues]:
    """Return series → its newest runs, for every series of these scenarios.

    `include_noisy` and `now` as for `night`.
    """
    wanted = [line.about.series for each in found for line in each.lines]
    reader = partial(_drawn, spark, store, wanted, newest, include_noisy=include_noisy, now=now)
    return values_table.read_unlocked(store, reader, PySparkException, Py4JError)


def _drawn(
    spark: SparkSession, store: Store, wanted: list[str], newest: int, *, include_noisy: bool, now: datetime | None
) -> dict[str, RecentValues]:
    known = values_table.whole(store) if wanted else []
    if not known:
        return {}
    with table(spark, store, known) as values, fast(spark):
        names = spark.createDataFrame([(name,) for name in wanted], "series string")
        shown = due_by(counted_rows(store, values, include_noisy=include_noisy), now)
        rows = shown.join(f.broadcast(names), "series").select("series", "at", "run_id", "kafka", "commit", "value")
        buckets = max(spark.sparkContext.defaultParallelism, -(-len(wanted) // BUCKET))
        grouped = rows.groupBy(f.expr(f"pmod(xxhash64(series), {buckets})"))
        collected = grouped.applyInArrow(_newest(newest), _POINT).collect()
    return {row.series: RecentValues(tuple(row.ids), tuple(row.kafka), tuple(row["values"])) for row in collected}


def _newest(count: int) -> Callable[[pa.Table], pa.Table]:
    # Spark looks at the annotations of what it is given.
    def newest(rows: pa.Table) -> pa.Table:
        return newest_of(rows, count)

    return newest


def newest_of(rows: pa.Table, count: int) -> pa.Table:
    """Return a row for each series of a bucket. Pure."""
    rows = rows.set_column(rows.column_names.index("kafka"), "kafka", _versions(rows))
    rows = rows.sort_by([("series", "ascending"), ("at", "ascending"), ("run_id", "ascending")]).combine_chunks()
    series = rows.column("series").combine_chunks().dictionary_encode()
    codes = np.asarray(series.indices)
    ids = np.asarray(rows.column("run_id").combine_chunks().dictionary_encode().indices)
    once = np.ones(len(codes), bool)
    once[1:] = (codes[1:] != codes[:-1]) | (ids[1:] != ids[:-1])
    kept = np.flatnonzero(once)
    spans = [kept[codes[kept] == code][-count:] for code in range(len(series.dictionary))]
    chosen = rows.take(np.concatenate(spans)) if spans else rows.slice(0, 0)
    offsets = pa.array(np.concatenate([[0], np.cumsum([len(span) for span in spans])]), pa.int32())
    lists = (pa.ListArray.from_arrays(offsets, chosen.column(n).combine_chunks()) for n in ("run_id", "kafka", "value"))
    return pa.table([series.dictionary, *lists], names=["series", "ids", "kafka", "values"])


def _versions(rows: pa.Table) -> pa.ChunkedArray:
    testbed = pc.binary_join_element_wise("testbed", pc.utf8_slice_codeunits(rows["commit"], 0, 12), " ")
    return pc.if_else(pc.equal(rows["kafka"], ""), pc.coalesce(testbed, ""), rows["kafka"])
