"""The suites; each module declares SUITE. The experiments declare its scenarios."""
