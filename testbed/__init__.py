"""Testbed: real Kafka brokers on shaped NICs, reassignments under a throttle, judged by bytes."""

__version__ = "0.1.0"
