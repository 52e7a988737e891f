"""A cluster with a throttle: rates of one broker and of the default level, and the lists of one topic."""

from fakes.admin import FakeAdmin

from testbed.kafka.types import BrokerConfigs, ConfigResource, TopicPartition
from testbed.throttle.configs import EVERY_BROKER, FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS

ONE, TOPIC = ConfigResource.broker(1), ConfigResource.topic("t")


class WithDefault(FakeAdmin):
    """A cluster whose default level counts, too."""

    def broker_configs(self, broker_id: int, keys=None) -> BrokerConfigs:
        own = super().broker_configs(broker_id).broker
        return BrokerConfigs(own, dict(self.configs.get(EVERY_BROKER, {})))


def throttled_cluster() -> WithDefault:
    cluster = WithDefault({TopicPartition("t", 0): (1,), TopicPartition("control", 0): (1,)})
    cluster.configs = {
        ONE: {LEADER_RATE: "10", "log.cleaner.threads": "2"},
        EVERY_BROKER: {FOLLOWER_RATE: "20"},
        TOPIC: {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2", "retention.ms": "5"},
    }
    return cluster
