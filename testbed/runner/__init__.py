"""The runner of campaigns. It runs variants × repeats, interleaved, with canaries around every run.

A campaign is resumable after a kill. Sweeps, comparisons, suites and the nightly use this runner. `results.compare`
judges the runs.
"""
