"""The measures of moves, computed by Spark SQL from the views of `sources`, for all runs at once."""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from results.contract.manifest import Flow, Manifest, Move
from results.contract.verdict import DIRECTIONS, Direction
from results.criteria.measures import (
    Conservation,
    Control,
    HostRates,
    MachineLoad,
    MoveMeasures,
    PhaseMeasures,
    QuotaPolls,
    Side,
    Steady,
    Window,
)
from results.spark import around_measures, move_sql
from results.spark.move_series import CLOCK, GAUGES, SERIES
from results.spark.phase_sql import SPANS

SIDES: tuple[Side, ...] = ("leader", "follower")
Row = dict[str, Any]
Rows = dict[tuple[Any, ...], Row]


def measure_moves(spark: SparkSession, manifests: Sequence[Manifest]) -> dict[str, MoveMeasures]:
    """Run id to measures; the views `samples`, `events`, `runs`, `flows`, `nics` must be registered."""
    with TemporaryDirectory(prefix="testbed-stage-") as folder:
        stage = _Stage(spark, Path(folder))
        tables = {"clock": rows_by(stage.small("clock", spark.sql(CLOCK)), "run_id")}
        stage.large({"series": spark.sql(SERIES), "gauges": spark.sql(GAUGES)})
        tables["spans"] = rows_by(stage.small("spans", spark.sql(SPANS)), "run_id", "phase")
        tables["rates"] = rows_by(stage.small("rates", move_sql.rates(spark)), "run_id", "host", "direction", "phase")
        spark.sql(move_sql.SPAN).createOrReplaceTempView("span")
        last = {
            "quotas": (move_sql.quotas(spark), ("run_id", "host", "metric")),
            "bytes": (move_sql.conservation(spark), ("run_id", "host", "direction", "kind")),
            "controls": (move_sql.controls(spark), ("run_id", "host")),
            "load": (move_sql.load(spark, in_phases=True), ("run_id", "metric")),
            **around_measures.questions(spark),
        }
        with ThreadPoolExecutor(4) as pool:
            found = pool.map(lambda item: (item[0], rows_by(item[1][0].toArrow(), *item[1][1])), last.items())
            tables.update(found)
    return {m.run_id: _measures(m, m.move, tables) for m in manifests if m.move is not None}


class _Stage:
    """Views that are read more than once, as Parquet, so that later plans begin at small files."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def large(self, frames: dict[str, DataFrame]) -> None:
        """Written by Spark, at once."""
        with ThreadPoolExecutor(len(frames)) as pool:
            list(pool.map(lambda item: item[1].write.parquet(str(self.folder / item[0])), frames.items()))
        for name, frame in frames.items():
            self._view(name, frame, name)

    def small(self, name: str, frame: DataFrame) -> pa.Table:
        """One row a run or host: fetched, since it is wanted here as well, and put back."""
        table = frame.toArrow()
        pq.write_table(table, self.folder / f"{name}.parquet")
        self._view(name, frame, f"{name}.parquet")
        return table

    def _view(self, name: str, frame: DataFrame, file: str) -> None:
        self.spark.read.schema(frame.schema).parquet(str(self.folder / file)).createOrReplaceTempView(name)


def rows_by(table: pa.Table, *key: str) -> Rows:
    """Rows by the values of some columns."""
    return {tuple(row[k] for k in key): row for row in table.to_pylist()}


def _measures(manifest: Manifest, move: Move, tables: dict[str, Rows]) -> MoveMeasures:
    run = manifest.run_id
    clock = tables["clock"].get((run,))
    if clock is None:
        none = MachineLoad(0, None, None, None, None)
        return MoveMeasures(None, None, None, move.kip73_seconds, None, (), (), (), (), none)
    busy = [(host, direction) for host in move.brokers for direction in DIRECTIONS if _through(move, host, direction)]
    fed = _fed_by(move)
    rates = tuple(_rates(tables["rates"][run, host, direction, 0]) for host, direction in busy)
    throttled_s = max((r.end_s for r in rates if r.end_s is not None), default=None)
    return MoveMeasures(
        started_us=clock["started"],
        throttled_s=throttled_s,
        done_s=None if clock["done"] is None else (clock["done"] - clock["started"]) / 1e6,
        kip73_s=move.kip73_seconds,
        kip73_ratio=throttled_s / move.kip73_seconds if throttled_s and move.kip73_seconds > 0 else None,
        rates=rates,
        quotas=tuple(
            _quota(
                host,
                side,
                tables["quotas"].get((run, host, f"quota.{side}.rate")),
                tables["quotas"].get((run, host, f"quota.{side}.unlisted")),
            )
            for host in move.brokers
            for side in SIDES
        ),
        conservation=tuple(_conservation(run, h, d, move, tables["bytes"]) for h, d in busy),
        controls=tuple(
            _control(host, fed[host], tables["controls"].get((run, host))) for host in move.brokers if host in fed
        ),
        load=machine_load(tables["load"].get((run, "cpu.busy")), tables["load"].get((run, "cpu.steal"))),
        moved_s=around_measures.moved_s(run, tables, throttled_s),
        phases=_phases(run, clock["started"], rates, tables),
        nics=tuple(around_measures.nic(run, host, direction, tables) for host, direction in busy),
        isr=around_measures.isr(run, move, tables),
        stuck=around_measures.stuck(run, tables),
        clients=around_measures.clients(run, tables),
        burden=around_measures.burden(run, move, tables),
        left=around_measures.restarted(run, "left", tables),
        back=around_measures.restarted(run, "back", tables),
        rests=around_measures.rests(run, tables),
    )


def _phases(run: str, started: int, whole: tuple[HostRates, ...], tables: dict[str, Rows]) -> tuple[PhaseMeasures, ...]:
    ends = [r.end_s for r in whole if r.end_s is not None]
    end = started + round(max(ends) * 1e6) if ends else None
    rows = [row for (of, _), row in sorted(tables["spans"].items()) if of == run]
    rows = [row for row in rows if row["first"] or end is None or row["begin_us"] < end]
    found = []
    for row in rows:
        rates = whole
        if not (len(rows) == 1 and row["first"] and row["last"]):
            known = [r for r in whole if row["leaders_known"] or r.direction == "receive"]
            rates = tuple(_rates(tables["rates"][run, r.host, r.direction, row["phase"]]) for r in known)
        begin_s, end_s = (row["begin_us"] - started) / 1e6, (row["until_us"] - started) / 1e6
        found.append(PhaseMeasures(row["quota"], begin_s, end_s, row["leaders_known"], rates))
    return tuple(found)


def _through(move: Move, host: str, direction: Direction, kind: str = "throttled") -> list[Flow]:
    return [f for f in move.flows if f.kind == kind and host == (f.leader if direction == "transmit" else f.follower)]


def _fed_by(move: Move) -> dict[str, tuple[str, ...]]:
    leaders: dict[str, set[str]] = defaultdict(set)
    for flow in move.flows:
        if flow.kind == "control":
            leaders[flow.follower].add(flow.leader)
    return {host: tuple(sorted(names)) for host, names in leaders.items()}


def _rates(row: Row) -> HostRates:
    steady = None
    if row["steady_mean"] is not None:
        steady = Steady(
            row["steady_mean"],
            row["steady_s"],
            row["steady_windows"],
            row["variation"],
            row["lowest_window"],
            row["window_mean"],
        )
    return HostRates(
        host=row["host"],
        direction=row["direction"],
        total_bytes=row["total_bytes"],
        end_s=row["end_s"],
        longest_gap_s=row["gap_s"],
        worst_window=_window(row, "worst"),
        highest_window_bytes_per_s=row["highest_window"],
        highest_second_bytes_per_s=row["highest_second"],
        warmup_bytes_per_s=row["warmup"],
        steady=steady,
        kafka_ratio=row["kafka_ratio"],
        kafka_polls=row["kafka_polls"],
        first_window=_window(row, "first"),
        second_window=_window(row, "second"),
        settled_bytes_per_s=row["settled_mean"],
        settled_s=row["settled_s"],
        all=_window(row, "all"),
    )


def _window(row: Row, name: str) -> Window | None:
    if row[f"{name}_bytes"] is None:
        return None
    return Window(row[f"{name}_bytes"], row[f"{name}_elapsed_s"], row[f"{name}_start_s"], row[f"{name}_in_sync"])


def _quota(host: str, side: Side, rates: Row | None, lists: Row | None) -> QuotaPolls:
    polls, gap_s = (0, None) if rates is None else (rates["polls"], rates["gap_s"])
    return QuotaPolls(host, side, polls, gap_s, *_different(rates), *_different(lists))


def _different(row: Row | None) -> tuple[int, float | None, float | None]:
    return (0, None, None) if row is None else (row["different"], row["first_s"], row["first_value"])


def _conservation(run: str, host: str, direction: Direction, move: Move, rows: Rows) -> Conservation:
    def grown(kind: str) -> float | None:
        row = rows.get((run, host, direction, kind))
        return None if row is None else row["bytes"]

    return Conservation(
        host=host,
        direction=direction,
        nic_bytes=grown("nic"),
        throttled_bytes=grown("throttled"),
        control_bytes=grown("control") if _through(move, host, direction, "control") else 0.0,
        calibration_bytes=grown("calibration") if _through(move, host, direction, "calibration") else 0.0,
        client_bytes=grown("client") if direction == "receive" else 0.0,
    )


def _control(host: str, leaders: tuple[str, ...], row: Row | None) -> Control:
    if row is None:
        return Control(host, leaders, 0.0, None, None)
    return Control(
        host,
        leaders,
        row["total_bytes"],
        row["peak"],
        row["gap_s"],
        last_s=row["last_s"],
        with_throttled_bytes=row["together"],
    )


def machine_load(busy: Row | None, steal: Row | None) -> MachineLoad:
    """The machine's load, from the rows of its two gauges."""
    steal_max = None if steal is None else steal["window_max"]
    if busy is None:
        return MachineLoad(0, None, None, None, steal_max)
    return MachineLoad(busy["polls"], busy["gap_s"], busy["mean"], busy["window_max"], steal_max)
