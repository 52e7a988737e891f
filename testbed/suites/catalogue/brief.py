"""Six moves of half a minute each, and three scenarios of placement: short enough for every night."""

from testbed.suites.suite import suite_of_experiments

SUITE = suite_of_experiments(
    "brief", "Does moving data take longer than it did? Six short moves and three scenarios of placement"
)
