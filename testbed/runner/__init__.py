"""The one runner: variants × repeats, interleaved, with canaries around every run, resumable after a kill.

Sweeps, comparisons, suites and the nightly are doors to it. What it found is judged by `results.compare`.
"""
