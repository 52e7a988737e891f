"""The measures of moves that no quota holds back, computed by Spark SQL from the views of `sources`."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import SparkSession

from results.contract.manifest import Manifest
from results.contract.relocation import Relocation
from results.contract.verdict import DIRECTIONS
from results.criteria.burden import Burden, NicUse
from results.criteria.measures import MoveMeasures
from results.criteria.relocated import P99_BACK, P99_WINDOW_S, NicBytes, RelocationMeasures, Requests
from results.criteria.relocation_measures import DEVICE_READ, LOAD_WINDOW_S, REQUESTS, never_started
from results.spark import around_measures, around_sql, move_sql, relocation_sql
from results.spark.move_measures import machine_load, rows_by
from results.spark.move_series import GAUGES

Row = around_measures.Row
Rows = around_measures.Rows


def measure_relocations(spark: SparkSession, manifests: Sequence[Manifest]) -> dict[str, MoveMeasures]:
    """Run id to measures; the views `samples`, `events`, `nics` must be registered."""
    if not manifests:
        return {}
    wanted = [{"run_id": m.run_id, "window_us": round(LOAD_WINDOW_S * 1e6)} for m in manifests]
    schema = pa.schema([("run_id", pa.string()), ("window_us", pa.int64())])
    spark.createDataFrame(pa.Table.from_pylist(wanted, schema=schema)).createOrReplaceTempView("relocations")
    spark.sql(relocation_sql.CLOCK).createOrReplaceTempView("clock")
    spark.sql("SELECT * FROM clock").createOrReplaceTempView("span")
    spark.sql(GAUGES).createOrReplaceTempView("gauges")
    part = ("run_id", "kind", "part")
    asked = {
        "clock": ("SELECT * FROM clock", ("run_id",)),
        "bytes": (relocation_sql.NIC_BYTES, ("run_id", "host", "direction")),
        "counters": (relocation_sql.COUNTERS, ("run_id", "host", "metric", "label")),
        "cold": (relocation_sql.COLD, ("run_id", "host", "metric")),
        "asked": (relocation_sql.ASKED, ("run_id", "host")),
        "acks": (relocation_sql.ACKS, ("run_id",)),
        "p99": (relocation_sql.p99(P99_WINDOW_S, P99_BACK), ("run_id",)),
        "latencies": (around_sql.LATENCIES, part),
        "silences": (around_sql.SILENCES, part),
        "kinds": (around_sql.KINDS, ("run_id", "kind")),
        "uses": (around_sql.NIC_USE, ("run_id", "host", "direction")),
        "listed": (around_sql.LISTED, ("run_id",)),
    }
    tables = {name: rows_by(spark.sql(text).toArrow(), *key) for name, (text, key) in asked.items()}
    tables["load"] = rows_by(move_sql.load(spark, in_phases=False).toArrow(), "run_id", "metric")
    return {m.run_id: _measures(m.run_id, m.relocation, tables) for m in manifests if m.relocation is not None}


def _measures(run: str, asked: Relocation, tables: dict[str, Rows]) -> MoveMeasures:
    clock = tables["clock"].get((run,))
    if clock is None:
        return never_started()
    uses = {(h, d): tables["uses"].get((run, h, d), {}) for h in asked.brokers for d in DIRECTIONS}
    return replace(
        never_started(),
        started_us=clock["started"],
        done_s=None if clock["done"] is None else (clock["done"] - clock["started"]) / 1e6,
        load=machine_load(tables["load"].get((run, "cpu.busy")), tables["load"].get((run, "cpu.steal"))),
        clients=around_measures.clients(run, tables),
        burden=Burden(
            tables["listed"].get((run,), {}).get("most"),
            tuple(NicUse(h, d, row.get("mean"), row.get("peak")) for (h, d), row in uses.items()),
            None,
            None,
        ),
        relocation=_relocated(run, asked, tables),
    )


def _relocated(run: str, asked: Relocation, tables: dict[str, Rows]) -> RelocationMeasures:
    requests, gap_s = _requests(run, asked, tables)
    p99 = tables["p99"].get((run,))
    return RelocationMeasures(
        nics=tuple(
            NicBytes(host, way, row.get("bytes"), row.get("covered_s"), row.get("before"), row.get("gap_s"))
            for host in (*asked.brokers, *asked.stores)
            for way in DIRECTIONS
            for row in (tables["bytes"].get((run, host, way), {}),)
        ),
        requests=requests,
        requests_gap_s=gap_s,
        longest_ack_us=tables["acks"].get((run,), {}).get("longest"),
        p99_before_us=None if p99 is None else p99["before"],
        p99_back_s=_back(p99),
        device_bytes=_cold(run, asked.brokers, DEVICE_READ, tables),
        store_bytes=_cold(run, asked.stores, "nic.tx.bytes", tables),
    )


def _back(p99: Row | None) -> float | None:
    if p99 is None or p99["last"] < 0 or p99["above"] == p99["last"]:
        return None
    return 0.0 if p99["above"] is None else float(p99["above"] + 1)


def _requests(run: str, asked: Relocation, tables: dict[str, Rows]) -> tuple[tuple[Requests, ...] | None, float | None]:
    gaps = [tables["asked"].get((run, host), {}).get("gap_s") for host in asked.stores]
    known = [gap for gap in gaps if gap is not None]
    if not gaps or len(known) < len(gaps):
        return None, None
    counts: dict[str, float] = {}
    for (of, host, metric, label), row in tables["counters"].items():
        if of != run or metric != REQUESTS or host not in asked.stores:
            continue
        if row["counted"] is None:
            return None, max(known)
        counts[label] = counts.get(label, 0.0) + row["counted"]
    return tuple(Requests(name, count) for name, count in sorted(counts.items()) if count > 0), max(known)


def _cold(run: str, hosts: Sequence[str], metric: str, tables: dict[str, Rows]) -> float | None:
    found = [tables["cold"].get((run, host, metric), {}).get("counted") for host in hosts]
    known: list[float] = [each for each in found if each is not None]
    return sum(known) if found and len(known) == len(found) else None
