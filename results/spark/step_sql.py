"""SQL for runs of steps: states of partitions with their times, expectations held against them, polls compared.

Views: `events`, and `wanted` (one row an expectation, its sets sorted, null where anything will do).
"""

STATES = """
SELECT run_id, d.topic AS topic, d.partition AS partition, us AS begin_us,
       coalesce(lead(us) OVER one, 4611686018427387904L) AS end_us,
       d.offset AS offset, coalesce(d.replicas, array()) AS replicas, coalesce(d.adding, array()) AS adding,
       coalesce(d.removing, array()) AS removing, coalesce(d.isr, array()) AS isr, d.leader AS leader,
       coalesce(d.leader_epoch, -1) AS leader_epoch, coalesce(d.gone, false) AS gone
FROM (SELECT run_id, us,
             from_json(detail, 'topic STRING, partition INT, offset BIGINT, replicas ARRAY<INT>, adding ARRAY<INT>,
                                removing ARRAY<INT>, isr ARRAY<INT>, leader INT, leader_epoch INT, gone BOOLEAN') AS d
      FROM events WHERE kind = 'trace.log')
WINDOW one AS (PARTITION BY run_id, d.topic, d.partition ORDER BY d.offset)
"""
"""One row a state of a partition in the controller's log."""

FOUND = """
WITH inside AS (
    SELECT w.run_id, w.step, w.expectation, greatest(s.begin_us, w.first_us) AS us, s.offset,
           struct(s.offset, s.replicas, s.adding, s.removing, s.isr, s.leader, s.leader_epoch, s.gone) AS state,
           CASE WHEN w.gone OR s.gone THEN w.gone AND s.gone
                ELSE coalesce(w.replicas = array_sort(s.replicas), true)
                     AND coalesce(w.ordered = s.replicas, true)
                     AND coalesce(w.adding = array_sort(s.adding), true)
                     AND coalesce(w.removing = array_sort(s.removing), true)
                     AND coalesce(w.isr = array_sort(s.isr), true)
                     AND size(array_except(w.in_sync, s.isr)) = 0
                     AND size(array_intersect(w.out_of_sync, s.isr)) = 0
                     AND (w.leaders IS NULL OR coalesce(array_contains(w.leaders, s.leader), false))
           END AS met
    FROM wanted w JOIN states s
      ON s.run_id = w.run_id AND s.topic = w.topic AND s.partition = w.partition
     AND s.begin_us <= w.last_us AND s.end_us > w.first_us)
SELECT run_id, step, expectation, min(CASE WHEN met THEN us END) AS us, max_by(state, offset) AS last
FROM inside GROUP BY run_id, step, expectation
"""
"""One row an expectation in whose span the log has states of its partition."""

POLLED = """
WITH told AS (
    SELECT run_id, us, kind, monotonically_increasing_id() AS id,
           from_json(detail, 'topic STRING, partition INT, replicas ARRAY<INT>, adding ARRAY<INT>,
                              removing ARRAY<INT>, isr ARRAY<INT>, leader INT, leader_epoch INT, gone BOOLEAN') AS d
    FROM events WHERE kind IN ('trace.described', 'trace.listed')),
compared AS (
    SELECT t.run_id, t.kind, t.id, coalesce(max(
           CASE WHEN coalesce(t.d.gone, false) OR s.gone THEN coalesce(t.d.gone, false) AND s.gone
                WHEN t.kind = 'trace.described'
                THEN array_sort(t.d.replicas) = array_sort(s.replicas) AND array_sort(t.d.isr) = array_sort(s.isr)
                     AND t.d.leader <=> s.leader AND t.d.leader_epoch = s.leader_epoch
                WHEN size(coalesce(t.d.adding, array())) + size(coalesce(t.d.removing, array())) = 0
                THEN size(s.adding) + size(s.removing) = 0
                ELSE array_sort(t.d.replicas) = array_sort(s.replicas)
                     AND array_sort(t.d.adding) = array_sort(s.adding)
                     AND array_sort(t.d.removing) = array_sort(s.removing)
           END), false) AS known
    FROM told t LEFT JOIN states s
      ON s.run_id = t.run_id AND s.topic = t.d.topic AND s.partition = t.d.partition AND s.begin_us <= t.us
    GROUP BY t.run_id, t.kind, t.id)
SELECT run_id, kind, CAST(count(*) AS INT) AS told, CAST(count_if(NOT known) AS INT) AS unlike
FROM compared GROUP BY run_id, kind
"""
"""One row a run and kind of request: what was told, and how much of it the log never had before."""
