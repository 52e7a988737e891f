"""From samples to verdicts: measures (numbers) first, then judgement (criteria). All of it pure functions."""

from results.criteria.bounds import window_bound
from results.criteria.measures import MoveMeasures
from results.criteria.registry import Judgement, UnknownExperimentError, judge, register, register_family, rules_for

__all__ = [
    "Judgement",
    "MoveMeasures",
    "UnknownExperimentError",
    "judge",
    "register",
    "register_family",
    "rules_for",
    "window_bound",
]
