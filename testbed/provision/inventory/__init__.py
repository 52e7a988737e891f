"""Testbeds on machines that exist: preflight, software, shaping with a rollback, and removal, over SSH."""
