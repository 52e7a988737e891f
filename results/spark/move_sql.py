"""SQL from series to measures: one query for each kind of measure, for all runs at once."""

PAIRS = """
SELECT a.run_id, a.host, a.direction, a.us AS start_us, min(b.us) AS stop_us,
       min_by(b.value, b.us) - first(a.value) AS bytes,
       (min(b.us) - first(a.oldest)) / 1e6D AS elapsed_s
FROM {points} a
JOIN {points} b ON b.run_id = a.run_id AND b.host = a.host AND b.direction = a.direction
               AND b.us >= a.oldest + {least_us}
GROUP BY a.run_id, a.host, a.direction, a.us
"""
"""For each point the shortest window of at least `least_us` that begins there."""

GAPS = """
WITH edges AS (
    SELECT run_id, {key}, start_us, end_us,
           coalesce(max(CASE WHEN us <= start_us THEN us END), min(us)) AS first_us,
           coalesce(min(CASE WHEN us >= end_us THEN us END), max(us)) AS last_us
    FROM ({instants}) GROUP BY run_id, {key}, start_us, end_us),
steps AS (
    SELECT run_id, {key}, us, us - lag(us) OVER (PARTITION BY run_id, {key} ORDER BY us) AS step
    FROM ({instants}))
SELECT e.run_id, {e_key},
       greatest(max(CASE WHEN s.us > e.first_us AND s.us <= e.last_us THEN s.step END),
                max(e.first_us - e.start_us), max(e.end_us - e.last_us), 0) / 1e6D AS gap_s
FROM edges e JOIN steps s USING (run_id, {key})
GROUP BY e.run_id, {e_key}
"""
"""The longest time without a reading; `instants` selects run_id, the key, us, start_us, end_us."""


def gaps(key: str, instants: str) -> str:
    """GAPS for one kind of reading; `key` is one or more columns, comma-separated."""
    e_key = ", ".join(f"e.{k.strip()}" for k in key.split(","))
    return GAPS.format(key=key, e_key=e_key, instants=instants)


RATES = f"""
WITH whole AS ({PAIRS.format(points="points_window", least_us="a.window_us")}),
second AS ({PAIRS.format(points="points_window", least_us="900000")}),
gap AS ({
    gaps(
        "host, direction",
        "SELECT s.run_id, s.host, s.direction, s.us, c.started AS start_us, "
        "greatest(c.started, c.watched) AS end_us FROM series s JOIN clock c USING (run_id) "
        "WHERE s.kind = 'throttled'",
    )
}),
steady AS (
    SELECT p.run_id, p.host, p.direction, min(p.us) AS first_us, max(p.us) AS last_us,
           max_by(p.value, p.us) - min_by(p.value, p.us) AS bytes
    FROM points p JOIN clock c USING (run_id)
    WHERE p.us >= c.started + c.warmup_us AND p.us <= p.end_us - c.tail_us
    GROUP BY p.run_id, p.host, p.direction HAVING max(p.us) > min(p.us)),
whole_of AS (
    SELECT w.run_id, w.host, w.direction,
           max(struct(w.bytes - c.quota * w.elapsed_s AS excess, -w.start_us AS earliest, w.bytes, w.elapsed_s)) AS worst,
           max(w.bytes / w.elapsed_s) AS highest,
           min(CASE WHEN w.start_us >= s.first_us AND w.stop_us <= s.last_us THEN w.bytes / w.elapsed_s END) AS lowest
    FROM whole w JOIN clock c USING (run_id) LEFT JOIN steady s USING (run_id, host, direction)
    GROUP BY w.run_id, w.host, w.direction),
second_of AS (
    SELECT w.run_id, w.host, w.direction, max(w.bytes / w.elapsed_s) AS highest,
           avg(CASE WHEN w.start_us >= s.first_us AND w.stop_us <= s.last_us THEN w.bytes / w.elapsed_s END) AS mean,
           stddev_pop(CASE WHEN w.start_us >= s.first_us AND w.stop_us <= s.last_us
                           THEN w.bytes / w.elapsed_s END) AS deviation
    FROM second w LEFT JOIN steady s USING (run_id, host, direction)
    GROUP BY w.run_id, w.host, w.direction),
point_of AS (
    SELECT p.run_id, p.host, p.direction, max(p.end_us) AS end_us, max(p.value) - min(p.value) AS bytes,
           min_by(p.value, p.us) AS first_value, min_by(p.oldest, p.us) AS first_oldest,
           min(CASE WHEN p.us >= c.started + c.warmup_us THEN p.us END) AS warm_us,
           min_by(p.value, CASE WHEN p.us >= c.started + c.warmup_us THEN p.us END) AS warm_value
    FROM points p JOIN clock c USING (run_id)
    GROUP BY p.run_id, p.host, p.direction),
polls AS (
    SELECT k.run_id, p.host, p.direction, k.us, max(k.value) AS rate, max(p.us) AS at_us, max_by(p.value, p.us) AS value
    FROM (SELECT run_id, host, us, sum(value) AS value,
                 CASE metric WHEN 'broker.leader_replication.byte_rate' THEN 'transmit' ELSE 'receive' END AS direction
          FROM samples
          WHERE metric IN ('broker.leader_replication.byte_rate', 'broker.follower_replication.byte_rate')
          GROUP BY run_id, host, us, metric) k
    JOIN points p ON p.run_id = k.run_id AND p.host = k.host AND p.direction = k.direction AND p.us <= k.us
    JOIN clock c ON c.run_id = k.run_id
    WHERE k.us >= c.started + c.warmup_us AND k.us <= p.end_us - c.tail_us
    GROUP BY k.run_id, p.host, p.direction, k.us),
kafka AS (
    SELECT run_id, host, direction, percentile(rate / ours, 0.5D) AS ratio, count(*) AS polls
    FROM (SELECT k.run_id, k.host, k.direction, k.us, max(k.rate) AS rate,
                 (max(k.value) - max_by(p.value, p.us)) / ((max(k.at_us) - max_by(p.oldest, p.us)) / 1e6D) AS ours
          FROM polls k
          JOIN points_window p ON p.run_id = k.run_id AND p.host = k.host AND p.direction = k.direction
                              AND p.us <= k.at_us - p.window_us
          GROUP BY k.run_id, k.host, k.direction, k.us)
    WHERE ours > 0
    GROUP BY run_id, host, direction)
SELECT b.run_id, b.host, b.direction,
       coalesce(p.bytes, 0D) AS total_bytes, (p.end_us - c.started) / 1e6D AS end_s, g.gap_s,
       w.worst.bytes AS worst_bytes, w.worst.elapsed_s AS worst_elapsed_s,
       (-w.worst.earliest - c.started) / 1e6D AS worst_start_s,
       w.highest AS highest_window, s.highest AS highest_second,
       (p.warm_value - p.first_value) / ((p.warm_us - p.first_oldest) / 1e6D) AS warmup,
       t.bytes / ((t.last_us - t.first_us) / 1e6D) AS steady_mean, (t.last_us - t.first_us) / 1e6D AS steady_s,
       CAST(floor((t.last_us - t.first_us) / c.window_us) AS INT) AS steady_windows,
       CASE WHEN s.mean > 0 THEN s.deviation / s.mean END AS variation, w.lowest AS lowest_window,
       k.ratio AS kafka_ratio, CAST(coalesce(k.polls, 0) AS INT) AS kafka_polls
FROM (SELECT DISTINCT run_id, host, direction FROM flows WHERE kind = 'throttled') b
JOIN clock c USING (run_id)
LEFT JOIN gap g USING (run_id, host, direction)
LEFT JOIN point_of p USING (run_id, host, direction)
LEFT JOIN whole_of w USING (run_id, host, direction)
LEFT JOIN second_of s USING (run_id, host, direction)
LEFT JOIN steady t USING (run_id, host, direction)
LEFT JOIN kafka k USING (run_id, host, direction)
"""

_QUOTA_READINGS = """
SELECT s.run_id, s.host, s.metric, s.us, sum(s.value) AS value, c.started AS start_us, c.end_us, c.quota
FROM samples s JOIN span c USING (run_id)
WHERE s.metric IN ('quota.leader.rate', 'quota.follower.rate')
GROUP BY s.run_id, s.host, s.metric, s.us, c.started, c.end_us, c.quota
"""

QUOTAS = f"""
WITH readings_of AS ({_QUOTA_READINGS}),
gap AS ({gaps("host, metric", "SELECT * FROM readings_of")})
SELECT r.run_id, r.host, r.metric, max(g.gap_s) AS gap_s,
       CAST(count_if(r.us BETWEEN r.start_us AND r.end_us) AS INT) AS polls,
       CAST(count_if(r.us BETWEEN r.start_us AND r.end_us AND r.value <> r.quota) AS INT) AS different,
       min(CASE WHEN r.us BETWEEN r.start_us AND r.end_us AND r.value <> r.quota
                THEN struct((r.us - r.start_us) / 1e6D AS at_s, r.value AS value) END) AS first_different
FROM readings_of r JOIN gap g USING (run_id, host, metric)
GROUP BY r.run_id, r.host, r.metric
"""

CONSERVATION = """
WITH bracket AS (
    SELECT run_id, least(started, coalesce(control_started, started)) AS begin_us,
           greatest(end_us, coalesce(control_done, end_us)) AS until_us
    FROM span),
counters AS (
    SELECT run_id, host, direction, kind, us, value FROM series
    UNION ALL
    SELECT s.run_id, s.host, n.direction, 'nic', s.us, sum(s.value)
    FROM samples s
    JOIN (SELECT DISTINCT run_id, host, direction, device FROM nics) n
      ON n.run_id = s.run_id AND n.host = s.host AND n.device = s.label
     AND s.metric = CASE n.direction WHEN 'transmit' THEN 'nic.tx.bytes' ELSE 'nic.rx.bytes' END
    GROUP BY s.run_id, s.host, n.direction, s.us
    UNION ALL
    SELECT run_id, host, 'receive', 'client', us, sum(value) FROM samples
    WHERE metric = 'broker.bytes_in' GROUP BY run_id, host, us)
SELECT c.run_id, c.host, c.direction, c.kind,
       min_by(c.value, CASE WHEN c.us >= b.until_us THEN c.us END)
       - coalesce(max_by(c.value, CASE WHEN c.us <= b.begin_us THEN c.us END), min_by(c.value, c.us)) AS bytes
FROM counters c JOIN bracket b USING (run_id)
GROUP BY c.run_id, c.host, c.direction, c.kind
"""

CONTROLS = f"""
WITH bracket AS (
    SELECT run_id, coalesce(in_force, started) AS begin_us,
           least(greatest(end_us, coalesce(control_done, end_us)),
                 coalesce(restored, greatest(end_us, coalesce(control_done, end_us)))) AS until_us
    FROM span),
readings_of AS (
    SELECT s.run_id, s.host, s.direction, s.us, s.oldest, s.value, b.begin_us AS start_us, b.until_us AS end_us
    FROM series s JOIN bracket b USING (run_id) WHERE s.kind = 'control' AND s.direction = 'receive'),
edges AS (
    SELECT run_id, host, coalesce(max(CASE WHEN us <= start_us THEN us END), min(us)) AS first_us,
           coalesce(min(CASE WHEN us >= end_us THEN us END), max(us)) AS last_us
    FROM readings_of GROUP BY run_id, host),
inside AS (
    SELECT r.* FROM readings_of r JOIN edges e USING (run_id, host) WHERE r.us BETWEEN e.first_us AND e.last_us),
pairs AS ({PAIRS.format(points="inside", least_us="900000")}),
gap AS ({gaps("host", "SELECT run_id, host, us, start_us, end_us FROM readings_of")})
SELECT i.run_id, i.host, max_by(i.value, i.us) - min_by(i.value, i.us) AS total_bytes,
       max(p.peak) AS peak, max(g.gap_s) AS gap_s
FROM inside i JOIN gap g USING (run_id, host)
LEFT JOIN (SELECT run_id, host, max(bytes / elapsed_s) AS peak FROM pairs GROUP BY run_id, host) p
  USING (run_id, host)
GROUP BY i.run_id, i.host
"""

LOAD = f"""
WITH readings_of AS (
    SELECT s.run_id, s.metric, s.us, sum(s.value) AS value, c.started AS start_us, c.end_us, c.window_us
    FROM samples s JOIN span c USING (run_id)
    WHERE s.host = 'machine' AND s.metric IN ('cpu.busy', 'cpu.steal')
    GROUP BY s.run_id, s.metric, s.us, c.started, c.end_us, c.window_us),
inside AS (SELECT * FROM readings_of WHERE us > start_us AND us <= end_us),
trailing AS (
    SELECT a.run_id, a.metric, a.us, avg(b.value) AS mean
    FROM inside a JOIN inside b ON b.run_id = a.run_id AND b.metric = a.metric
                               AND b.us <= a.us AND b.us > a.us - a.window_us
    WHERE a.us - a.start_us >= a.window_us
    GROUP BY a.run_id, a.metric, a.us),
gap AS ({gaps("metric", "SELECT run_id, metric, us, start_us, end_us FROM readings_of")})
SELECT g.run_id, g.metric, g.gap_s, CAST(coalesce(i.polls, 0) AS INT) AS polls, i.mean,
       coalesce(t.highest, i.mean) AS window_max
FROM gap g
LEFT JOIN (SELECT run_id, metric, count(*) AS polls, avg(value) AS mean FROM inside GROUP BY run_id, metric) i
  USING (run_id, metric)
LEFT JOIN (SELECT run_id, metric, max(mean) AS highest FROM trailing GROUP BY run_id, metric) t
  USING (run_id, metric)
"""

POINTS_WINDOW = "SELECT p.*, c.window_us FROM points p JOIN clock c USING (run_id)"
