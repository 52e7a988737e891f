"""Incidents as files: each describes a past failure, so that the testbed can replay and judge it."""
