"""Comparing variants: the effect of one against another from paired runs, and what may be said about it.

Pure functions of numbers (numpy at most); nothing here knows of testbeds. The maths is in `docs/comparing.md`.
"""

from results.compare.canaries import moved
from results.compare.compared_measures import Measure, find_measure, measures, values_of
from results.compare.judgement import (
    ComparisonResult,
    ComparisonRule,
    CriterionTally,
    Pair,
    PairedComparison,
    Verdict,
    judge,
    judge_all,
    worst,
)

__all__ = [
    "ComparisonResult",
    "ComparisonRule",
    "CriterionTally",
    "Measure",
    "Pair",
    "PairedComparison",
    "Verdict",
    "find_measure",
    "judge",
    "judge_all",
    "measures",
    "moved",
    "values_of",
    "worst",
]
