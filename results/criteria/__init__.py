"""From samples to verdicts: measures (numbers) first, then criteria, one file each in `catalogue`. Pure."""

from results.criteria.judgement import Judgement, UnknownExperimentError, judge
from results.criteria.measures import MoveMeasures
from results.criteria.model import window_bound

__all__ = ["Judgement", "MoveMeasures", "UnknownExperimentError", "judge", "window_bound"]
