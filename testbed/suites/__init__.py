"""Suites: related experiments that one command runs through ducktape and confirms in one Spark session."""
