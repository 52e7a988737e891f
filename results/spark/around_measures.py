"""Rows of `around_sql` to measures."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from results.contract.manifest import Move
from results.contract.verdict import DIRECTIONS, Direction
from results.criteria.burden import Burden, NicUse
from results.criteria.live_measures import KINDS, PARTS, ClientView, Isr, Shrinks, Stuck
from results.criteria.measures import NicRate
from results.criteria.rests import Rests
from results.spark import around_sql

Row = dict[str, Any]
Rows = dict[tuple[Any, ...], Row]
Question = tuple[DataFrame, tuple[str, ...]]
"""What to ask, and the columns by which its rows are found."""


def questions(spark: SparkSession) -> dict[str, Question]:
    """Every question around moves, by name; from views `samples`, `events`, `clock`, `span`, `gauges`."""
    part = ("run_id", "kind", "part")
    return {
        "moved": (spark.sql(around_sql.MOVED), ("run_id",)),
        "nic": (spark.sql(around_sql.NIC), ("run_id", "host", "direction")),
        "shrinks": (spark.sql(around_sql.SHRINKS), ("run_id", "host")),
        "isr": (spark.sql(around_sql.ISR), ("run_id",)),
        "stuck": (spark.sql(around_sql.STUCK), ("run_id",)),
        "restarted": (spark.sql(around_sql.RESTARTED), ("run_id",)),
        "latencies": (spark.sql(around_sql.LATENCIES), part),
        "silences": (spark.sql(around_sql.SILENCES), part),
        "uses": (spark.sql(around_sql.NIC_USE), ("run_id", "host", "direction")),
        "listed": (spark.sql(around_sql.LISTED), ("run_id",)),
        "rests": (spark.sql(around_sql.RESTS), ("run_id",)),
        "under": (spark.sql(around_sql.UNDER_MIN_ISR), ("run_id",)),
        "kinds": (spark.sql(around_sql.KINDS), ("run_id", "kind")),
    }


def moved_s(run: str, tables: dict[str, Rows], throttled_s: float | None) -> float | None:
    """When the move was over, by its bytes or by what was being reassigned, whichever came first."""
    landed_s = tables["moved"].get((run,), {}).get("landed_s")
    return min((s for s in (throttled_s, landed_s) if s is not None), default=None)


def nic(run: str, host: str, direction: Direction, tables: dict[str, Rows]) -> NicRate:
    """One NIC's payload."""
    row = tables["nic"].get((run, host, direction))
    return (
        NicRate(host, direction, None, 0.0) if row is None else NicRate(host, direction, row["payload"], row["seconds"])
    )


def isr(run: str, move: Move, tables: dict[str, Rows]) -> Isr:
    """The ISR over a move."""
    found = {host: tables["shrinks"].get((run, host), {}) for host in move.brokers}
    hosts = tuple(Shrinks(host, row.get("shrinks"), row.get("gap_s")) for host, row in found.items())
    row = tables["isr"].get((run,), {})
    return Isr(
        hosts=hosts,
        partitions=row.get("partitions", 0),
        polls=row.get("polls", 0),
        longest_gap_s=row.get("gap_s"),
        smaller=row.get("smaller", 0),
        first_partition=row.get("first_partition"),
        first_s=row.get("first_s"),
        first_size=row.get("first_size"),
        first_before=row.get("first_before"),
    )


def burden(run: str, move: Move, tables: dict[str, Rows]) -> Burden:
    """What the move was to the cluster."""
    uses = {(h, d): tables["uses"].get((run, h, d), {}) for h in move.brokers for d in DIRECTIONS}
    under = tables["under"].get((run,), {})
    return Burden(
        tables["listed"].get((run,), {}).get("most"),
        tuple(NicUse(h, d, row.get("mean"), row.get("peak")) for (h, d), row in uses.items()),
        under.get("under_s"),
        under.get("lowest"),
    )


def stuck(run: str, tables: dict[str, Rows]) -> Stuck | None:
    """How the move was stuck, if it was."""
    row = tables["stuck"].get((run,))
    if row is None:
        return None
    return Stuck(
        row["noticed_s"],
        row["seconds"],
        row["lag_before"],
        row["lag_since"],
        row["lowest_s"],
        row["raised_s"],
        row["raised_to"],
    )


def rests(run: str, tables: dict[str, Rows]) -> Rests | None:
    """The times in which nothing was listed."""
    row = tables["rests"].get((run,))
    return None if row is None else Rests(row["looks"], row["count"], row["total_s"], row["longest_s"], row["gap_s"])


def restarted(run: str, which: str, tables: dict[str, Rows]) -> tuple[str, ...]:
    """Whose brokers left, or came back, during the move."""
    return tuple(tables["restarted"].get((run,), {}).get(which, ()))


def clients(run: str, tables: dict[str, Rows]) -> tuple[ClientView, ...]:
    """What the clients saw."""
    views = []
    for kind in KINDS:
        for part in PARTS if (run, kind) in tables["kinds"] else ():
            row = tables["latencies"].get((run, kind, part), {})
            silence = tables["silences"].get((run, kind, part), {}).get("silence_s")
            p50, p99, p999 = (row.get(name) for name in ("p50", "p99", "p999"))
            views.append(ClientView(kind, part, row.get("records", 0), p50, p99, p999, silence))
    return tuple(views)
