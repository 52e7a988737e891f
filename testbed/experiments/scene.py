"""What lies where and what moves: groups of partitions with their hosts, the leader first. Pure.

A scene says nothing of time, throttles' rates or the cluster. From it come what is written before the move, the plan,
who copies from whom, and what each broker's quota has to carry.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from results.contract.move import Expected, Fetchers, Flow, FlowKind
from testbed.kafka.types import PartitionState, TopicPartition
from testbed.reassignment.plan import Plan, kip73_move_seconds, move_ratio
from testbed.throttle.duration import Copy, Share
from testbed.workload.records import Fill, Recipe

RECORD_BYTES = 4096
"""Of a record that is written before the move."""


@dataclass(frozen=True, slots=True)
class Group:
    """Partitions of one topic that are alike.

    `current` are the hosts of their replicas when the move starts, the leader first; `target` those afterwards, in
    that order. A host in `empty` has replicas, but nothing in them yet. `bytes` are written before the move,
    `inbound_bytes_per_s` while it goes on; both are of the whole group.
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
        """Who leads, and so who is copied from: not the replica that leaves, unless that is the leader."""
        return self.current[0]

    @property
    def adding(self) -> tuple[str, ...]:
        """Who has to be sent everything."""
        return (*(host for host in self.target if host not in self.current), *self.empty)

    @property
    def in_sync(self) -> tuple[str, ...]:
        """The followers that have everything, and keep up."""
        return tuple(host for host in self.current[1:] if host not in self.empty)

    @property
    def moves(self) -> bool:
        """Whether its replicas change."""
        return self.current != self.target

    def tps(self) -> list[TopicPartition]:
        """Its partitions."""
        return [TopicPartition(self.topic, partition) for partition in self.partitions]


@dataclass(frozen=True, slots=True)
class Scene:
    """The listed groups; *control*, which goes with them unlisted; *calibration*, which is copied before the move.

    With `wildcard` every replica of the listed groups' topics is listed, not only those that move. `min_insync` is the
    listed topics' `min.insync.replicas`.
    """

    listed: tuple[Group, ...]
    calibration: Group
    control: Group | None = None
    wildcard: bool = False
    min_insync: int = 1

    def named(self, token: str) -> "Scene":
        """The same with topics of their own for one run."""

        def suffix(group: Group) -> Group:
            return replace(group, topic=f"{group.topic}-{token}")

        control = None if self.control is None else suffix(self.control)
        return replace(
            self, listed=tuple(map(suffix, self.listed)), calibration=suffix(self.calibration), control=control
        )

    def sized(self, total_bytes: int) -> "Scene":
        """The same with `total_bytes` in the groups that have to be sent, in the shares that they have now."""
        whole = sum(group.bytes for group in self.listed if group.adding)
        groups = (
            replace(group, bytes=group.bytes * total_bytes // whole) if group.adding else group for group in self.listed
        )
        return replace(self, listed=tuple(groups))

    @property
    def groups(self) -> tuple[Group, ...]:
        """All of them, in the order in which they are written."""
        return (*self.listed, *((self.control,) if self.control else ()), self.calibration)

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics."""
        return tuple(dict.fromkeys(group.topic for group in self.groups))

    @property
    def listed_topics(self) -> tuple[str, ...]:
        """The topics of the listed groups."""
        return tuple(dict.fromkeys(group.topic for group in self.listed))

    @property
    def partitions(self) -> int:
        """How many listed partitions have to be sent."""
        return sum(len(group.partitions) for group in self.listed if group.adding)

    @property
    def moving(self) -> tuple[Group, ...]:
        """The groups of the plan: what is listed and moves, and the control."""
        return tuple(group for group in self.groups if group.moves and group is not self.calibration)


def assignment(groups: Iterable[Group], ids: Mapping[str, int]) -> dict[str, dict[int, list[int]]]:
    """Topic → partition → broker ids, the leader first: how the topics are made. `ids`: host → broker id."""
    found: dict[str, dict[int, list[int]]] = {}
    for group in groups:
        brokers = [ids[host] for host in group.current]
        found.setdefault(group.topic, {}).update(dict.fromkeys(group.partitions, brokers))
    return found


def fills(groups: Iterable[Group], seed: int) -> tuple[Fill, ...]:
    """What is written before the move; the same seed gives the same bytes."""
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


def plan(groups: Iterable[Group], ids: Mapping[str, int]) -> Plan:
    """The reassignment of `groups`."""
    return Plan({tp: tuple(ids[host] for host in group.target) for group in groups for tp in group.tps()})


def misplaced(
    groups: Iterable[Group], states: Mapping[TopicPartition, PartitionState], ids: Mapping[str, int]
) -> list[str]:
    """Say which partitions do not lie, are not led, or are not in sync as the scene has them."""
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


def flows(scene: Scene) -> tuple[Flow, ...]:
    """Who copies what from whom, and whether a quota records it."""
    found = []
    for group in scene.listed:
        found += _flows("throttled", group, group.adding)
        if _recorded(scene, group):
            found += _flows("in_sync", group, group.in_sync)
    if scene.control is not None:
        found += _flows("control", scene.control, scene.control.adding)
    return (*found, *_flows("calibration", scene.calibration, scene.calibration.adding))


def _flows(kind: FlowKind, group: Group, followers: Iterable[str]) -> list[Flow]:
    return [Flow(kind, group.topic, tuple(group.partitions), group.leader, follower) for follower in followers]


def _recorded(scene: Scene, group: Group) -> bool:
    """Whether the leader's quota records what followers in sync fetch: their partitions are listed on its side."""
    return scene.wildcard or group.moves


def fetchers(scene: Scene, threads: int) -> dict[str, Fetchers]:
    """Host → fetcher threads that carry listed bytes through it; `threads` are one follower's towards one leader.

    A leader has those of every follower that fetches listed partitions, in sync or not. A follower's own quota
    records what it fetches of partitions that are listed on its side.
    """
    sends: set[tuple[str, str]] = set()
    receives: set[tuple[str, str]] = set()
    for flow in flows(scene):
        if flow.kind in ("throttled", "in_sync"):
            sends.add((flow.leader, flow.follower))
        if flow.kind == "throttled" or (flow.kind == "in_sync" and scene.wildcard):
            receives.add((flow.leader, flow.follower))
    hosts = dict.fromkeys(host for pair in sorted(sends | receives) for host in pair)
    return {
        host: Fetchers(
            transmit=threads * sum(leader == host for leader, _follower in sends),
            receive=threads * sum(follower == host for _leader, follower in receives),
        )
        for host in hosts
    }


def copies(
    scene: Scene,
    ids: Mapping[str, int],
    sizes: Mapping[TopicPartition, int] | None = None,
    inbound: Mapping[TopicPartition, float] | None = None,
) -> tuple[Copy, ...]:
    """What the listed partitions have to carry, for the model.

    `sizes` are the leaders' logs when the move starts, `inbound` what is really written meanwhile; where they are
    not known what was declared counts.
    """
    found = []
    for group in scene.listed:
        share = len(group.partitions)
        for tp in group.tps():
            found.append(
                Copy(
                    tp,
                    ids[group.leader],
                    tuple(ids[host] for host in group.in_sync) if _recorded(scene, group) else (),
                    tuple(ids[host] for host in group.adding),
                    group.bytes // share if sizes is None else sizes.get(tp, 0),
                    group.inbound_bytes_per_s / share if inbound is None else inbound.get(tp, 0.0),
                )
            )
    return tuple(found)


def expected(shares: Sequence[Share], ids: Mapping[str, int]) -> tuple[Expected, ...]:
    """The model's shares by host."""
    hosts = {broker: host for host, broker in ids.items()}
    return tuple(
        Expected(hosts[share.broker], share.direction, share.bytes, share.inbound_bytes_per_s) for share in shares
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """KIP-73's estimate and what goes into it, for the listed topics alone."""

    total_log_bytes: int
    move_ratio: float
    max_bytes_in_per_s: float
    seconds: float


def kip73(
    scene: Scene,
    quota_bytes_per_s: float,
    sizes: Mapping[TopicPartition, int],
    inbound: Mapping[TopicPartition, float],
) -> Estimate:
    """KIP-73's MoveTime, to the letter: MoveRatio × TotalLogSizePerBroker × #Brokers ÷ (quota − max(BytesInPerSec)).

    TotalLogSizePerBroker × #Brokers is the size of all replicas there are; MoveRatio is of partitions. The result
    is infinite when the quota does not exceed what the busiest broker is produced to.
    """
    total, bytes_in, partitions = 0, dict.fromkeys((group.leader for group in scene.listed), 0.0), 0
    for group in scene.listed:
        tps = group.tps()
        partitions += len(tps)
        replicas = len(group.current) - len(group.empty)
        total += replicas * sum(sizes.get(tp, 0) for tp in tps)
        bytes_in[group.leader] += sum(inbound.get(tp, 0.0) for tp in tps)
    ratio = move_ratio(scene.partitions, partitions)
    highest = max(bytes_in.values())
    return Estimate(total, ratio, highest, kip73_move_seconds(ratio, total, 1, quota_bytes_per_s, highest))
