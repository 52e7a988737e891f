"""KIP-435's test plan: the tests of a reassignment in every mode of execution. See docs/kip435.md."""

from testbed.suites.suite import suite_of_experiments

SUITE = suite_of_experiments(
    "kip435",
    "Does a reassignment in KIP-435's steps keep its limits, and every promise that one at once keeps?",
    release_limit_s=1800.0,
)
