"""Scaling out and in: joining brokers receive their share of the partitions, and a leaving broker gives all away.

`scale-out`: the load doubles; C is provisioned, started and registered; A and B give it a third of their partitions.
`scale-in`: C gives all its partitions to A and B; then it is drained of internal topics, stopped, unregistered and
removed. Both measure each part of the time until every broker has its share, and until the latency of acknowledgements
is as before. With data on disk that time grows with the data; in S3 it does not.
"""

from collections.abc import Sequence

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


def leaving(layout: Layout) -> str:
    """Return the host that all moving partitions leave."""
    (host,) = {group.leader for group in layout.throttled if group.moves}
    return host


def blocks(partitions: range, hosts: Sequence[str]) -> dict[str, range]:
    """Return host → its range of the partitions; the first hosts have one more where the division has a remainder."""
    least, over = divmod(len(partitions), len(hosts))
    found, start = {}, 0
    for position, host in enumerate(hosts):
        stop = start + least + (position < over)
        found[host] = partitions[start:stop]
        start = stop
    return found


def joined(topic: str, partitions: range, present: Sequence[str], joining: Sequence[str]) -> list[PartitionGroup]:
    """Return the groups when brokers join: present brokers give their last partitions, to equal shares."""
    fair = blocks(partitions, [*present, *joining])
    found, spare = [], []
    for host, mine in blocks(partitions, present).items():
        keeps = mine[: len(fair[host])]
        found.append(PartitionGroup(topic, keeps, (host,), (host,)))
        spare.append((host, mine[len(keeps) :]))
    wanted = [(host, len(fair[host])) for host in joining]
    return found + [PartitionGroup(topic, part, (old,), (new,)) for old, new, part in _dealt(spare, wanted)]


def left(topic: str, partitions: range, staying: Sequence[str], leaving: Sequence[str]) -> list[PartitionGroup]:
    """Return the groups when brokers leave: they give all partitions to the others, in equal shares."""
    before, after = blocks(partitions, [*staying, *leaving]), blocks(partitions, staying)
    found = [PartitionGroup(topic, before[host], (host,), (host,)) for host in staying]
    wanted = [(host, len(after[host]) - len(before[host])) for host in staying]
    moved = _dealt([(host, before[host]) for host in leaving], wanted)
    return found + [PartitionGroup(topic, part, (old,), (new,)) for old, new, part in moved]


def shared_out(groups: Sequence[PartitionGroup], size_bytes: int, inbound_bytes_per_s: float) -> list[PartitionGroup]:
    """Return the groups with bytes and inbound rates in proportion to their partitions."""
    whole = sum(len(group.partitions) for group in groups)
    return [
        PartitionGroup(
            group.topic,
            group.partitions,
            group.current,
            group.target,
            size_bytes * len(group.partitions) // whole,
            inbound_bytes_per_s * len(group.partitions) / whole,
        )
        for group in groups
        if len(group.partitions)
    ]


def _dealt(given: Sequence[tuple[str, range]], wanted: Sequence[tuple[str, int]]) -> list[tuple[str, str, range]]:
    """Return (from, to, partitions): the given ranges, divided in order among the hosts by their wanted numbers."""
    found, lacking = [], dict(wanted)
    for old, part in given:
        start = 0
        for new, count in list(lacking.items()):
            taken = part[start : start + count]
            if len(taken):
                found.append((old, new, taken))
            lacking[new] -= len(taken)
            start += len(taken)
    return found


def scale_out_layout(settings: Settings, hosts: Hosts) -> Layout:
    """Return the layout: A and B give C a third of their partitions."""
    *present, joining = hosts
    return _layout(joined("scale", _partitions(settings), present, [joining]), settings, present[0], present[1])


def scale_in_layout(settings: Settings, hosts: Hosts) -> Layout:
    """Return the layout: C gives half of its partitions to A and half to B."""
    *staying, drained = hosts
    return _layout(left("scale", _partitions(settings), staying, [drained]), settings, drained, staying[0])


def _partitions(settings: Settings) -> range:
    return range(int(number(settings, "partitions")))


def _layout(groups: Sequence[PartitionGroup], settings: Settings, source: str, target: str) -> Layout:
    shared = shared_out(groups, int(number(settings, "size")), number(settings, "inbound"))
    return unthrottled_layout(shared, source, target)


_PROFILES = {"smoke": {"size": "150MB", "partitions": "6"}, "release": {"size": "3GB", "partitions": "120"}}


def _scenarios(name: str, order: int) -> tuple[SuiteScenario, ...]:
    return (
        *SuiteScenario("s3", ("ci",), name, order).over("storage", *STORAGES),
        *SuiteScenario("s3", ("release",), name, order, limit_s=1800.0).over("storage", *STORAGES),
    )


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
        leaves=leaving,
        balanced=True,
        after_s=BACK_S,
        profiles=_PROFILES,
        suites=_scenarios("scale-in", 4),
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
        balanced=True,
        after_s=BACK_S,
        load_rises=True,
        profiles=_PROFILES,
        suites=(
            SuiteScenario("s3", ("smoke",), "scale-out-tiered", 3, ("storage=tiered",)),
            *_scenarios("scale-out", 3),
        ),
        criteria=SCALED,
    ),
)
