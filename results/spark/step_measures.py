"""The measures of runs of steps, computed by Spark SQL from the views of `sources`, for all runs at once."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from results.contract.manifest import Manifest
from results.contract.steps import asked
from results.criteria.measures import MoveMeasures
from results.criteria.step_measures import DESCRIBED, LISTED, state_of, without_move
from results.criteria.steps_seen import Found, Polled, StepMeasures
from results.spark import step_sql

_INTS = pa.list_(pa.int32())
_WANTED = pa.schema(
    [
        ("run_id", pa.string()),
        ("step", pa.int32()),
        ("expectation", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("first_us", pa.int64()),
        ("last_us", pa.int64()),
        *((name, _INTS) for name in ("replicas", "ordered", "adding", "removing", "isr")),
        *((name, _INTS) for name in ("in_sync", "out_of_sync", "leaders")),
        ("gone", pa.bool_()),
    ]
)


def measure_stepped(spark: SparkSession, manifests: Sequence[Manifest]) -> dict[str, MoveMeasures]:
    """Run id to measures, of runs of steps; the view `events` must be registered."""
    if not manifests:
        return {}
    spark.createDataFrame(_wanted(manifests)).createOrReplaceTempView("wanted")
    spark.sql(step_sql.STATES).createOrReplaceTempView("states")
    rows = spark.sql(step_sql.FOUND).toArrow().to_pylist()
    found = {(row["run_id"], row["step"], row["expectation"]): row for row in rows}
    polled = {(row["run_id"], row["kind"]): row for row in spark.sql(step_sql.POLLED).toArrow().to_pylist()}
    return {m.run_id: without_move(_measures(m, found, polled)) for m in manifests}


def _measures(
    manifest: Manifest, found: dict[tuple[str, int, int], dict[str, Any]], polled: dict[tuple[str, str], dict[str, Any]]
) -> StepMeasures:
    assert manifest.steps is not None
    all_found = []
    for place, number, _expectation, _first, _last in asked(manifest.steps.steps):
        row = found.get((manifest.run_id, place, number))
        last = None if row is None else state_of(row["last"])
        all_found.append(Found(place, number, None if row is None else row["us"], last))
    none = {"told": 0, "unlike": 0}
    rows = [(kind, polled.get((manifest.run_id, kind), none)) for kind in (DESCRIBED, LISTED)]
    return StepMeasures(tuple(all_found), tuple(Polled(kind, row["told"], row["unlike"]) for kind, row in rows))


def _wanted(manifests: Sequence[Manifest]) -> pa.Table:
    rows = []
    for manifest in manifests:
        assert manifest.steps is not None
        for place, number, e, first, last in asked(manifest.steps.steps):
            wanted = e.wanted
            sets = {name: getattr(wanted, name) for name in ("replicas", "adding", "removing", "isr", "leaders")}
            rows.append(
                {
                    "run_id": manifest.run_id,
                    "step": place,
                    "expectation": number,
                    "topic": e.topic,
                    "partition": e.partition,
                    "first_us": first,
                    "last_us": last,
                    "ordered": None if wanted.order is None else list(wanted.order),
                    "in_sync": list(wanted.in_sync),
                    "out_of_sync": list(wanted.out_of_sync),
                    "gone": wanted.gone,
                    **{name: None if value is None else sorted(value) for name, value in sets.items()},
                }
            )
    return pa.Table.from_pylist(rows, schema=_WANTED)
