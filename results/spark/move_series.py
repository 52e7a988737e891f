"""SQL from samples to series: cumulative bytes per flow and direction, and gauges; one row and one array each.

An implementation of its own beside `results.criteria.series`: sums of differences instead of readings carried forward,
arrays instead of searches. A test holds the two against each other.
"""

from results.spark.array_sql import last_at_or_before, sorted_array

CLOCK = """
SELECT r.*, e.started, e.done, e.control_started, e.control_done, e.in_force, e.restored, e.calm,
       coalesce(e.done, l.last_us, 0) AS watched
FROM runs r
JOIN (SELECT run_id,
             min(CASE WHEN kind = 'move.started' THEN us END) AS started,
             min(CASE WHEN kind = 'move.done' THEN us END) AS done,
             min(CASE WHEN kind = 'control.started' THEN us END) AS control_started,
             min(CASE WHEN kind = 'control.done' THEN us END) AS control_done,
             min(CASE WHEN kind = 'throttle.in_force' THEN us END) AS in_force,
             min(CASE WHEN kind = 'throttle.restored' THEN us END) AS restored,
             coalesce(min(CASE WHEN kind = 'load.before' THEN us END),
                      min(CASE WHEN kind = 'calibration.done' THEN us END)) AS calm
      FROM events GROUP BY run_id) e USING (run_id)
LEFT JOIN (SELECT run_id, max(us) AS last_us FROM samples GROUP BY run_id) l USING (run_id)
WHERE e.started IS NOT NULL
"""
"""One row a run: its parameters and the instants of its events. Samples must be there until `watched`."""

SERIES = f"""
WITH deltas AS (
    SELECT run_id, host, topic, partition, us,
           value - lag(value, 1, 0D) OVER one AS delta, lag(us) OVER one AS before_us
    FROM samples WHERE metric = 'log.bytes'
    WINDOW one AS (PARTITION BY run_id, host, topic, partition ORDER BY us)),
looks AS (
    SELECT run_id, host, array_sort(collect_set(us)) AS looks
    FROM samples WHERE metric IN ('log.bytes', 'nic.tx.bytes', 'nic.rx.bytes') GROUP BY run_id, host),
gone AS (
    SELECT d.run_id, d.host, d.topic, d.partition, get(filter(k.looks, x -> x > d.last_us), 0) AS gone_us
    FROM (SELECT run_id, host, topic, partition, max(us) AS last_us
          FROM deltas GROUP BY run_id, host, topic, partition) d
    JOIN looks k ON k.run_id = d.run_id AND k.host = d.host),
leads AS (
    SELECT run_id, host, topic, partition, us FROM samples WHERE metric = 'partition.led'),
lost AS (
    SELECT h.run_id, h.host, h.topic, h.partition, min(o.us) AS lost_us
    FROM (SELECT run_id, host, topic, partition, min(us) AS first_us
          FROM leads GROUP BY run_id, host, topic, partition) h
    JOIN leads o ON o.run_id = h.run_id AND o.topic = h.topic AND o.partition = h.partition
                AND o.host <> h.host AND o.us > h.first_us
    GROUP BY h.run_id, h.host, h.topic, h.partition),
led AS (
    SELECT f.*, least(g.gone_us, l.lost_us) AS gone_us
    FROM flows f
    LEFT JOIN gone g ON g.run_id = f.run_id AND g.host = f.leader AND g.topic = f.topic AND g.partition = f.partition
    LEFT JOIN lost l ON l.run_id = f.run_id AND l.host = f.leader AND l.topic = f.topic AND l.partition = f.partition),
readable AS (
    SELECT run_id, host, topic, partition, us, delta, before_us FROM deltas
    UNION ALL
    SELECT k.run_id, k.host, NULL, NULL, explode(k.looks), 0D, NULL
    FROM looks k LEFT SEMI JOIN deltas d ON d.run_id = k.run_id AND d.host = k.host),
grown AS (
    SELECT g.run_id, g.kind, g.host, g.direction, g.source, d.us,
           sum(CASE WHEN f.topic IS NOT NULL
                     AND (f.gone_us IS NULL OR d.before_us IS NULL OR d.before_us < f.gone_us)
                    THEN d.delta ELSE 0D END) AS delta
    FROM readable d
    JOIN (SELECT DISTINCT run_id, kind, host, direction, source FROM flows) g
      ON g.run_id = d.run_id AND g.source = d.host
    LEFT JOIN led f ON f.run_id = g.run_id AND f.kind = g.kind AND f.host = g.host
                   AND f.direction = g.direction AND f.source = g.source
                   AND f.topic = d.topic AND f.partition = d.partition
    GROUP BY g.run_id, g.kind, g.host, g.direction, g.source, d.us),
readings AS (
    SELECT run_id, kind, host, direction, source, us,
           sum(delta) OVER (PARTITION BY run_id, kind, host, direction, source ORDER BY us) AS total
    FROM grown),
parts AS (
    SELECT run_id, kind, host, direction, source, {sorted_array("us, total")} AS part
    FROM readings GROUP BY run_id, kind, host, direction, source),
joined AS (
    SELECT run_id, kind, host, direction, collect_list(part) AS parts
    FROM parts GROUP BY run_id, kind, host, direction),
grids AS (
    SELECT j.*, array_max(transform(parts, p -> get(p, 0).us)) AS begins,
           array_sort(array_distinct(flatten(transform(parts, p -> transform(p, x -> x.us))))) AS grid
    FROM joined j
    JOIN (SELECT run_id, kind, host, direction, count(DISTINCT source) AS sources
          FROM flows GROUP BY run_id, kind, host, direction) n USING (run_id, kind, host, direction)
    WHERE size(j.parts) = n.sources)
SELECT run_id, kind, host, direction,
       CASE WHEN size(parts) = 1
            THEN transform(get(parts, 0), x -> struct(x.us AS us, x.us AS oldest, x.total AS value))
            ELSE transform(
                   transform(filter(grid, t -> t >= begins),
                             t -> struct(t AS us, transform(parts, p -> {last_at_or_before("p", "t")}) AS reads)),
                   x -> struct(x.us AS us, array_min(transform(x.reads, r -> r.us)) AS oldest,
                               aggregate(x.reads, 0D, (m, r) -> m + r.total) AS value))
       END AS series
FROM grids
"""
"""Cumulative bytes through each host and direction over all its sources; `oldest` is the oldest reading inside.

What a follower's log grows by once the leader's host no longer has that log, or another one was seen to lead, does not
come from that leader.
"""

GAUGES = f"""
SELECT run_id, host, metric, {sorted_array("us, value")} AS series
FROM (SELECT s.run_id, s.host, s.metric, s.us, sum(s.value) AS value
      FROM samples s
      LEFT JOIN (SELECT DISTINCT run_id, host, device,
                        CASE direction WHEN 'transmit' THEN 'nic.tx.bytes' ELSE 'nic.rx.bytes' END AS metric
                 FROM nics) n
        ON n.run_id = s.run_id AND n.host = s.host AND n.metric = s.metric AND n.device = s.label
      WHERE s.metric IN ('broker.leader_replication.byte_rate', 'broker.follower_replication.byte_rate',
                         'broker.bytes_in', 'quota.leader.rate', 'quota.follower.rate',
                         'quota.leader.unlisted', 'quota.follower.unlisted', 'cpu.busy', 'cpu.steal',
                         'broker.isr_shrinks', 'move.in_flight', 'move.lag')
         OR n.device IS NOT NULL
      GROUP BY s.run_id, s.host, s.metric, s.us)
GROUP BY run_id, host, metric
"""
"""Readings of what has one value a host; of a NIC, only of the devices that the manifest names."""
