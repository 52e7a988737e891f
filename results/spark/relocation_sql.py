"""SQL for moves that no quota holds back: what NICs and the object store counted, and what was acknowledged when."""

from results.spark.array_sql import around, counted, gap_s, sorted_array

CLOCK = """
SELECT r.run_id, r.window_us, e.started, e.done, e.calm, e.cold_started, e.cold_done,
       coalesce(e.done, l.last_us, e.started) AS watched,
       coalesce(e.done, l.last_us, e.started) AS end_us
FROM relocations r
JOIN (SELECT run_id,
             min(CASE WHEN kind = 'move.started' THEN us END) AS started,
             min(CASE WHEN kind = 'move.done' THEN us END) AS done,
             min(CASE WHEN kind = 'cold.started' THEN us END) AS cold_started,
             min(CASE WHEN kind = 'cold.done' THEN us END) AS cold_done,
             coalesce(min(CASE WHEN kind = 'load.before' THEN us END),
                      min(CASE WHEN kind = 'calibration.done' THEN us END)) AS calm
      FROM events GROUP BY run_id) e USING (run_id)
LEFT JOIN (SELECT run_id, max(us) AS last_us FROM samples GROUP BY run_id) l USING (run_id)
WHERE e.started IS NOT NULL
"""
"""One row a run: the instants of its events."""

_QUIET = "filter(g.series, q -> q.us BETWEEN coalesce(c.calm, 0L) AND c.started)"

NIC_BYTES = f"""
WITH parts AS (
    SELECT c.run_id, g.host, CASE g.metric WHEN 'nic.tx.bytes' THEN 'transmit' ELSE 'receive' END AS direction,
           {around("g.series", "c.started", "c.watched")} AS points, {_QUIET} AS quiet,
           {gap_s("g.series", "c.started", "c.watched")} AS gap_s
    FROM gauges g JOIN clock c USING (run_id) WHERE g.metric IN ('nic.tx.bytes', 'nic.rx.bytes'))
SELECT run_id, host, direction, gap_s,
       CASE WHEN points IS NOT NULL THEN {counted("points")} END AS bytes,
       CASE WHEN points IS NOT NULL
            THEN (try_element_at(points, -1).us - get(points, 0).us) / 1e6D END AS covered_s,
       CASE WHEN size(quiet) > 1
            THEN {counted("quiet")} / ((try_element_at(quiet, -1).us - get(quiet, 0).us) / 1e6D) END AS before
FROM parts
"""
"""One row a run, host and direction."""

COUNTERS = f"""
WITH series AS (
    SELECT s.run_id, s.host, s.metric, s.label, any_value(c.started) AS started, any_value(c.watched) AS watched,
           {sorted_array("s.us AS us, s.value AS value")} AS series
    FROM samples s JOIN clock c USING (run_id) WHERE s.metric = 's3.requests'
    GROUP BY s.run_id, s.host, s.metric, s.label),
looks AS (
    SELECT c.run_id, s.host, coalesce(min(CASE WHEN s.us >= c.watched THEN s.us END), max(s.us)) AS ended
    FROM samples s JOIN clock c USING (run_id) WHERE s.metric = 's3.requests' GROUP BY c.run_id, s.host),
parts AS (
    SELECT s.*, l.ended, get(s.series, 0) AS first, {around("s.series", "s.started", "s.watched")} AS points
    FROM series s JOIN looks l USING (run_id, host))
SELECT run_id, host, metric, coalesce(label, '') AS label,
       CASE WHEN points IS NOT NULL
            THEN {counted("points")} + CASE WHEN first.us > started AND first.us <= ended THEN first.value ELSE 0D END
       END AS counted
FROM parts
"""
"""One row a run, store and operation; one that was not there before the move was nought."""

COLD = f"""
WITH readings AS (
    SELECT run_id, host, metric, series FROM gauges WHERE metric = 'nic.tx.bytes'
    UNION ALL
    SELECT run_id, host, metric, {sorted_array("us, value")} AS series
    FROM samples WHERE metric = 'io.read_bytes' GROUP BY run_id, host, metric),
parts AS (
    SELECT c.run_id, r.host, r.metric, {around("r.series", "c.cold_started", "c.cold_done")} AS points
    FROM readings r JOIN clock c USING (run_id) WHERE c.cold_started IS NOT NULL AND c.cold_done IS NOT NULL)
SELECT run_id, host, metric, CASE WHEN points IS NOT NULL THEN {counted("points")} END AS counted FROM parts
"""
"""One row a run, host and counter: what it counted while a consumer read from the beginning."""

ASKED = f"""
WITH looks AS (
    SELECT s.run_id, s.host, any_value(c.started) AS started, any_value(c.watched) AS watched,
           array_sort(collect_set(struct(s.us AS us))) AS series
    FROM samples s JOIN clock c USING (run_id) WHERE s.metric = 's3.requests' GROUP BY s.run_id, s.host)
SELECT run_id, host, {gap_s("series", "started", "watched")} AS gap_s FROM looks
"""
"""One row a run and store: the longest time for which it was not asked."""

ACKS = """
SELECT c.run_id, max(CAST(s.label AS DOUBLE)) AS longest
FROM samples s JOIN clock c USING (run_id)
WHERE s.metric = 'client.produce.latency' AND s.us > c.started AND s.us <= c.watched + 1000000L
GROUP BY c.run_id
"""
"""One row a run: the longest that a record waited."""


def p99(window_s: int, back: float) -> str:
    """One row a run with producers: the highest 99th percentile before the move, last window above `back` times it."""
    return f"""
WITH told AS (
    SELECT c.run_id, CAST(floor((s.us - c.started) / 1000000D) AS INT) AS second, CAST(s.label AS DOUBLE) AS bucket,
           s.value
    FROM samples s JOIN clock c USING (run_id)
    WHERE s.metric = 'client.produce.latency' AND s.us >= coalesce(c.calm, 0L) + 1000000L),
edges AS (SELECT run_id, min(second) AS first, max(second) AS last FROM told GROUP BY run_id),
ends AS (
    SELECT run_id, last, explode(sequence(first + {window_s - 1}, last)) AS stop
    FROM edges WHERE last >= first + {window_s - 1}),
merged AS (
    SELECT e.run_id, e.stop, t.bucket, sum(t.value) AS records
    FROM ends e JOIN told t ON t.run_id = e.run_id AND t.second > e.stop - {window_s} AND t.second <= e.stop
    GROUP BY e.run_id, e.stop, t.bucket),
reached AS (
    SELECT *, sum(records) OVER (PARTITION BY run_id, stop ORDER BY bucket) AS upto,
           sum(records) OVER (PARTITION BY run_id, stop) AS total
    FROM merged),
quantiles AS (
    SELECT run_id, stop, min(CASE WHEN upto >= ceil(0.99D * total) THEN bucket END) AS p99
    FROM reached WHERE total > 0 GROUP BY run_id, stop),
known AS (SELECT run_id, max(p99) AS before FROM quantiles WHERE stop < 0 GROUP BY run_id)
SELECT k.run_id, any_value(k.before) AS before, any_value(e.last) AS last,
       max(CASE WHEN q.stop >= 0 AND q.p99 > {back}D * k.before THEN q.stop END) AS above
FROM known k JOIN edges e USING (run_id) LEFT JOIN quantiles q USING (run_id) GROUP BY k.run_id
"""
