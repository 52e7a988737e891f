"""KIP-73's test plan. docs/ducktape.md describes the purpose and the duration of each profile."""

from testbed.suites.suite import suite_of_experiments

SUITE = suite_of_experiments(
    "kip73",
    "Does Kafka keep to its replication quota in every scenario of KIP-73's test plan?",
    release_limit_s=1200.0,
)
