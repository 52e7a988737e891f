"""Moves that no quota holds back: on disk, tiered, in S3."""

from results.criteria.registry import register
from results.criteria.relocation_judgement import COLD, REASSIGN, SCALE, relocation_judged_by
from results.criteria.relocation_measures import measure_relocation

register("s3-reassign", measure=measure_relocation, judge=relocation_judged_by(*REASSIGN))
for name in ("scale-out", "scale-in"):
    register(name, measure=measure_relocation, judge=relocation_judged_by(*SCALE))
register("cold-read", measure=measure_relocation, judge=relocation_judged_by(*COLD))
