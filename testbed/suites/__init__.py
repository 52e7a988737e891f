"""Suites: experiments that belong together, run with one command through ducktape, confirmed in one Spark session."""
