"""A captured cluster made small enough for one machine. Pure.

Brokers are merged into fewer hosts. Two brokers that share a partition, before or after its move, are kept apart where
possible. Bytes shrink by one factor, rates by another, which is the NICs', too; so these stay: the skew of leaders and
replicas, the graph of the moves, throttle ÷ inbound of the cluster, NIC ÷ throttle, and the distribution of sizes. The
timeline shrinks as the copies of the busiest broker do: a merged broker copies what several did, at the rate of one.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

from results.contract.texts import counted
from testbed.incidents.capture import BrokerOutage, CapturedCluster, CapturedTopic, busiest_bytes

LEAST_IN_SYNC = "min.insync.replicas"
MOVE_WEIGHT = 10
"""A move that vanishes, since its brokers are merged, costs as much as this many lost replicas of the same size."""


def scale_down(cluster: CapturedCluster, brokers: int, most_bytes: int, rate_factor: float = 1.0) -> CapturedCluster:
    """Return the cluster on at most `brokers` brokers with at most `most_bytes` of records, each counted once.

    Its notes also say what it lost. Raise ValueError for fewer than one broker, or no byte, or a factor that is not
    above 0 and finite.
    """
    if brokers < 1 or most_bytes < 1 or not 0 < rate_factor < math.inf:
        raise ValueError(
            f"{brokers} brokers, {most_bytes} bytes, rates × {rate_factor}: each must be above 0, and finite"
        )
    whole = sum(sum(topic.size_bytes) for topic in cluster.topics.values())
    factor = min(1.0, most_bytes / whole) if whole else 1.0
    broker_of = merged_brokers(cluster, brokers)
    lost_replicas = lost_moves = partitions = lowered = 0
    topics: dict[str, CapturedTopic] = {}
    for name, topic in cluster.topics.items():
        replicas = tuple(_on(hosts, broker_of) for hosts in topic.replicas)
        targets = tuple(None if hosts is None else _on(hosts, broker_of) for hosts in topic.targets)
        for was, now, asked, target in zip(topic.replicas, replicas, topic.targets, targets, strict=True):
            partitions += 1
            lost_replicas += len(was) > len(now) or (asked is not None and len(asked) > len(target or ()))
            lost_moves += asked is not None and asked != was and target == now
        configs = _attainable(topic.configs, (*topic.replicas, *topic.targets), (*replicas, *targets))
        lowered += configs != topic.configs
        topics[name] = replace(
            topic,
            replicas=replicas,
            targets=tuple(None if to == now else to for to, now in zip(targets, replicas, strict=True)),
            size_bytes=tuple(int(size * factor) for size in topic.size_bytes),
            inbound_bytes_per_s=tuple(rate * rate_factor for rate in topic.inbound_bytes_per_s),
            configs=configs,
        )
    throttle = cluster.throttle_bytes_per_s
    before, after = busiest_bytes(cluster.topics.values()), busiest_bytes(topics.values())
    # The NIC's rate has this factor, too, and limits the copies without a throttle. No move may be left, only outages.
    time_factor = (after / before if before and after else factor) / rate_factor
    lost = [
        *cluster.notes,
        *([f"{lost_replicas} of {partitions} partitions: fewer replicas"] if lost_replicas else []),
        *([f"{counted(lowered, 'topic', 'has')} a lower {LEAST_IN_SYNC}, of fewer replicas"] if lowered else []),
        *([f"{counted(lost_moves, 'move', 'is')} within one broker now: not in the replay"] if lost_moves else []),
        *([f"sizes are × {factor:.3g}"] if factor < 1 else []),
        *([f"rates are × {rate_factor:.3g}"] if rate_factor != 1 else []),
        *([f"the moves take × {time_factor:.3g} of their time, by the busiest broker"] if time_factor != 1 else []),
    ]
    racks = {broker_of[broker]: rack for broker, rack in reversed(list(cluster.brokers.items()))}
    smaller = replace(
        cluster,
        brokers={broker: racks[broker] for broker in sorted(racks)},
        topics=topics,
        throttle_bytes_per_s=None if throttle is None else max(1, round(throttle * rate_factor)),
    )
    if cluster.outages or any(topic.last_s for topic in cluster.topics.values()):
        smaller = replace(smaller, outages=merged_outages(cluster.outages, broker_of)).in_time(time_factor)
        hosts = Counter(broker_of.values())
        if larger := sum(hosts[each.broker] > 1 for each in smaller.outages):
            lost.append(f"{larger} outages stop more than before: other brokers are merged into the one that stops")
        if time_factor != 1:
            lost.append(f"the timeline is × {time_factor:.3g}, as the moves are")
    return replace(smaller, notes=tuple(lost))


def merged_outages(
    outages: Iterable[BrokerOutage], broker_of: Mapping[int, int], apart_s: float = 0.0
) -> tuple[BrokerOutage, ...]:
    """Return the outages of the fewer brokers. Two on one broker are one if no more than `apart_s` lies between."""
    ended: list[BrokerOutage] = []
    last: dict[int, BrokerOutage] = {}
    for each in sorted(outages, key=lambda outage: outage.stopped_s):
        broker = broker_of[each.broker]
        here = replace(each, broker=broker)
        before = last.get(broker)
        if before is not None and (before.returned_s is None or each.stopped_s <= before.returned_s + apart_s):
            ends = (before.returned_s, each.returned_s)
            here = replace(before, returned_s=None if None in ends else max(end for end in ends if end is not None))
        elif before is not None:
            ended.append(before)
        last[broker] = here
    return tuple(sorted([*ended, *last.values()], key=lambda outage: (outage.stopped_s, outage.broker)))


def _attainable(
    configs: Mapping[str, str], before: Iterable[Sequence[int] | None], now: Iterable[Sequence[int] | None]
) -> Mapping[str, str]:
    """Return the settings; `min.insync.replicas` is lowered where the fewer replicas cannot reach it any more."""
    fewest_before, fewest_now = (min(len(hosts) for hosts in placed if hosts is not None) for placed in (before, now))
    wanted = int(configs.get(LEAST_IN_SYNC, "1"))
    return {**configs, LEAST_IN_SYNC: str(fewest_now)} if fewest_now < wanted <= fewest_before else configs


def _on(hosts: Iterable[int], broker_of: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(broker_of[broker] for broker in hosts))


def merged_brokers(cluster: CapturedCluster, most: int) -> dict[int, int]:
    """Return the broker that each one becomes. The heaviest goes first, to where it collides least."""
    weight: Counter[int] = Counter(dict.fromkeys(cluster.brokers, 0))
    together: Counter[tuple[int, int]] = Counter()
    for topic in cluster.topics.values():
        for hosts, target, size in zip(topic.replicas, topic.targets, topic.size_bytes, strict=True):
            for broker in hosts:
                weight[broker] += size + 1
            after = hosts if target is None else target
            for placed in (hosts, () if target is None else target):
                for pair in combinations(sorted(placed), 2):
                    together[pair] += size + 1
            for old, new in product({*hosts} - {*after}, {*after} - {*hosts}):
                together[min(old, new), max(old, new)] += MOVE_WEIGHT * (size + 1)
    groups: list[list[int]] = [[] for _ in range(min(most, len(weight)))]
    for broker in sorted(weight, key=lambda each: (-weight[each], each)):

        def cost(group: list[int], broker: int = broker) -> tuple[int, int, int]:
            collisions = sum(together[min(broker, other), max(broker, other)] for other in group)
            return collisions, sum(weight[other] for other in group), len(group)

        min(groups, key=cost).append(broker)
    return {broker: min(group) for group in groups for broker in group}
