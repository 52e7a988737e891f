"""Six moves of half a minute each, short enough for every night; each move has its own history."""

from testbed.suites.suite import suite_of_experiments

SUITE = suite_of_experiments(
    "brief", "Does moving data take longer than it did? Six short moves on two brokers, for a history"
)
