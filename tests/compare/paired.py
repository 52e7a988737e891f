"""Pairs of (baseline, candidate): their effect, and the judgement of comparisons without other tests."""

from results.compare.effect import effect_of, log_ratios, walsh_averages
from results.compare.judgement import judge_all


def paired_effect(pairs):
    return effect_of(walsh_averages(log_ratios(pairs)), len(pairs))


def judge(comparisons, rule=None):
    return judge_all(comparisons, (), rule)[0]
