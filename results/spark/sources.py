"""A store's runs as temporary views: samples, events, runs, flows, ends, nics."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from results.contract.files import LocalFiles
from results.contract.manifest import FileKind, Flow, Manifest, Move
from results.contract.store import Store
from results.contract.tables import to_parquet

_RUN = "regexp_extract(_metadata.file_path, 'runs/([^/]+)/[^/]*$', 1) AS run_id"

_SAMPLES = "ts TIMESTAMP, host STRING, metric STRING, topic STRING, `partition` INT, label STRING, value DOUBLE"
_EVENTS = "ts TIMESTAMP, kind STRING, name STRING, host STRING, detail STRING"
_TYPES = {pa.string(): "STRING", pa.int32(): "INT", pa.int64(): "BIGINT", pa.float64(): "DOUBLE"}


@contextmanager
def views(spark: SparkSession, store: Store, manifests: Sequence[Manifest]) -> Iterator[None]:
    """Register the views for the `with` block.

    A store that is not local is copied to a temporary folder: Spark's own S3 client is not part of the project. So are
    runs in packs.
    """
    with TemporaryDirectory(prefix="testbed-runs-") as folder:
        samples = [_local(store, m, "samples", Path(folder)) for m in manifests]
        events = [_local(store, m, "events", Path(folder)) for m in manifests]
        # Schemas are given, not inferred: that would be a job for each.
        spark.read.schema(_SAMPLES).parquet(*samples).selectExpr(
            _RUN, "unix_micros(ts) AS us", "host", "metric", "topic", "partition", "label", "value"
        ).createOrReplaceTempView("samples")
        spark.read.schema(_EVENTS).parquet(*events).selectExpr(
            _RUN, "unix_micros(ts) AS us", "kind", "host", "detail"
        ).createOrReplaceTempView("events")
        moves = [(m, m.move) for m in manifests if m.move is not None]
        tables = {"runs": _runs(moves), "flows": _flows(moves), "ends": _ends(moves), "nics": _nics(manifests)}
        for name, table in tables.items():
            path = f"{folder}/{name}.parquet"
            pq.write_table(table, path)
            schema = ", ".join(f"{f.name} {_TYPES[f.type]}" for f in table.schema)
            spark.read.schema(schema).parquet(path).createOrReplaceTempView(name)
        yield


def _local(store: Store, manifest: Manifest, kind: FileKind, folder: Path) -> str:
    entry = next(f for f in manifest.files if f.kind == kind)
    if isinstance(store.files, LocalFiles) and not entry.packed:
        return str(store.files.root / entry.path)
    target = folder / "runs" / manifest.run_id / f"{kind}.parquet"
    target.parent.mkdir(parents=True, exist_ok=True)
    # A pack's file is shared: of it only this run's part is checked, and wanted.
    packed = to_parquet(manifest.run_id, store.table_of(manifest, kind)) if entry.packed else None
    target.write_bytes(packed or store.files.read(entry.path))
    return str(target)


def _runs(moves: Sequence[tuple[Manifest, Move]]) -> pa.Table:
    """One row a run; lengths of time in microseconds."""
    return pa.Table.from_pylist(
        [
            {
                "run_id": manifest.run_id,
                "quota": move.quota_bytes_per_s,
                "window_us": round(move.window_s * 1e6),
                "sample_us": round(move.sample_s * 1e6),
                "warmup_us": round(move.warmup_s * 1e6),
                "tail_us": round(move.tail_s * 1e6),
                "min_insync": move.min_insync,
            }
            for manifest, move in moves
        ],
        schema=pa.schema(
            [
                ("run_id", pa.string()),
                ("quota", pa.float64()),
                ("window_us", pa.int64()),
                ("sample_us", pa.int64()),
                ("warmup_us", pa.int64()),
                ("tail_us", pa.int64()),
                ("min_insync", pa.int64()),
            ]
        ),
    )


def _flows(moves: Sequence[tuple[Manifest, Move]]) -> pa.Table:
    """One row a partition and direction: bytes that `source` (the follower) logs go through `host`.

    Kinds are those of the manifest, and *listed*: all that the quota of `host` records in that direction.
    """
    rows = [
        {
            "run_id": manifest.run_id,
            "kind": kind,
            "host": host,
            "direction": direction,
            "source": flow.follower,
            "leader": flow.leader,
            "topic": flow.topic,
            "partition": partition,
        }
        for manifest, move in moves
        for flow in move.flows
        for host, direction in ((flow.leader, "transmit"), (flow.follower, "receive"))
        for kind in ((flow.kind, "listed") if _is_listed(move, flow, direction) else (flow.kind,))
        for partition in flow.partitions
    ]
    strings = [(n, pa.string()) for n in ("run_id", "kind", "host", "direction", "source", "leader", "topic")]
    return pa.Table.from_pylist(rows, schema=pa.schema([*strings, ("partition", pa.int32())]))


def _is_listed(move: Move, flow: Flow, direction: str) -> bool:
    return flow.kind == "throttled" or (flow.kind == "keepup" and (direction == "transmit" or move.wildcard))


def _ends(moves: Sequence[tuple[Manifest, Move]]) -> pa.Table:
    """One row a host and direction with throttled flows; `followers` and their fetchers are null where some are in
    sync, or some have no fetchers in the manifest: nothing but the leader's own bound holds there."""
    rows = []
    for manifest, move in moves:
        throttled = [flow for flow in move.flows if flow.kind == "throttled"]
        in_sync = {flow.leader for flow in move.flows if flow.kind == "keepup"}
        for leader in dict.fromkeys(flow.leader for flow in throttled):
            followers = {flow.follower for flow in throttled if flow.leader == leader}
            received = [move.fetchers[f].receive for f in followers if f in move.fetchers]
            capped = leader not in in_sync and len(received) == len(followers) and min(received, default=0) > 0
            rows.append(
                _end(
                    manifest,
                    move,
                    leader,
                    "transmit",
                    followers=len(followers) if capped else None,
                    follower_fetchers=sum(received) if capped else None,
                )
            )
        for follower in dict.fromkeys(flow.follower for flow in throttled):
            rows.append(_end(manifest, move, follower, "receive", followers=None, follower_fetchers=None))
    schema = pa.schema(
        [
            ("run_id", pa.string()),
            ("host", pa.string()),
            ("direction", pa.string()),
            ("fetchers", pa.int64()),
            ("followers", pa.int64()),
            ("follower_fetchers", pa.int64()),
            ("response", pa.float64()),
            ("wildcard", pa.int32()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def _end(
    manifest: Manifest, move: Move, host: str, direction: str, *, followers: int | None, follower_fetchers: int | None
) -> dict[str, Any]:
    fetchers = move.fetchers.get(host)
    return {
        "run_id": manifest.run_id,
        "host": host,
        "direction": direction,
        "fetchers": 0 if fetchers is None else getattr(fetchers, direction),
        "followers": followers,
        "follower_fetchers": follower_fetchers,
        "response": float(move.response_max_bytes),
        "wildcard": int(move.wildcard),
    }


def _nics(manifests: Sequence[Manifest]) -> pa.Table:
    rows = [
        {"run_id": m.run_id, "host": n.host, "direction": n.direction, "device": n.device}
        for m in manifests
        for n in m.nics
    ]
    names = ("run_id", "host", "direction", "device")
    return pa.Table.from_pylist(rows, schema=pa.schema([(n, pa.string()) for n in names]))
