"""Runs of a store judged again on Spark's workers, by the same functions that judge a run when it is recorded."""

import functools
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from results.contract.store import Store, StoreError
from results.criteria.judgement import Judgement, judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JUDGED = "run_id string, judgement binary, problem string"
_SCHEMA = pa.schema([("run_id", pa.string()), ("judgement", pa.binary()), ("problem", pa.string())])


@dataclass(frozen=True, slots=True)
class Recomputed:
    """Judgements by run id; `problems` names every run that could not be judged again, and why."""

    judgements: dict[str, Judgement]
    problems: tuple[str, ...]


def recompute(spark: "SparkSession | None", store: Store, run_ids: Sequence[str] | None = None) -> Recomputed:
    """Judge runs again, all of the store's when no ids are given. Raise StoreError for an id that is not there.

    A corrupt manifest, a file that differs from its digest or an experiment without rules hides no other run. Incidents
    are judged by the driver: `spark` may be None when the runs are incidents only.
    """
    scan = store.scan() if run_ids is None else None
    manifests = scan.manifests if scan else tuple(store.manifest(r) for r in run_ids or ())
    problems = list(scan.problems) if scan else []
    judgements: dict[str, Judgement] = {}
    remote = []
    for manifest in manifests:
        if manifest.incident is None:
            remote.append(manifest.run_id)
        elif isinstance(found := _judged(store, manifest.run_id), Judgement):
            judgements[manifest.run_id] = found
        else:
            problems.append(found)
    if remote:
        if spark is None:
            raise ValueError(f"a Spark session is needed to judge {remote[0]}")
        tasks = min(spark.sparkContext.defaultParallelism, len(remote))
        frame = spark.createDataFrame([(run_id,) for run_id in remote], "run_id string")
        found_rows = frame.repartitionByRange(tasks, "run_id").mapInArrow(
            functools.partial(_judge_all, store.location), _JUDGED
        )
        for row in sorted(found_rows.collect(), key=lambda row: str(row.run_id)):
            if row.problem is not None:
                problems.append(row.problem)
            else:
                judgements[row.run_id] = pickle.loads(bytes(row.judgement))
    return Recomputed(judgements, tuple(problems))


def _judge_all(location: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Judge each run of the batches on a worker; yield its judgement, or why it could not be judged."""
    store = Store.open(location)
    for batch in batches:
        rows: list[dict[str, Any]] = []
        for run_id in batch.column("run_id").to_pylist():
            found = _judged(store, run_id)
            if isinstance(found, Judgement):
                rows.append({"run_id": run_id, "judgement": pickle.dumps(found), "problem": None})
            else:
                rows.append({"run_id": run_id, "judgement": None, "problem": found})
        yield pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)


def _judged(store: Store, run_id: str) -> Judgement | str:
    """Return the run's judgement, or a line that says why it cannot be judged."""
    try:
        store.verify(run_id)
        return judge(store.manifest(run_id), store.samples(run_id), store.events(run_id))
    except StoreError as error:
        return str(error)
    except ValueError as error:
        return f"run {run_id}: {error}"
    except Exception as error:  # noqa: BLE001 - one damaged run must not hide the others
        return f"run {run_id}: {error!r}"
