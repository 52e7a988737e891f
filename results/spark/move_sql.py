"""From series to measures: columns added step by step to one row per host and direction. Times are microseconds."""

from pyspark.sql import DataFrame, SparkSession

from results.spark.array_sql import (
    deviation,
    first_at_or_after,
    gap_s,
    growth,
    last_at_or_before,
    mean,
    median,
    pair_rates,
    pairs,
    pairs_within,
)

SECOND_US = "900000"
READING_US = "50000"


def with_columns(frame: DataFrame, steps: tuple[tuple[str, str], ...]) -> DataFrame:
    """Add columns, each of which may use those before it."""
    # One text, and so one analysis, instead of one for each column.
    query = "SELECT * FROM {frame}"
    for name, text in steps:
        query = f"SELECT *, {text} AS {name} FROM ({query})"
    return frame.sparkSession.sql(query, frame=frame)


_LAST_GROWTH = """array_max(zip_with(slice({points}, 2, greatest(size({points}) - 1, 0)),
                              slice({points}, 1, greatest(size({points}) - 1, 0)),
                              (n, o) -> CASE WHEN n.value > o.value THEN n.us END))"""
_BASE = last_at_or_before("series", "started")
_POINTS = (
    ("gap_s", gap_s("series", "started", "greatest(started, watched)")),
    (
        "begun",
        f"""CASE WHEN size(series) = 0 THEN series
                 WHEN {_BASE} IS NOT NULL THEN filter(series, x -> x.us >= {_BASE}.us)
                 ELSE array_prepend(series, struct(started AS us, started AS oldest, 0D AS value)) END""",
    ),
    ("stop_us", f"coalesce({first_at_or_after('begun', 'done')}.us, try_element_at(begun, -1).us)"),
    ("seen", "filter(begun, x -> x.us <= stop_us)"),
    ("end_us", _LAST_GROWTH.format(points="seen")),
    ("points", "filter(seen, x -> x.us <= end_us)"),
)

_RATES = (
    ("p0", "get(points, 0)"),
    ("whole", pairs("points", "window_us")),
    ("second", pairs("points", SECOND_US)),
    ("steady_from", "started + warmup_us"),
    ("steady_to", "end_us - tail_us"),
    ("steady", "filter(points, x -> x.us >= steady_from AND x.us <= steady_to)"),
    ("s0", "CASE WHEN size(steady) > 1 THEN get(steady, 0) END"),
    ("s1", "CASE WHEN size(steady) > 1 THEN try_element_at(steady, -1) END"),
    ("steady_s", "(s1.us - s0.us) / 1e6D"),
    ("worst", f"array_max({pairs_within('points', f'window_us - {READING_US}')})"),
    ("steady_rates", pair_rates("filter(second, w -> w.start_us >= s0.us AND w.stop_us <= s1.us)")),
    ("steady_second", mean("steady_rates")),
    ("warm", first_at_or_after("points", "started + warmup_us")),
    (
        "polled",
        f"""transform(filter(kafka, k -> k.us >= steady_from AND k.us <= steady_to),
                      k -> struct(k.value AS rate, {last_at_or_before("points", "k.us")} AS j))""",
    ),
    (
        "against",
        f"transform(polled, k -> struct(k.rate AS rate, k.j AS j, "
        f"{last_at_or_before('points', 'k.j.us - window_us')} AS i))",
    ),
    (
        "ratios",
        """transform(filter(against, k -> k.i IS NOT NULL AND k.j.value > k.i.value),
                     k -> k.rate / ((k.j.value - k.i.value) / ((k.j.us - k.i.oldest) / 1e6D)))""",
    ),
)

_RATES_OUT = (
    "run_id",
    "host",
    "direction",
    "gap_s",
    "end_us",
    "coalesce(try_element_at(points, -1).value - p0.value, 0D) AS total_bytes",
    "(end_us - started) / 1e6D AS end_s",
    "worst.bytes AS worst_bytes",
    "worst.elapsed_s AS worst_elapsed_s",
    "(-worst.earliest - started) / 1e6D AS worst_start_s",
    f"array_max({pair_rates('whole')}) AS highest_window",
    f"array_max({pair_rates('second')}) AS highest_second",
    "(warm.value - p0.value) / ((warm.us - p0.oldest) / 1e6D) AS warmup",
    "(s1.value - s0.value) / steady_s AS steady_mean",
    "steady_s",
    "CAST(floor((s1.us - s0.us) / window_us) AS INT) AS steady_windows",
    f"CASE WHEN steady_second > 0 THEN {deviation('steady_rates', 'steady_second')} / steady_second END AS variation",
    f"array_min({pair_rates('filter(whole, w -> w.start_us >= s0.us AND w.stop_us <= s1.us)')}) AS lowest_window",
    f"{median('ratios')} AS kafka_ratio",
    "coalesce(size(ratios), 0) AS kafka_polls",
)


def rates(spark: SparkSession) -> DataFrame:
    """One row a run, host and direction with throttled flows; from views `clock`, `series`, `gauges`."""
    frame = spark.sql("""
        SELECT c.*, b.host, b.direction, k.series AS kafka,
               coalesce(s.series, CAST(array() AS ARRAY<STRUCT<us: BIGINT, oldest: BIGINT, value: DOUBLE>>)) AS series
        FROM clock c
        JOIN (SELECT DISTINCT run_id, host, direction FROM flows WHERE kind = 'throttled') b USING (run_id)
        LEFT JOIN series s
          ON s.run_id = b.run_id AND s.host = b.host AND s.direction = b.direction AND s.kind = 'throttled'
        LEFT JOIN gauges k ON k.run_id = b.run_id AND k.host = b.host AND k.metric =
          CASE b.direction WHEN 'transmit' THEN 'broker.leader_replication.byte_rate'
                           ELSE 'broker.follower_replication.byte_rate' END""")
    return with_columns(frame, (*_POINTS, *_RATES)).selectExpr(*_RATES_OUT)


SPAN = """
SELECT c.*, coalesce(r.end_us, c.watched) AS end_us
FROM clock c
LEFT JOIN (SELECT run_id, max(end_us) AS end_us FROM rates GROUP BY run_id) r USING (run_id)
"""
"""The clock with the end of the throttled move over all hosts; `rates` must be a view by then."""


def quotas(spark: SparkSession) -> DataFrame:
    """One row a broker and side: polls from the move's start to its end, and those that differ from the quota."""
    frame = spark.sql(
        "SELECT c.*, g.host, g.metric, g.series FROM gauges g JOIN span c USING (run_id) WHERE g.metric LIKE 'quota.%'"
    )
    steps = (
        ("gap_s", gap_s("series", "started", "end_us")),
        ("polled", "filter(series, q -> q.us BETWEEN started AND end_us)"),
        ("other", "filter(polled, q -> q.value <> quota)"),
        ("first_other", "get(other, 0)"),
    )
    return with_columns(frame, steps).selectExpr(
        "run_id",
        "host",
        "metric",
        "gap_s",
        "size(polled) AS polls",
        "size(other) AS different",
        "(first_other.us - started) / 1e6D AS first_s",
        "first_other.value AS first_value",
    )


def conservation(spark: SparkSession) -> DataFrame:
    """One row a run, host, direction and kind of counter: its growth over the move and the control transfer."""
    frame = spark.sql("""
        SELECT c.run_id, least(c.started, coalesce(c.control_started, c.started)) AS begin_us,
               greatest(c.end_us, coalesce(c.control_done, c.end_us)) AS until_us,
               x.host, x.direction, x.kind, x.series
        FROM span c JOIN (
            SELECT run_id, host, direction, kind,
                   transform(series, p -> struct(p.us AS us, p.value AS value)) AS series FROM series
            UNION ALL
            SELECT run_id, host, CASE metric WHEN 'nic.tx.bytes' THEN 'transmit' ELSE 'receive' END,
                   CASE metric WHEN 'broker.bytes_in' THEN 'client' ELSE 'nic' END, series
            FROM gauges WHERE metric IN ('nic.tx.bytes', 'nic.rx.bytes', 'broker.bytes_in')) x USING (run_id)""")
    bytes_ = growth("series", "begin_us", "until_us")
    return frame.selectExpr("run_id", "host", "direction", "kind", f"{bytes_} AS bytes")


def controls(spark: SparkSession) -> DataFrame:
    """One row a run and host into which control bytes went while the throttle was in force."""
    frame = spark.sql(
        "SELECT c.*, s.host, s.series, l.series AS listed FROM series s JOIN span c USING (run_id) "
        "LEFT JOIN series l ON l.run_id = s.run_id AND l.host = s.host AND l.direction = 'receive' "
        "AND l.kind = 'throttled' WHERE s.kind = 'control' AND s.direction = 'receive'"
    )
    steps = (
        ("begin_us", "coalesce(in_force, started)"),
        ("quiet_us", "greatest(end_us, coalesce(control_done, end_us))"),
        ("until_us", "least(quiet_us, coalesce(restored, quiet_us))"),
        ("first_us", f"coalesce({last_at_or_before('series', 'begin_us')}.us, get(series, 0).us)"),
        ("last_us", f"coalesce({first_at_or_after('series', 'until_us')}.us, try_element_at(series, -1).us)"),
        ("inside", "filter(series, p -> p.us BETWEEN first_us AND last_us)"),
        ("grew_us", _LAST_GROWTH.format(points="inside")),
        ("still", "filter(inside, p -> p.value <= get(inside, 0).value)"),
        ("still_us", "try_element_at(still, -1).us"),
    )
    return with_columns(frame, steps).selectExpr(
        "run_id",
        "host",
        "(grew_us - started) / 1e6D AS last_s",
        f"{growth('series', 'still_us', 'grew_us')} + {growth('listed', 'still_us', 'grew_us')} AS together",
        f"{gap_s('series', 'begin_us', 'until_us')} AS gap_s",
        "coalesce(try_element_at(inside, -1).value - get(inside, 0).value, 0D) AS total_bytes",
        f"array_max({pair_rates(pairs('inside', SECOND_US))}) AS peak",
    )


def load(spark: SparkSession) -> DataFrame:
    """One row a run and gauge of the machine: mean, and the highest mean of any window inside the move."""
    frame = spark.sql(
        "SELECT c.*, g.metric, g.series FROM gauges g JOIN span c USING (run_id) "
        "WHERE g.host = 'machine' AND g.metric LIKE 'cpu.%'"
    )
    steps = (
        ("gap_s", gap_s("series", "started", "end_us")),
        ("inside", "filter(series, q -> q.us > started AND q.us <= end_us)"),
        ("average", mean("transform(inside, q -> q.value)")),
        (
            "trailing",
            """transform(filter(inside, a -> a.us - started >= window_us), a ->
                   transform(filter(inside, b -> b.us <= a.us AND b.us > a.us - window_us), b -> b.value))""",
        ),
        ("highest", f"array_max(transform(trailing, t -> {mean('t')}))"),
    )
    return with_columns(frame, steps).selectExpr(
        "run_id",
        "metric",
        "gap_s",
        "size(inside) AS polls",
        "average AS mean",
        "coalesce(highest, average) AS window_max",
    )
