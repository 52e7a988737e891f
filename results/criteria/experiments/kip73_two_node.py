"""`kip73-two-node`: 100 partitions move from one broker to the other under a KIP-73 quota."""

from results.criteria.move_judgement import judge_move
from results.criteria.move_measures import measure_move
from results.criteria.registry import register

register("kip73-two-node", measure=measure_move, judge=judge_move)
