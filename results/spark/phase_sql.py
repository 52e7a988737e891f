"""SQL for the phases of a move, and for the bound of a window in each. Times are microseconds."""

SPANS = """
WITH edges AS (
    SELECT e.run_id, e.us, e.kind, c.started, greatest(c.started, c.watched) AS watched, c.quota AS asked,
           try_cast(get_json_object(e.detail, '$.rate_bytes_per_s') AS DOUBLE) AS rate,
           get_json_object(e.detail, '$.leaders_as_planned') AS as_planned
    FROM events e JOIN clock c USING (run_id)
    WHERE e.kind IN ('throttle.in_force', 'throttle.changing', 'broker.leaving', 'broker.back', 'move.started',
                     'move.done')
      AND (e.us >= c.started OR e.kind = 'throttle.in_force')),
changing AS (
    SELECT *, last_value(CASE WHEN us < started THEN NULL WHEN kind = 'throttle.changing' THEN 1
                              WHEN kind = 'throttle.in_force' THEN 0 END, true)
                OVER (PARTITION BY run_id ORDER BY us ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS was_changing
    FROM edges),
states AS (
    SELECT run_id, us, kind, started, watched,
           coalesce(last_value(CASE WHEN kind = 'throttle.in_force' THEN rate END, true) OVER upto, asked) AS quota,
           coalesce(last_value(CASE kind WHEN 'throttle.changing' THEN 1 WHEN 'throttle.in_force' THEN 0 END, true)
                      OVER upto, 0) AS changing,
           sum(CASE kind WHEN 'broker.leaving' THEN 1 WHEN 'broker.back' THEN -1 ELSE 0 END) OVER upto AS down,
           coalesce(last_value(CASE kind WHEN 'broker.leaving' THEN false
                                         WHEN 'broker.back' THEN coalesce(as_planned = 'true', false) END, true)
                      OVER upto, true) AS leaders_known,
           max(kind = 'move.done') OVER upto AS ended,
           lead(us) OVER (PARTITION BY run_id ORDER BY us) AS next_us,
           lead(kind) OVER (PARTITION BY run_id ORDER BY us) AS next_kind
    FROM changing
    WHERE us < started OR kind <> 'throttle.in_force' OR was_changing = 1
    WINDOW upto AS (PARTITION BY run_id ORDER BY us ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
phases AS (
    SELECT run_id, us AS begin_us, coalesce(next_us, watched) AS until_us, quota, leaders_known,
           us = started AS first, next_kind IS NULL OR next_kind = 'move.done' AS last
    FROM states
    WHERE us >= started AND changing = 0 AND down <= 0 AND NOT ended AND coalesce(next_us, watched) > us)
SELECT run_id, CAST(row_number() OVER (PARTITION BY run_id ORDER BY begin_us) AS INT) AS phase,
       CAST(count(*) OVER (PARTITION BY run_id) AS INT) AS phases,
       begin_us, until_us, quota, leaders_known, first, last
FROM phases
"""
"""One row a phase, from views `events` and `clock`."""

BOUND = """CASE WHEN fetchers > 0 THEN
    least(CASE direction WHEN 'receive' THEN quota * (window_us + sample_us) / 1e6D + fetchers * response
                         ELSE quota * window_us / 1e6D + (2 * fetchers - 1) * response
                              + greatest(quota * sample_us / 1e6D, response) END,
          CASE WHEN follower_fetchers > 0
               THEN followers * quota * (window_us + sample_us) / 1e6D + follower_fetchers * response END) END"""
"""Most bytes in a window, of columns of `ends` and `runs`; null without fetchers.

Without replicas in sync a leader's followers cannot log more than they may receive: then `follower_fetchers` are
theirs, of `followers` of them.
"""

ENDS = """
SELECT c.run_id, c.window_us, c.sample_us, c.warmup_us, c.tail_us, c.started,
       b.host, b.direction, b.fetchers, b.followers, b.follower_fetchers, b.response, b.wildcard,
       s.phase, s.begin_us, s.until_us, s.first, s.last, s.phase_quota AS quota
FROM clock c
JOIN (SELECT run_id, 0 AS phase, started AS begin_us, greatest(started, watched) AS until_us, true AS first,
             true AS last, true AS leaders_known, quota AS phase_quota
      FROM clock
      UNION ALL
      SELECT run_id, phase, begin_us, until_us, first, last, leaders_known, quota
      FROM spans WHERE NOT (phases = 1 AND first AND last)) s USING (run_id)
JOIN ends b USING (run_id)
WHERE b.direction = 'receive' OR s.leaders_known
"""
"""One row an end and span; span 0 is the whole move. Of a move with one phase that is the phase as well."""
