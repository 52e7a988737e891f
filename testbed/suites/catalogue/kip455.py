"""KIP-455 step by step. docs/kip455.md lists where KRaft differs from its text."""

from testbed.suites.suite import suite_of_experiments

SUITE = suite_of_experiments(
    "kip455",
    "Does a reassignment go through the states that KIP-455 and KRaft's rules say, whatever happens meanwhile?",
)
