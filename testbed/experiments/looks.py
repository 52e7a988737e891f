"""What is looked at regularly while data moves, beside what the hosts tell of themselves."""

from collections.abc import Mapping, Sequence

from results.schema import Sample
from testbed.experiments.scene import Scene
from testbed.kafka.types import AdminApi
from testbed.probes.recorder import Recorder, now_us
from testbed.reassignment.changes import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, RATES
from testbed.reassignment.lag import unlisted_replicas

DRIVER = "driver"


_KEYS = {"leader": (LEADER_RATE, LEADER_REPLICAS), "follower": (FOLLOWER_RATE, FOLLOWER_REPLICAS)}


def quota_samples(admin: AdminApi, host: str, broker: int, lists: Mapping[str, Mapping[str, str]]) -> list[Sample]:
    """Which quota a broker has in force (-1: none), and how many replicas of `lists` its lists lack, as it says itself.

    `lists` are those of the throttle: topic → key → value. A sample's time is when it was asked for.
    """
    asked, configs = now_us(), admin.broker_configs(broker, RATES)
    there = admin.topics_configs(sorted(lists), [key for _rate, key in _KEYS.values()], broker) if lists else {}
    found = []
    for side, (rate_key, list_key) in _KEYS.items():
        rate = configs.in_force(rate_key)
        lacking = sum(
            unlisted_replicas(keys.get(list_key), there.get(topic, {}).get(list_key)) for topic, keys in lists.items()
        )
        found.append(Sample(asked, host, f"quota.{side}.rate", -1.0 if rate is None else float(rate)))
        found.append(Sample(asked, host, f"quota.{side}.unlisted", float(lacking)))
    return found


def isr_samples(admin: AdminApi, topics: Sequence[str]) -> list[Sample]:
    """How many replicas of each partition are in sync."""
    asked, states = now_us(), admin.partitions(topics)
    return [
        Sample(asked, DRIVER, "isr.size", float(len(state.isr)), tp.topic, tp.partition) for tp, state in states.items()
    ]


def lag_samples(recorder: Recorder, scene: Scene) -> list[Sample]:
    """Σ (leader's log end offset − adding replica's) over the listed partitions, in records, as sampled last."""
    total = 0.0
    for group in scene.listed:
        for tp in group.tps() if group.adding else ():
            where = tp.topic, tp.partition
            ends = [recorder.latest(host, "log.end_offset", *where) for host in group.current]
            leader = max((end for end in ends if end is not None), default=0.0)
            for host in group.adding:
                # Once the old replica is gone the adding one is the leader, and lags behind nobody.
                total += max(0.0, leader - (recorder.latest(host, "log.end_offset", *where) or 0.0))
    return [Sample(now_us(), DRIVER, "move.lag", total)]
