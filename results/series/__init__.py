"""Series of runs, their change points, and the judgement of a night. The maths is in `docs/series.md`."""
