"""Six moves of half a minute: little enough to be made every night, for a history of each."""

from testbed.suites.suite import Case, Suite

# Two bursts of Kafka's own fetch settings can be judged by; runs of twenty partitions are small enough to keep.
_SHORT = ("fetch=default", "rate=5MB/s", "preload=26s", "partitions=20")
_CI = (
    Case("move", "kip73-two-node", _SHORT),
    Case("add", "kip73-two-node", (*_SHORT, "add=yes")),
    Case("batched", "kip73-two-node", (*_SHORT, "mode=batched", "reassignment-batch-size=10")),
    Case("under-load", "kip73-two-node-produce", (*_SHORT, "inbound=500kB/s")),
    Case("bootstrap", "kip73-bootstrap", _SHORT),
    Case("unthrottled", "s3-reassign", ("storage=disk", "size=500MB", "partitions=20"), topology="two-brokers"),
)

SUITE = Suite(
    "brief",
    "Does moving data take longer than it did? Six short moves on two brokers, for a history",
    "brief_test.py",
    {"ci": _CI},
)
