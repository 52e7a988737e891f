"""Comparisons of variants: the effect of one against another from paired runs, and the verdict.

Pure functions of numbers (numpy at most); nothing here knows of testbeds. The maths is in `docs/comparing.md`.
"""
