"""A store's runs as temporary views: samples, events, runs, flows, nics."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from results.files import LocalFiles
from results.manifest import FileKind, Manifest, Move
from results.store import Store

_RUN = "regexp_extract(_metadata.file_path, 'runs/([^/]+)/[^/]*$', 1) AS run_id"

_SAMPLES = "ts TIMESTAMP, host STRING, metric STRING, topic STRING, `partition` INT, label STRING, value DOUBLE"
_EVENTS = "ts TIMESTAMP, kind STRING, name STRING, host STRING, detail STRING"
_TYPES = {pa.string(): "STRING", pa.int32(): "INT", pa.int64(): "BIGINT", pa.float64(): "DOUBLE"}


@contextmanager
def views(spark: SparkSession, store: Store, manifests: Sequence[Manifest]) -> Iterator[None]:
    """Register the views for the `with` block.

    A store that is not local is copied to a temporary folder: Spark's own S3 client is not part of the project.
    """
    with TemporaryDirectory(prefix="testbed-runs-") as folder:
        samples = [_local(store, m, "samples", Path(folder)) for m in manifests]
        events = [_local(store, m, "events", Path(folder)) for m in manifests]
        # Schemas are given, not inferred: that would be a job for each.
        spark.read.schema(_SAMPLES).parquet(*samples).selectExpr(
            _RUN, "unix_micros(ts) AS us", "host", "metric", "topic", "partition", "label", "value"
        ).createOrReplaceTempView("samples")
        spark.read.schema(_EVENTS).parquet(*events).selectExpr(
            _RUN, "unix_micros(ts) AS us", "kind"
        ).createOrReplaceTempView("events")
        moves = [(m, m.move) for m in manifests if m.move is not None]
        for name, table in (("runs", _runs(moves)), ("flows", _flows(moves)), ("nics", _nics(manifests))):
            path = f"{folder}/{name}.parquet"
            pq.write_table(table, path)
            schema = ", ".join(f"{f.name} {_TYPES[f.type]}" for f in table.schema)
            spark.read.schema(schema).parquet(path).createOrReplaceTempView(name)
        yield


def _local(store: Store, manifest: Manifest, kind: FileKind, folder: Path) -> str:
    entry = next(f for f in manifest.files if f.kind == kind)
    if isinstance(store.files, LocalFiles):
        return str(store.files.root / entry.path)
    target = folder / entry.path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(store.files.read(entry.path))
    return str(target)


def _runs(moves: Sequence[tuple[Manifest, Move]]) -> pa.Table:
    """One row a run; lengths of time in microseconds."""
    return pa.Table.from_pylist(
        [
            {
                "run_id": manifest.run_id,
                "quota": move.quota_bytes_per_s,
                "window_us": round(move.window_s * 1e6),
                "warmup_us": round(move.warmup_s * 1e6),
                "tail_us": round(move.tail_s * 1e6),
            }
            for manifest, move in moves
        ],
        schema=pa.schema(
            [
                ("run_id", pa.string()),
                ("quota", pa.float64()),
                ("window_us", pa.int64()),
                ("warmup_us", pa.int64()),
                ("tail_us", pa.int64()),
            ]
        ),
    )


def _flows(moves: Sequence[tuple[Manifest, Move]]) -> pa.Table:
    """One row a partition and direction: bytes that `source` (the follower) logs go through `host`."""
    rows = [
        {
            "run_id": manifest.run_id,
            "kind": flow.kind,
            "host": host,
            "direction": direction,
            "source": flow.follower,
            "topic": flow.topic,
            "partition": partition,
        }
        for manifest, move in moves
        for flow in move.flows
        for host, direction in ((flow.leader, "transmit"), (flow.follower, "receive"))
        for partition in flow.partitions
    ]
    strings = [(n, pa.string()) for n in ("run_id", "kind", "host", "direction", "source", "topic")]
    return pa.Table.from_pylist(rows, schema=pa.schema([*strings, ("partition", pa.int32())]))


def _nics(manifests: Sequence[Manifest]) -> pa.Table:
    rows = [
        {"run_id": m.run_id, "host": n.host, "direction": n.direction, "device": n.device}
        for m in manifests
        for n in m.nics
    ]
    names = ("run_id", "host", "direction", "device")
    return pa.Table.from_pylist(rows, schema=pa.schema([(n, pa.string()) for n in names]))
