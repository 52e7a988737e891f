"""From samples to verdicts: measures (numbers) first, then criteria, one file each in `catalogue`. Pure."""

from results.criteria.judgement import Judgement, UnknownExperimentError, judge
from results.criteria.measures import MoveMeasures

__all__ = ["Judgement", "MoveMeasures", "UnknownExperimentError", "judge"]
