"""Partition layouts: groups of partitions with their hosts before and after a move, the leader first. Pure.

A layout contains no time, throttle rate or cluster. From a layout these functions derive the records written before
the move, the reassignment plan, the flows between brokers, and the bytes for each broker's quota.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from results.contract.move import Expected, Fetchers, Flow, FlowKind
from testbed.kafka.types import PartitionState, TopicPartition
from testbed.reassignment.plan import Plan, kip73_move_seconds, move_ratio
from testbed.throttle.duration import Copy, Share, shares
from testbed.workload.records import Fill, Recipe

RECORD_BYTES = 4096
"""Size in bytes of a record that is written before the move."""


@dataclass(frozen=True, slots=True)
class PartitionGroup:
    """Partitions of one topic with the same replicas.

    `current` are the hosts of the replicas when the move starts, the leader first; `target` are the hosts afterwards,
    in order. A host in `empty` has replicas without data. `bytes` are written before the move, `inbound_bytes_per_s`
    during the move; both count the whole group.
    """

    topic: str
    partitions: range
    current: tuple[str, ...]
    target: tuple[str, ...]
    bytes: int = 0
    inbound_bytes_per_s: float = 0.0
    empty: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, hosts in (("current", self.current), ("target", self.target)):
            if not hosts or len(set(hosts)) < len(hosts):
                raise ValueError(f"group of {self.topic}: {name} is {list(hosts)}; must be one host or more, each once")
        if self.current[0] in self.empty:
            raise ValueError(f"group of {self.topic}: its leader {self.current[0]} is empty")

    @property
    def leader(self) -> str:
        """Return the leading host, from which followers copy."""
        return self.current[0]

    @property
    def adding(self) -> tuple[str, ...]:
        """Return the hosts that need all data."""
        return (*(host for host in self.target if host not in self.current), *self.empty)

    @property
    def in_sync(self) -> tuple[str, ...]:
        """Return the followers in sync."""
        return tuple(host for host in self.current[1:] if host not in self.empty)

    @property
    def moves(self) -> bool:
        """Return whether the replicas change."""
        return self.current != self.target

    def tps(self) -> list[TopicPartition]:
        """Return the group's partitions."""
        return [TopicPartition(self.topic, partition) for partition in self.partitions]


@dataclass(frozen=True, slots=True)
class Layout:
    """The throttled groups, the unthrottled control that moves with them, and the calibration transfer before the move.

    With `wildcard` the throttle lists every replica of the throttled topics, not only the moving replicas. `min_insync`
    is `min.insync.replicas` of the throttled topics. In a move without a throttle `throttled` are the measured groups.
    """

    throttled: tuple[PartitionGroup, ...]
    calibration: PartitionGroup
    control: PartitionGroup | None = None
    wildcard: bool = False
    min_insync: int = 1

    def named(self, token: str) -> "Layout":
        """Return the layout with the topic names of one run: each name ends with `token`."""

        def suffix(group: PartitionGroup) -> PartitionGroup:
            return replace(group, topic=f"{group.topic}-{token}")

        control = None if self.control is None else suffix(self.control)
        return replace(
            self, throttled=tuple(map(suffix, self.throttled)), calibration=suffix(self.calibration), control=control
        )

    def sized(self, total_bytes: int) -> "Layout":
        """Return the layout with `total_bytes` in the groups that need copying, in their present proportion."""
        whole = sum(group.bytes for group in self.throttled if group.adding)
        groups = (
            replace(group, bytes=group.bytes * total_bytes // whole) if group.adding else group
            for group in self.throttled
        )
        return replace(self, throttled=tuple(groups))

    @property
    def groups(self) -> tuple[PartitionGroup, ...]:
        """Return all groups, in the order in which they are written."""
        return (*self.throttled, *((self.control,) if self.control else ()), self.calibration)

    @property
    def hosts(self) -> list[str]:
        """Return all hosts that have replicas before or after the move, by name."""
        return sorted({host for group in self.groups for host in (*group.current, *group.target)})

    @property
    def topics(self) -> tuple[str, ...]:
        """Return all topics."""
        return tuple(dict.fromkeys(group.topic for group in self.groups))

    @property
    def throttled_topics(self) -> tuple[str, ...]:
        """Return the topics of the throttled groups."""
        return tuple(dict.fromkeys(group.topic for group in self.throttled))

    @property
    def partitions(self) -> int:
        """Number of throttled partitions that need copying."""
        return sum(len(group.partitions) for group in self.throttled if group.adding)

    @property
    def inbound_bytes_per_s(self) -> float:
        """Inbound rate of all throttled groups."""
        return sum(group.inbound_bytes_per_s for group in self.throttled)

    @property
    def moving(self) -> tuple[PartitionGroup, ...]:
        """Return the groups of the reassignment plan: throttled groups that move, and the control."""
        return tuple(group for group in self.groups if group.moves and group is not self.calibration)


def most_replicas(layout: Layout) -> int:
    """Return the most replicas that any one broker has before or after the move, in all topics of the layout."""
    found: Counter[str] = Counter()
    for group in layout.groups:
        found.update(dict.fromkeys({*group.current, *group.target}, len(group.partitions)))
    return max(found.values(), default=0)


def stored_bytes(layout: Layout) -> int:
    """Return the bytes of all replicas together while partitions move, without what clients write meanwhile."""
    return sum(group.bytes * len({*group.current, *group.target}) for group in layout.groups)


def assignment(groups: Iterable[PartitionGroup], ids: Mapping[str, int]) -> dict[str, dict[int, list[int]]]:
    """Return topic → partition → broker ids, the leader first, for the topics' creation. `ids`: host → broker id."""
    found: dict[str, dict[int, list[int]]] = {}
    for group in groups:
        brokers = [ids[host] for host in group.current]
        found.setdefault(group.topic, {}).update(dict.fromkeys(group.partitions, brokers))
    return found


def fills(groups: Iterable[PartitionGroup], seed: int) -> tuple[Fill, ...]:
    """Return the records written before the move; the same seed gives the same bytes."""
    return tuple(
        Fill(
            group.topic,
            group.partitions,
            -(-group.bytes // (len(group.partitions) * RECORD_BYTES)),
            Recipe(RECORD_BYTES, seed + number),
        )
        for number, group in enumerate(groups)
        if group.bytes
    )


def plan(groups: Iterable[PartitionGroup], ids: Mapping[str, int]) -> Plan:
    """Return the reassignment plan of `groups`."""
    return Plan({tp: tuple(ids[host] for host in group.target) for group in groups for tp in group.tps()})


def misplaced(
    groups: Iterable[PartitionGroup], states: Mapping[TopicPartition, PartitionState], ids: Mapping[str, int]
) -> list[str]:
    """Return a line for each partition whose replicas, leader or ISR differ from the layout."""
    wrong = []
    for group in groups:
        replicas = tuple(ids[host] for host in group.current)
        in_sync = {ids[host] for host in (group.leader, *group.in_sync)}
        for tp in group.tps():
            state = states.get(tp)
            if state is None:
                wrong.append(f"{tp}: does not exist")
            elif (state.leader, state.replicas, set(state.isr)) != (replicas[0], replicas, in_sync):
                expected = f"{replicas[0]} alone" if len(replicas) == 1 else f"{replicas[0]} of {list(replicas)}"
                in_step = "" if len(replicas) == 1 else f", {sorted(in_sync)} in sync"
                wrong.append(
                    f"{tp}: leader {state.leader}, replicas {list(state.replicas)}, ISR {sorted(state.isr)}; "
                    f"expected {expected}{in_step}"
                )
    return wrong


Placements = Mapping[tuple[TopicPartition, str], frozenset[int]]
"""Partition and its topic's id → the brokers that have a replica."""


def moved_besides(before: Placements, after: Placements, planned: Collection[TopicPartition]) -> list[str]:
    """Return a line for each partition outside of the plan that has other replicas than before. Pure.

    A partition of a topic that was created or deleted meanwhile has none.
    """
    return [
        f"{tp} has replicas on {sorted(after[tp, topic])}, before on {sorted(replicas)}"
        for (tp, topic), replicas in sorted(before.items())
        if tp not in planned and after.get((tp, topic), replicas) != replicas
    ]


def flows(layout: Layout) -> tuple[Flow, ...]:
    """Return the flows from leader to follower, with the kind that says whether a quota records them."""
    kinds: list[tuple[FlowKind, PartitionGroup, Sequence[str]]] = []
    for group in layout.throttled:
        kinds.append(("throttled", group, group.adding))
        if _recorded(layout, group):
            kinds.append(("in_sync", group, group.in_sync))
    if layout.control is not None:
        kinds.append(("control", layout.control, layout.control.adding))
    kinds.append(("calibration", layout.calibration, layout.calibration.adding))
    return tuple(
        Flow(kind, group.topic, tuple(group.partitions), group.leader, follower)
        for kind, group, followers in kinds
        for follower in followers
    )


def _recorded(layout: Layout, group: PartitionGroup) -> bool:
    """Return whether the leader's quota records in-sync traffic: the throttle lists these partitions on the leader."""
    return layout.wildcard or group.moves


def fetchers(layout: Layout, threads: Mapping[str, int]) -> dict[str, Fetchers]:
    """Return host → fetcher threads that carry throttled bytes; a follower has its `threads` towards each leader.

    A leader counts the threads of every follower that fetches throttled partitions, in sync or not. A follower's own
    quota records the partitions that the throttle lists on the follower.
    """
    sends: set[tuple[str, str]] = set()
    receives: set[tuple[str, str]] = set()
    for flow in flows(layout):
        if flow.kind in ("throttled", "in_sync"):
            sends.add((flow.leader, flow.follower))
        if flow.kind == "throttled" or (flow.kind == "in_sync" and layout.wildcard):
            receives.add((flow.leader, flow.follower))
    hosts = dict.fromkeys(host for pair in sorted(sends | receives) for host in pair)
    return {
        host: Fetchers(
            transmit=sum(threads[follower] for leader, follower in sends if leader == host),
            receive=threads[host] * sum(follower == host for _leader, follower in receives),
        )
        for host in hosts
    }


def carried(
    layout: Layout,
    ids: Mapping[str, int],
    sizes: Mapping[TopicPartition, int] | None = None,
    inbound: Mapping[TopicPartition, float] | None = None,
) -> tuple[Share, ...]:
    """Return the bytes that each broker has to carry in each direction for the throttled partitions.

    `sizes` are the leaders' logs when the move starts, `inbound` the measured inbound rates. Without them the declared
    values count.
    """
    return shares(
        Copy(
            tp,
            ids[group.leader],
            tuple(ids[host] for host in group.in_sync) if _recorded(layout, group) else (),
            tuple(ids[host] for host in group.adding),
            group.bytes // len(group.partitions) if sizes is None else sizes.get(tp, 0),
            group.inbound_bytes_per_s / len(group.partitions) if inbound is None else inbound.get(tp, 0.0),
            tuple(ids[host] for host in group.in_sync) if layout.wildcard else (),
        )
        for group in layout.throttled
        for tp in group.tps()
    )


def expected(carried: Sequence[Share], ids: Mapping[str, int]) -> tuple[Expected, ...]:
    """Return the model's shares by host."""
    hosts = {broker: host for host, broker in ids.items()}
    return tuple(
        Expected(hosts[share.broker], share.direction, share.bytes, share.inbound_bytes_per_s) for share in carried
    )


@dataclass(frozen=True, slots=True)
class Kip73Estimate:
    """KIP-73's estimate and its inputs, for the throttled topics alone."""

    total_log_bytes: int
    move_ratio: float
    max_bytes_in_per_s: float
    seconds: float


def kip73_estimate(
    layout: Layout,
    throttle_bytes_per_s: float,
    sizes: Mapping[TopicPartition, int],
    inbound: Mapping[TopicPartition, float],
) -> Kip73Estimate:
    """Return KIP-73's MoveTime, to the letter: MoveRatio × TotalLogSizePerBroker × #Brokers ÷ (throttle −
    max(BytesInPerSec)).

    TotalLogSizePerBroker × #Brokers is the size of all replicas; MoveRatio counts partitions. The result is infinite
    when the throttle does not exceed the highest inbound rate of a broker.
    """
    total, bytes_in, partitions = 0, dict.fromkeys((group.leader for group in layout.throttled), 0.0), 0
    for group in layout.throttled:
        tps = group.tps()
        partitions += len(tps)
        replicas = len(group.current) - len(group.empty)
        total += replicas * sum(sizes.get(tp, 0) for tp in tps)
        bytes_in[group.leader] += sum(inbound.get(tp, 0.0) for tp in tps)
    ratio = move_ratio(layout.partitions, partitions)
    highest = max(bytes_in.values())
    return Kip73Estimate(total, ratio, highest, kip73_move_seconds(ratio, total, 1, throttle_bytes_per_s, highest))
