"""From series to measures: columns added step by step to one row per host and direction. Times are microseconds."""

from pyspark.sql import DataFrame, SparkSession

from results.spark.array_sql import (
    around,
    counted,
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
from results.spark.phase_sql import BOUND, ENDS

SECOND_US = "900000"
READING_US = "50000"
GAP_US = "3000000"
AT_ONCE = 12
"""How many columns that build on each other are given to Spark in one query."""


def with_columns(frame: DataFrame, steps: tuple[tuple[str, str], ...]) -> DataFrame:
    """Add columns, each of which may use those before it."""
    # Some columns in one text, and so in one analysis; of more than these it would give up (`maxIterations`).
    for first in range(0, len(steps), AT_ONCE):
        query = "SELECT * FROM {frame}"
        for name, text in steps[first : first + AT_ONCE]:
            query = f"SELECT *, {text} AS {name} FROM ({query})"
        frame = frame.sparkSession.sql(query, frame=frame)
    return frame


_LAST_GROWTH = """array_max(zip_with(slice({points}, 2, greatest(size({points}) - 1, 0)),
                              slice({points}, 1, greatest(size({points}) - 1, 0)),
                              (n, o) -> CASE WHEN n.value > o.value THEN n.us END))"""
_BASE = last_at_or_before("series", "begin_us")
_POINTS = (
    ("looks", "filter(series, x -> (first OR x.us >= begin_us) AND (last OR x.us <= until_us))"),
    ("gap_s", gap_s("looks", "begin_us", "until_us")),
    (
        "begun",
        f"""CASE WHEN size(series) = 0 THEN series
                 WHEN NOT first THEN filter(series, x -> x.oldest >= begin_us)
                 WHEN {_BASE} IS NOT NULL THEN filter(series, x -> x.us >= {_BASE}.us)
                 ELSE array_prepend(series, struct(begin_us AS us, begin_us AS oldest, 0D AS value)) END""",
    ),
    (
        "stop_us",
        f"""CASE WHEN last THEN coalesce({first_at_or_after("begun", "until_us")}.us, try_element_at(begun, -1).us)
                 ELSE until_us END""",
    ),
    ("seen", "filter(begun, x -> x.us <= stop_us)"),
    ("grew_us", _LAST_GROWTH.format(points="seen")),
    ("end_us", "CASE WHEN last OR grew_us IS NULL THEN grew_us ELSE try_element_at(seen, -1).us END"),
    ("points", "filter(seen, x -> x.us <= end_us)"),
)


def _in_sync(start_us: str, stop_us: str) -> str:
    """Bytes that replicas in sync took between two instants; 0 where none are listed."""
    at_stop, at_start = last_at_or_before("in_sync", stop_us), last_at_or_before("in_sync", start_us)
    return f"coalesce({at_stop}.value, 0D) - coalesce({at_start}.value, 0D)"


_RATES = (
    ("p0", "get(points, 0)"),
    ("whole", pairs("points", "window_us")),
    ("second", pairs("points", SECOND_US)),
    ("steady_from", "begin_us + warmup_us"),
    ("steady_to", "end_us - CASE WHEN last THEN tail_us ELSE 0 END"),
    ("steady", "filter(points, x -> x.us >= steady_from AND x.us <= steady_to)"),
    ("s0", "CASE WHEN size(steady) > 1 THEN get(steady, 0) END"),
    ("s1", "CASE WHEN size(steady) > 1 THEN try_element_at(steady, -1) END"),
    ("steady_s", "(s1.us - s0.us) / 1e6D"),
    ("judged", pairs_within("points", f"window_us - {READING_US}")),
    (
        "weighed",
        f"""transform(judged, w -> struct(w.bytes AS bytes, w.start_us AS start_us, w.elapsed_s AS elapsed_s,
                                          {_in_sync("w.start_us", "w.stop_us")} AS in_sync))""",
    ),
    ("bound", BOUND),
    (
        "worst",
        """array_max(transform(weighed, w -> struct(
               w.bytes - CASE WHEN bound IS NULL THEN 0D ELSE bound + w.in_sync END AS over,
               -w.start_us AS earliest, w.bytes AS bytes, w.elapsed_s AS elapsed_s, w.in_sync AS in_sync)))""",
    ),
    ("opening", first_at_or_after("points", "begin_us + window_us")),
    ("opened", "opening.us > p0.us"),
    ("rest", "filter(points, x -> x.us >= begin_us + window_us)"),
    ("after", pairs("rest", "window_us")),
    ("later", "get(after, 0)"),
    ("settled", "filter(after, w -> w.start_us < later.start_us + window_us)"),
    ("settled_rates", pair_rates("settled")),
    ("steady_rates", pair_rates("filter(second, w -> w.start_us >= s0.us AND w.stop_us <= s1.us)")),
    ("steady_second", mean("steady_rates")),
    ("steady_windowed", pair_rates("filter(whole, w -> w.start_us >= s0.us AND w.stop_us <= s1.us)")),
    ("steady_points", "transform(steady, x -> struct(x.us AS us, x.us AS oldest, x.value AS value))"),
    ("steady_typical", pair_rates(pairs("steady_points", "window_us"))),
    ("warm", first_at_or_after("points", "begin_us + warmup_us")),
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
    "phase",
    "gap_s",
    "end_us",
    "coalesce(try_element_at(points, -1).value - p0.value, 0D) AS total_bytes",
    "(end_us - started) / 1e6D AS end_s",
    "worst.bytes AS worst_bytes",
    "worst.elapsed_s AS worst_elapsed_s",
    "(-worst.earliest - started) / 1e6D AS worst_start_s",
    "worst.in_sync AS worst_in_sync",
    "CASE WHEN size(points) > 1 THEN try_element_at(points, -1).value - p0.value END AS all_bytes",
    "(end_us - greatest(begin_us, p0.oldest)) / 1e6D AS all_elapsed_s",
    "(greatest(begin_us, p0.oldest) - started) / 1e6D AS all_start_s",
    f"{_in_sync('p0.us', 'end_us')} AS all_in_sync",
    "CASE WHEN opened THEN opening.value - p0.value END AS first_bytes",
    "(opening.us - begin_us) / 1e6D AS first_elapsed_s",
    "(begin_us - started) / 1e6D AS first_start_s",
    f"{_in_sync('p0.us', 'opening.us')} AS first_in_sync",
    "later.bytes AS second_bytes",
    "later.elapsed_s AS second_elapsed_s",
    "(later.start_us - started) / 1e6D AS second_start_s",
    f"{_in_sync('later.start_us', 'later.stop_us')} AS second_in_sync",
    f"{mean('settled_rates')} AS settled_mean",
    "coalesce((try_element_at(settled, -1).start_us - later.start_us) / 1e6D, 0D) AS settled_s",
    f"array_max({pair_rates('whole')}) AS highest_window",
    f"array_max({pair_rates('second')}) AS highest_second",
    "(warm.value - p0.value) / nullif((warm.us - p0.oldest) / 1e6D, 0D) AS warmup",
    "(s1.value - s0.value) / steady_s AS steady_mean",
    "steady_s",
    "CAST(floor((s1.us - s0.us) / window_us) AS INT) AS steady_windows",
    f"CASE WHEN steady_second > 0 THEN {deviation('steady_rates', 'steady_second')} / steady_second END AS variation",
    "array_min(steady_windowed) AS lowest_window",
    f"{mean('steady_typical')} AS window_mean",
    f"{median('ratios')} AS kafka_ratio",
    "coalesce(size(ratios), 0) AS kafka_polls",
)


def rates(spark: SparkSession) -> DataFrame:
    """One row a run, span, host and direction with throttled flows; from views `clock`, `spans`, `series`, `gauges`."""
    nothing = "CAST(array() AS ARRAY<STRUCT<us: BIGINT, oldest: BIGINT, value: DOUBLE>>)"
    frame = spark.sql(f"""
        SELECT b.*, k.series AS kafka, coalesce(i.series, {nothing}) AS in_sync,
               coalesce(s.series, {nothing}) AS series
        FROM ({ENDS}) b
        LEFT JOIN series s
          ON s.run_id = b.run_id AND s.host = b.host AND s.direction = b.direction AND s.kind = 'listed'
        LEFT JOIN series i
          ON i.run_id = b.run_id AND i.host = b.host AND i.direction = b.direction AND i.kind = 'keepup'
          AND (b.direction = 'transmit' OR b.wildcard = 1)
        LEFT JOIN gauges k ON k.run_id = b.run_id AND k.host = b.host AND k.metric =
          CASE b.direction WHEN 'transmit' THEN 'broker.leader_replication.byte_rate'
                           ELSE 'broker.follower_replication.byte_rate' END""")
    return with_columns(frame, (*_POINTS, *_RATES)).selectExpr(*_RATES_OUT)


SPAN = """
SELECT c.*, coalesce(r.end_us, c.watched) AS end_us
FROM clock c
LEFT JOIN (SELECT run_id, max(end_us) AS end_us FROM rates WHERE phase = 0 GROUP BY run_id) r USING (run_id)
"""
"""The clock with the end of the throttled move over all hosts; `rates` must be a view by then."""


def quotas(spark: SparkSession) -> DataFrame:
    """One row a broker and what is polled: polls in the phases of the move, and those that differ.

    Rates from the phase's quota; of the lists, that they lack none.
    """
    frame = spark.sql("""
        SELECT c.run_id, c.started, g.host, g.metric, g.series, s.begin_us, s.first, s.last,
               CASE WHEN g.metric LIKE '%.unlisted' THEN 0D ELSE s.quota END AS asked,
               CASE WHEN s.last THEN least(c.end_us, s.until_us) ELSE s.until_us END AS stop_us
        FROM gauges g JOIN span c USING (run_id) JOIN spans s USING (run_id) WHERE g.metric LIKE 'quota.%'
          AND (s.first OR s.begin_us < c.end_us)""")
    steps = (
        ("asked_in", "filter(series, q -> q.us BETWEEN begin_us AND stop_us)"),
        ("long", f"stop_us - begin_us >= {GAP_US} OR (first AND last)"),
        ("gap_s", f"CASE WHEN long THEN {gap_s('asked_in', 'begin_us', 'stop_us')} END"),
        # Whether the answer to the last one before an edge was made before it is not known.
        ("polled", "CASE WHEN last THEN asked_in ELSE slice(asked_in, 1, greatest(size(asked_in) - 1, 0)) END"),
        ("other", "filter(polled, q -> q.value <> asked)"),
        ("first_other", "get(other, 0)"),
    )
    with_columns(frame, steps).createOrReplaceTempView("polled_quotas")
    return spark.sql("""
        SELECT run_id, host, metric, CASE WHEN count(gap_s) = count_if(long) THEN max(gap_s) END AS gap_s,
               CAST(sum(size(polled)) AS INT) AS polls, CAST(sum(size(other)) AS INT) AS different,
               (min(first_other.us) - any_value(started)) / 1e6D AS first_s,
               min_by(first_other.value, first_other.us) AS first_value
        FROM polled_quotas GROUP BY run_id, host, metric""")


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
    steps = (("points", around("series", "begin_us", "until_us")),)
    grown = f"""CASE WHEN points IS NULL THEN NULL WHEN kind IN ('nic', 'client') THEN {counted("points")}
                     ELSE try_element_at(points, -1).value - get(points, 0).value END"""
    return with_columns(frame, steps).selectExpr("run_id", "host", "direction", "kind", f"{grown} AS bytes")


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


_PHASES = "SELECT run_id, collect_list(struct(begin_us, until_us)) AS phases FROM spans GROUP BY run_id"


def load(spark: SparkSession, *, in_phases: bool) -> DataFrame:
    """One row a run and gauge of the machine: mean, and the highest mean of any window inside the move.

    With `in_phases` inside one of its phases, as view `spans` has them.
    """
    whole = "array(struct(c.started AS begin_us, c.end_us AS until_us))"
    judged, phases = (f"coalesce(p.phases, {whole})", f"LEFT JOIN ({_PHASES}) p USING (run_id)")
    if not in_phases:
        judged, phases = whole, ""
    frame = spark.sql(
        f"SELECT c.*, g.metric, g.series, {judged} AS judged FROM gauges g JOIN span c USING (run_id) {phases} "
        "WHERE g.host = 'machine' AND g.metric LIKE 'cpu.%'"
    )
    steps = (
        ("gap_s", gap_s("series", "started", "end_us")),
        ("inside", "filter(series, q -> q.us > started AND q.us <= end_us)"),
        ("average", mean("transform(inside, q -> q.value)")),
        (
            "trailing",
            """transform(filter(inside, a -> exists(judged,
                          j -> a.us - j.begin_us >= window_us AND a.us <= j.until_us)), a ->
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
