"""Experiments: parameters, steps, and what they established; judged by `results`."""
