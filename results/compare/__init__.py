"""Comparing variants: the effect of one against another from paired runs, and what may be said about it.

Pure functions of numbers (numpy at most); nothing here knows of testbeds. The maths is in `docs/comparing.md`.
"""
