"""Apache's own system tests, unmodified: from a checkout of Kafka, on the testbed's hosts and shaped NICs."""
