"""SQL from samples to series: cumulative bytes per flow, and the points of the throttled move.

An implementation of its own beside `results.criteria.series`: sums of differences instead of readings carried forward,
joins instead of searches. A test holds the two against each other.
"""

CLOCK = """
SELECT r.*, e.started, e.done, e.control_started, e.control_done, e.in_force, e.restored,
       coalesce(e.done, s.last_us, 0) AS watched
FROM runs r
JOIN (SELECT run_id,
             min(CASE WHEN kind = 'move.started' THEN us END) AS started,
             min(CASE WHEN kind = 'move.done' THEN us END) AS done,
             min(CASE WHEN kind = 'control.started' THEN us END) AS control_started,
             min(CASE WHEN kind = 'control.done' THEN us END) AS control_done,
             min(CASE WHEN kind = 'throttle.in_force' THEN us END) AS in_force,
             min(CASE WHEN kind = 'throttle.restored' THEN us END) AS restored
      FROM events GROUP BY run_id) e USING (run_id)
LEFT JOIN (SELECT run_id, max(us) AS last_us FROM samples GROUP BY run_id) s USING (run_id)
WHERE e.started IS NOT NULL
"""
"""One row a run: its parameters and the instants of its events."""

GROWTH = """
SELECT run_id, source, kind, host, direction, us, sum(delta) AS delta
FROM (SELECT s.run_id, f.source, f.kind, f.host, f.direction, s.us,
             s.value - lag(s.value, 1, 0D) OVER (
                 PARTITION BY s.run_id, f.source, f.kind, f.host, f.direction, s.topic, s.partition
                 ORDER BY s.us) AS delta
      FROM samples s
      JOIN flows f ON f.run_id = s.run_id AND f.source = s.host AND f.topic = s.topic
                  AND f.partition = s.partition
      WHERE s.metric = 'log.bytes')
GROUP BY run_id, source, kind, host, direction, us
"""
"""Bytes by which the partitions of a kind grew at one reading of the follower."""

READINGS = """
SELECT g.run_id, g.kind, g.host, g.direction, g.source, i.us,
       sum(coalesce(d.delta, 0D)) OVER (
           PARTITION BY g.run_id, g.kind, g.host, g.direction, g.source ORDER BY i.us) AS total
FROM (SELECT DISTINCT run_id, kind, host, direction, source FROM flows) g
JOIN (SELECT DISTINCT run_id, host AS source, us FROM samples WHERE metric = 'log.bytes') i
  ON i.run_id = g.run_id AND i.source = g.source
LEFT JOIN growth d ON d.run_id = g.run_id AND d.kind = g.kind AND d.host = g.host
                  AND d.direction = g.direction AND d.source = g.source AND d.us = i.us
"""
"""Cumulative bytes of each source at each of its own instants."""

SERIES = """
SELECT run_id, kind, host, direction, us, min(read_us) AS oldest, sum(total) AS value
FROM (SELECT t.run_id, t.kind, t.host, t.direction, t.source, t.us,
             last(CASE WHEN r.total IS NOT NULL THEN r.us END, true) OVER latest AS read_us,
             last(r.total, true) OVER latest AS total
      FROM (SELECT s.*, i.us
            FROM (SELECT DISTINCT run_id, kind, host, direction, source FROM flows) s
            JOIN (SELECT DISTINCT run_id, kind, host, direction, us FROM readings) i
            USING (run_id, kind, host, direction)) t
      LEFT JOIN readings r ON r.run_id = t.run_id AND r.kind = t.kind AND r.host = t.host
                          AND r.direction = t.direction AND r.source = t.source AND r.us = t.us
      WINDOW latest AS (PARTITION BY t.run_id, t.kind, t.host, t.direction, t.source ORDER BY t.us))
GROUP BY run_id, kind, host, direction, us
HAVING count(total) = count(*)
"""
"""Cumulative bytes through each host and direction, over all sources; `oldest` is the oldest reading inside."""

WATCHED_POINTS = """
WITH edges AS (
    SELECT s.run_id, s.host, s.direction, c.started,
           max(CASE WHEN s.us <= c.started THEN s.us END) AS base_us,
           min(CASE WHEN s.us >= c.done THEN s.us END) AS stop_us
    FROM series s JOIN clock c USING (run_id)
    WHERE s.kind = 'throttled'
    GROUP BY s.run_id, s.host, s.direction, c.started)
SELECT s.run_id, s.host, s.direction, s.us, s.oldest, s.value
FROM series s JOIN edges e USING (run_id, host, direction)
WHERE s.kind = 'throttled' AND s.us >= coalesce(e.base_us, e.started) AND s.us <= coalesce(e.stop_us, s.us)
UNION ALL
SELECT run_id, host, direction, started, started, 0D FROM edges WHERE base_us IS NULL
"""
"""Throttled series from the last reading before the start to the first after the end."""

POINTS = """
SELECT p.*, e.end_us
FROM watched_points p
JOIN (SELECT run_id, host, direction, max(us) AS end_us
      FROM (SELECT *, lag(value) OVER (PARTITION BY run_id, host, direction ORDER BY us) AS before
            FROM watched_points)
      WHERE value > before
      GROUP BY run_id, host, direction) e USING (run_id, host, direction)
WHERE p.us <= e.end_us
"""
"""The same up to the last growth; nothing where nothing grew."""

SPAN = """
SELECT c.*, coalesce(p.end_us, c.watched) AS end_us, p.end_us AS throttled_us
FROM clock c LEFT JOIN (SELECT run_id, max(us) AS end_us FROM points GROUP BY run_id) p USING (run_id)
"""
"""The clock with the end of the throttled move, over all hosts."""

VIEWS = (
    ("clock", CLOCK, True),
    ("growth", GROWTH, False),
    ("readings", READINGS, True),
    ("series", SERIES, True),
    ("watched_points", WATCHED_POINTS, True),
    ("points", POINTS, True),
    ("span", SPAN, True),
)
"""Name, text, and whether it is read more than once and so kept in memory; in order of dependence."""
