"""Which replication quota a broker has in force, and for which replicas, as it says itself."""

from collections.abc import Mapping

from results.contract.schema import Sample
from testbed.kafka.types import AdminApi
from testbed.probes.recorder import now_us
from testbed.reassignment.changes import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, RATES
from testbed.reassignment.lag import unlisted_replicas

Lists = Mapping[str, Mapping[str, str]]
"""Topic → key → value, as a throttle has them."""
_KEYS = {"leader": (LEADER_RATE, LEADER_REPLICAS), "follower": (FOLLOWER_RATE, FOLLOWER_REPLICAS)}


def quota_samples(admin: AdminApi, host: str, broker: int, lists: Lists | None = None) -> list[Sample]:
    """Which quota a broker has in force (-1: none), and how many replicas of `lists` its lists lack, as it says itself.

    Without `lists` only the quota. A sample's time is when it was asked for. Raises `KafkaError`.
    """
    asked, configs = now_us(), admin.broker_configs(broker, RATES)
    there = admin.topics_configs(sorted(lists), [key for _rate, key in _KEYS.values()], broker) if lists else {}
    found = []
    for side, (rate_key, list_key) in _KEYS.items():
        rate = configs.in_force(rate_key)
        found.append(Sample(asked, host, f"quota.{side}.rate", -1.0 if rate is None else float(rate)))
        if lists is None:
            continue
        lacking = sum(
            unlisted_replicas(keys.get(list_key), there.get(topic, {}).get(list_key)) for topic, keys in lists.items()
        )
        found.append(Sample(asked, host, f"quota.{side}.unlisted", float(lacking)))
    return found
