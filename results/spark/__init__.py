"""Spark over the store: a session, and runs judged again on its workers by the functions that judge one run."""
