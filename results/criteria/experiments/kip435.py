"""KIP-435's own scenes: the same criteria in every mode, and what only a move at once or only one in steps can show."""

from results.criteria.move_judgement import control, fetching, in_sync_unbounded, isr_kept, judged_by
from results.criteria.move_measures import measure_move
from results.criteria.registry import register

register("kip435-exchange", measure=measure_move, judge=judged_by((control,), (isr_kept, fetching), under_load=True))
# The throttle is lowered below what replicas in sync take, on purpose: no rate is promised.
register(
    "kip435-rf4", measure=measure_move, judge=judged_by((), (isr_kept, fetching, in_sync_unbounded), under_load=True)
)
