"""Comparing variants: the effect of one against another from paired runs, and what may be said about it.

Pure functions of numbers (numpy at most); nothing here knows of testbeds. The maths is in `docs/comparing.md`.
"""

import results.compare.relocation  # noqa: F401  (its measures are known by being there)
from results.compare.drift import Moved, moved
from results.compare.effect import Effect, paired_effect
from results.compare.judgement import Comparison, Finding, Pair, Rule, Verdict, judge, judge_all, worst
from results.compare.measures import Measure, find_measure, measures, values_of
from results.compare.tally import Tally

__all__ = [
    "Comparison",
    "Effect",
    "Finding",
    "Measure",
    "Moved",
    "Pair",
    "Rule",
    "Tally",
    "Verdict",
    "find_measure",
    "judge",
    "judge_all",
    "measures",
    "moved",
    "paired_effect",
    "values_of",
    "worst",
]
