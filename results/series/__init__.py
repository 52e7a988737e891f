"""Series of runs: where they changed, and what may be said of a night. The maths is in `docs/series.md`."""
