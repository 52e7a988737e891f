"""A cluster that librdkafka plays in this process: real sockets, real clients, no broker."""

import pytest
from confluent_kafka import Producer


@pytest.fixture(scope="session")
def cluster():
    """Its bootstrap servers. Every topic has four partitions, made when first asked for."""
    mock = Producer({"test.mock.num.brokers": 3, "log_level": 3})
    yield Cluster(mock)
    mock.flush(1)


class Cluster:
    def __init__(self, mock):
        self._mock = mock
        self.bootstrap = [f"{b.host}:{b.port}" for b in mock.list_topics(timeout=10).brokers.values()]

    def topic(self, name):
        """Make it; returns its partitions."""
        return tuple(sorted(self._mock.list_topics(name, timeout=10).topics[name].partitions))
