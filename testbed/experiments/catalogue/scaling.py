"""Scaling out and in: joining brokers receive their share of the partitions, and a leaving broker gives all away.

`scale-out`: the load doubles; C is provisioned, started and registered; A and B give it a third of their partitions.
`scale-in`: C gives all its partitions to A and B; then it is drained of internal topics, stopped, unregistered and
removed. Both measure each part of the time until every broker has its share, and until the latency of acknowledgements
is as before. With data on disk that time grows with the data; in S3 it does not.
"""

from collections.abc import Sequence
from dataclasses import replace

from results.contract.relocation import STORAGES
from testbed.experiments.broker_membership import BrokerArrival, BrokerRemoval, LoadRise
from testbed.experiments.criteria import SCALED
from testbed.experiments.experiment import Hosts, Settings, SuiteScenario, number
from testbed.experiments.handover_timing import handover_timing
from testbed.experiments.layout import Layout, PartitionGroup
from testbed.experiments.unthrottled_move import parameters, unthrottled_experiment, unthrottled_layout

BACK_S = 25.0
"""Seconds for which the load runs before and after the move, to show that its latencies are as before, or are not:
four windows of 5 s, the first second and what still waits left out (`results.criteria.measures.P99_CHANCE`)."""


def blocks(partitions: range, hosts: Sequence[str]) -> dict[str, range]:
    """Return host → its range of the partitions; the first hosts have one more where the division has a remainder."""
    least, over = divmod(len(partitions), len(hosts))
    found, start = {}, 0
    for position, host in enumerate(hosts):
        stop = start + least + (position < over)
        found[host] = partitions[start:stop]
        start = stop
    return found


def balanced(topic: str, partitions: range, before: Sequence[str], after: Sequence[str]) -> list[PartitionGroup]:
    """Return the groups that give each host of `after` an equal share, when each of `before` has one.

    A host that has more than its share gives its last partitions away.
    """
    lacking = {host: len(part) for host, part in blocks(partitions, after).items()}
    found, spare = [], []
    for host, mine in blocks(partitions, before).items():
        stays = mine[: lacking.get(host, 0)]
        found.append(PartitionGroup(topic, stays, (host,), (host,)))
        spare.append((host, mine[len(stays) :]))
        lacking[host] = lacking.get(host, 0) - len(stays)
    for old, gives in spare:
        rest = gives
        for new, count in lacking.items():
            taken, rest = rest[:count], rest[count:]
            lacking[new] -= len(taken)
            found.append(PartitionGroup(topic, taken, (old,), (new,)))
    return found


def shared_out(groups: Sequence[PartitionGroup], size_bytes: int, inbound_bytes_per_s: float) -> list[PartitionGroup]:
    """Return the groups that have partitions, with bytes and inbound rates in proportion to them."""
    whole = sum(len(group.partitions) for group in groups)
    return [
        replace(
            group,
            bytes=size_bytes * len(group.partitions) // whole,
            inbound_bytes_per_s=inbound_bytes_per_s * len(group.partitions) / whole,
        )
        for group in groups
        if group.partitions
    ]


def scale_out_layout(settings: Settings, hosts: Hosts) -> Layout:
    """Return the layout: A and B give C a third of their partitions."""
    return _layout(settings, hosts[:-1], hosts, hosts[0], hosts[1])


def scale_in_layout(settings: Settings, hosts: Hosts) -> Layout:
    """Return the layout: C gives half of its partitions to A and half to B."""
    return _layout(settings, hosts, hosts[:-1], hosts[-1], hosts[0])


def _layout(settings: Settings, before: Hosts, after: Hosts, source: str, target: str) -> Layout:
    groups = balanced("scale", range(int(number(settings, "partitions"))), before, after)
    shared = shared_out(groups, int(number(settings, "size")), number(settings, "inbound"))
    return unthrottled_layout(shared, source, target)


_PROFILES = {"smoke": {"size": "150MB", "partitions": "6"}, "release": {"size": "3GB", "partitions": "120"}}

EXPERIMENTS = (
    unthrottled_experiment(
        "scale-in",
        "a broker is drained, unregistered and removed under load: until the others have its share, and p99 is back",
        brokers=3,
        topology="s3-three-brokers",
        automq_topology="automq-three-brokers",
        parameters=parameters(partitions="12"),
        layout=scale_in_layout,
        activities=lambda settings: [BrokerRemoval, *handover_timing(settings)],
        leaves=True,
        after_s=BACK_S,
        profiles=_PROFILES,
        suites=SuiteScenario("s3", ("ci", "release"), "scale-in", 4).over("storage", *STORAGES),
        criteria=SCALED,
    ),
    unthrottled_experiment(
        "scale-out",
        "the load rises, a broker is added and takes its share: until it serves, until balanced, and p99 is back",
        brokers=2,
        joining=1,
        topology="s3",
        automq_topology="automq",
        parameters=parameters(partitions="12"),
        layout=scale_out_layout,
        activities=lambda settings: [LoadRise, BrokerArrival, *handover_timing(settings)],
        after_s=BACK_S,
        profiles=_PROFILES,
        suites=(
            SuiteScenario("s3", ("smoke",), "scale-out-tiered", 3, ("storage=tiered",)),
            *SuiteScenario("s3", ("ci", "release"), "scale-out", 3).over("storage", *STORAGES),
        ),
        criteria=SCALED,
    ),
)
