"""SQL for what goes on around a move: its end, its NICs, in-sync replicas, being stuck, clients. Microseconds."""

from results.spark.array_sql import around, counted, gap_s, pair_rates, pairs, sorted_array

MOVED = """
WITH flying AS (
    SELECT c.run_id, c.started, g.series,
           get(filter(g.series, q -> q.us > c.started AND q.value > 0), 0).us AS flying_us
    FROM gauges g JOIN clock c USING (run_id) WHERE g.metric = 'move.in_flight' AND g.host = 'driver')
SELECT run_id, (get(filter(series, q -> q.us > flying_us AND q.value = 0), 0).us - started) / 1e6D AS landed_s
FROM flying
"""
"""One row a run: when nothing was being reassigned any more."""

NIC = f"""
WITH inside AS (
    SELECT s.run_id, g.host, CASE g.metric WHEN 'nic.tx.bytes' THEN 'transmit' ELSE 'receive' END AS direction,
           filter(g.series, q -> q.us BETWEEN s.started + s.warmup_us AND s.end_us - s.tail_us) AS points
    FROM gauges g JOIN span s USING (run_id) WHERE g.metric IN ('nic.tx.bytes', 'nic.rx.bytes')),
ends AS (SELECT *, (try_element_at(points, -1).us - get(points, 0).us) / 1e6D AS seconds
         FROM inside WHERE size(points) > 1)
SELECT run_id, host, direction, seconds, {counted("points")} * 1448 / 1514 / seconds AS payload
FROM ends
"""
"""One row a run, host and direction: payload on the NIC over the steady part."""

NIC_USE = f"""
WITH inside AS (
    SELECT c.run_id, g.host, CASE g.metric WHEN 'nic.tx.bytes' THEN 'transmit' ELSE 'receive' END AS direction,
           transform(filter(g.series, q -> q.us BETWEEN c.started AND c.watched),
                     q -> struct(q.us AS us, q.us AS oldest, q.value AS value)) AS points
    FROM gauges g JOIN clock c USING (run_id) WHERE g.metric IN ('nic.tx.bytes', 'nic.rx.bytes'))
SELECT run_id, host, direction,
       {counted("points")} * 1448 / 1514 / ((try_element_at(points, -1).us - get(points, 0).us) / 1e6D) AS mean,
       array_max({pair_rates(pairs("points", "900000L"))}) * 1448 / 1514 AS peak
FROM inside WHERE size(points) > 1
"""
"""One row a run, host and direction: payload on the NIC over the whole move, its mean and its highest second."""

LISTED = """
SELECT run_id, coalesce(max(CASE WHEN metric = 'move.listed' THEN value END), max(value)) AS most
FROM (SELECT s.run_id, s.metric, s.value
      FROM samples s JOIN clock c ON c.run_id = s.run_id AND s.us BETWEEN c.started AND c.watched
      WHERE s.metric IN ('move.listed', 'move.in_flight') AND s.host = 'driver')
GROUP BY run_id
"""
"""One row a run: most partitions that were being reassigned at once."""

RESTS = """
WITH looks AS (
    SELECT c.run_id, s.us, s.value > 0 AS busy, row_number() OVER (PARTITION BY c.run_id ORDER BY s.us) AS number
    FROM (SELECT run_id, us, sum(value) AS value FROM samples
          WHERE metric = 'move.listed' AND host = 'driver' GROUP BY run_id, us) s
    JOIN clock c ON c.run_id = s.run_id AND s.us BETWEEN c.started AND c.watched),
ends AS (
    SELECT run_id, min(us) AS first_us, max(us) AS last_us FROM looks WHERE busy GROUP BY run_id),
gaps AS (
    SELECT run_id, CAST(count(*) AS INT) AS looks, max(gap_us) / 1e6D AS gap_s
    FROM (SELECT l.run_id, l.us - lag(l.us) OVER (PARTITION BY l.run_id ORDER BY l.us) AS gap_us
          FROM looks l JOIN ends e ON e.run_id = l.run_id AND l.us BETWEEN e.first_us AND e.last_us)
    GROUP BY run_id),
rested AS (
    SELECT run_id, us - before_us AS lasted
    FROM (SELECT run_id, us, number, lag(us) OVER one AS before_us, lag(number) OVER one AS before
          FROM looks WHERE busy WINDOW one AS (PARTITION BY run_id ORDER BY us))
    WHERE number - before > 1)
SELECT g.run_id, g.looks, g.gap_s, CAST(count(r.lasted) AS INT) AS count,
       coalesce(sum(r.lasted), 0L) / 1e6D AS total_s, coalesce(max(r.lasted), 0L) / 1e6D AS longest_s
FROM gaps g LEFT JOIN rested r USING (run_id) GROUP BY g.run_id, g.looks, g.gap_s
"""
"""One row a run in whose list something was seen: for how long nothing was in it, between looks at which there was."""

UNDER_MIN_ISR = """
WITH looks AS (
    SELECT c.run_id, s.us, any_value(c.watched) AS watched, any_value(c.min_insync) AS least, min(s.value) AS lowest
    FROM samples s JOIN clock c ON c.run_id = s.run_id AND s.us BETWEEN c.started AND c.watched
    WHERE s.metric = 'isr.size' GROUP BY c.run_id, s.us),
lasting AS (SELECT *, lead(us, 1, watched) OVER (PARTITION BY run_id ORDER BY us) - us AS lasts FROM looks)
SELECT run_id, sum(CASE WHEN lowest < least THEN lasts ELSE 0L END) / 1e6D AS under_s, min(lowest) AS lowest
FROM lasting GROUP BY run_id
"""
"""One row a run in which ISRs were looked at: how long one was under min.insync.replicas, and the smallest."""

SHRINKS = f"""
WITH counters AS (
    SELECT c.run_id, g.host, g.series, c.started, c.watched, {around("g.series", "c.started", "c.watched")} AS points
    FROM gauges g JOIN clock c USING (run_id) WHERE g.metric = 'broker.isr_shrinks')
SELECT run_id, host, CASE WHEN points IS NOT NULL THEN {counted("points")} END AS shrinks,
       {gap_s("series", "started", "watched", inside=True)} AS gap_s
FROM counters
"""
"""One row a run and broker that was asked for its ISR shrinks."""

ISR = f"""
WITH parts AS (
    SELECT c.run_id, s.topic, s.partition, any_value(c.started) AS started, any_value(c.watched) AS watched,
           max_by(s.value, s.us) FILTER (WHERE s.us <= c.started) AS before,
           count(*) FILTER (WHERE s.us > c.started AND s.us <= c.watched) AS polls,
           {sorted_array("s.us AS us, s.value AS value")} AS series
    FROM samples s JOIN clock c USING (run_id) WHERE s.metric = 'isr.size'
    GROUP BY c.run_id, s.topic, s.partition),
known AS (
    SELECT *, {gap_s("series", "started", "watched")} AS gap_s,
           get(filter(series, q -> q.us > started AND q.us <= watched AND q.value < before), 0) AS less
    FROM parts WHERE before IS NOT NULL),
named AS (
    SELECT *, CASE WHEN less IS NOT NULL
                   THEN struct(less.us AS us, concat(topic, '-', CAST(partition AS STRING)) AS name,
                               less.value AS size, before)
              END AS bad
    FROM known)
SELECT run_id, CAST(count(*) AS INT) AS partitions, CAST(min(polls) AS INT) AS polls, max(gap_s) AS gap_s,
       CAST(count(less) AS INT) AS smaller, min(bad).name AS first_partition,
       (min(bad).us - any_value(started)) / 1e6D AS first_s, min(bad).size AS first_size,
       min(bad).before AS first_before
FROM named GROUP BY run_id
"""
"""One row a run in which the ISR of a partition was looked at before the move."""

STUCK = """
WITH noticed AS (
    SELECT c.run_id, any_value(c.started) AS started, min(e.us) AS us,
           try_cast(get_json_object(min_by(e.detail, e.us), '$.seconds') AS DOUBLE) AS seconds
    FROM events e JOIN clock c USING (run_id)
    WHERE e.kind = 'move.stuck' AND e.us >= c.started GROUP BY c.run_id),
later AS (
    SELECT n.run_id, min(CASE WHEN e.kind = 'move.raised' THEN e.us END) AS raised_us,
           min_by(e.detail, e.us) FILTER (WHERE e.kind = 'throttle.in_force') AS in_force
    FROM noticed n JOIN events e ON e.run_id = n.run_id AND e.us >= n.us GROUP BY n.run_id),
lags AS (
    SELECT n.*, n.us - CAST(round(coalesce(n.seconds, 0D) * 1e6D) AS BIGINT) AS begun_us,
           filter(g.series, q -> q.us BETWEEN n.started AND n.us) AS series
    FROM noticed n LEFT JOIN gauges g ON g.run_id = n.run_id AND g.metric = 'move.lag' AND g.host = 'driver')
SELECT l.run_id, (l.us - l.started) / 1e6D AS noticed_s, l.seconds,
       CASE WHEN l.seconds IS NOT NULL THEN array_min(transform(
           filter(l.series, q -> q.us <= greatest(l.begun_us, get(l.series, 0).us)), q -> q.value)) END AS lag_before,
       CASE WHEN l.seconds IS NOT NULL THEN array_min(transform(
           filter(l.series, q -> q.us > greatest(l.begun_us, get(l.series, 0).us)), q -> q.value)) END AS lag_since,
       (array_min(transform(filter(l.series, q -> q.us >= l.started + 1500000L),
                            q -> struct(q.value AS value, q.us AS us))).us - l.started) / 1e6D AS lowest_s,
       (a.raised_us - l.started) / 1e6D AS raised_s,
       CASE WHEN a.raised_us IS NOT NULL
            THEN try_cast(get_json_object(a.in_force, '$.rate_bytes_per_s') AS DOUBLE) END AS raised_to
FROM lags l LEFT JOIN later a USING (run_id)
"""
"""One row a run that was noticed to be stuck."""

RESTARTED = """
SELECT c.run_id, array_sort(collect_set(CASE WHEN e.kind = 'broker.leaving' THEN e.host END)) AS left,
       array_sort(collect_set(CASE WHEN e.kind = 'broker.back' THEN e.host END)) AS back
FROM events e JOIN clock c ON e.run_id = c.run_id AND e.us BETWEEN c.started AND c.watched
GROUP BY c.run_id
"""
"""One row a run: whose brokers left during the move, and whose came back."""

_PARTS = """
clocked AS (
    SELECT run_id, started, done, coalesce(calm, 0L) + 1000000L AS from_us FROM clock),
told AS (
    SELECT s.run_id, s.host, s.us, s.value, s.label, s.metric,
           CASE WHEN s.metric LIKE 'client.produce.%' THEN 'produce' ELSE 'consume' END AS kind,
           CASE WHEN s.us <= c.started THEN CASE WHEN s.us >= c.from_us THEN 'before' END
                WHEN c.done IS NULL OR s.us <= c.done + 1000000L THEN 'during' ELSE 'after' END AS part
    FROM samples s JOIN clocked c USING (run_id)
    WHERE s.metric IN ('client.produce.latency', 'client.consume.latency', 'client.produce.acked',
                       'client.consume.records'))"""

LATENCIES = f"""
WITH {_PARTS},
buckets AS (
    SELECT run_id, kind, part, CAST(label AS DOUBLE) AS bucket, sum(value) AS records
    FROM told WHERE metric LIKE '%.latency' AND part IS NOT NULL GROUP BY run_id, kind, part, CAST(label AS DOUBLE)),
reached AS (
    SELECT *, sum(records) OVER (PARTITION BY run_id, kind, part ORDER BY bucket) AS upto,
           sum(records) OVER (PARTITION BY run_id, kind, part) AS total
    FROM buckets)
SELECT run_id, kind, part, CAST(max(total) AS BIGINT) AS records,
       min(CASE WHEN upto >= ceil(0.5D * total) THEN bucket END) AS p50,
       min(CASE WHEN upto >= ceil(0.99D * total) THEN bucket END) AS p99,
       min(CASE WHEN upto >= ceil(0.999D * total) THEN bucket END) AS p999
FROM reached WHERE total > 0 GROUP BY run_id, kind, part
"""
"""One row a run, kind of client and part of the run: exact quantiles of the merged buckets."""

SILENCES = f"""
WITH {_PARTS},
steps AS (
    SELECT run_id, kind, part, host, us,
           CASE WHEN value = lag(value) OVER one THEN 0 ELSE 1 END AS grew
    FROM told WHERE metric NOT LIKE '%.latency' AND part IS NOT NULL
    WINDOW one AS (PARTITION BY run_id, kind, part, host ORDER BY us)),
levels AS (
    SELECT *, sum(grew) OVER (PARTITION BY run_id, kind, part, host ORDER BY us) AS level,
           count(*) OVER (PARTITION BY run_id, kind, part, host) AS readings
    FROM steps),
flat AS (
    SELECT run_id, kind, part, max(us) - min(us) AS flat_us
    FROM levels WHERE readings > 1 GROUP BY run_id, kind, part, host, level)
SELECT run_id, kind, part, max(flat_us) / 1e6D AS silence_s FROM flat GROUP BY run_id, kind, part
"""
"""One row a run, kind of client and part of the run: the longest time for which one client's count did not grow."""

KINDS = """
SELECT DISTINCT s.run_id, CASE WHEN s.metric LIKE 'client.produce.%' THEN 'produce' ELSE 'consume' END AS kind
FROM samples s JOIN clock c USING (run_id)
WHERE s.metric IN ('client.produce.latency', 'client.consume.latency', 'client.produce.acked',
                   'client.consume.records')
"""
"""One row a run and kind of client that it had."""
