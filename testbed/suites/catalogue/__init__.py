"""The suites; each module declares SUITE. Its scenarios are declared by the experiments."""
