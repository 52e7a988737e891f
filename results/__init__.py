"""Runs as Parquet: the schema, the store, the judgement, and the report. Knows nothing of `testbed`."""
