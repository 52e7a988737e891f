"""The effect over pairs of (baseline, candidate)."""

from results.compare.effect import effect_of, log_ratios, walsh_averages


def paired_effect(pairs):
    return effect_of(walsh_averages(log_ratios(pairs)), len(pairs))
