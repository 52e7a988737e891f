"""A capture of a live cluster: its brokers, topics, sizes, rates, throttle and running reassignments. Read-only.

The number of requests does not depend on the number of partitions: some for the cluster, two for each broker and
reading of the logs, one for each broker's configuration.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from results.contract import durable
from testbed.errors import UsageError
from testbed.incidents.forms import TOPIC
from testbed.kafka.types import AdminApi, PartitionState, TopicPartition
from testbed.paths import state_dir
from testbed.reassignment.lag import LogSizes, growth, measure
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import FOLLOWER_RATE, LEADER_RATE, RATES

MOST_BROKERS, MOST_PARTITIONS = 1000, 200_000
KEPT_CONFIGS = ("min.insync.replicas", "segment.bytes", "retention.ms", "cleanup.policy", "compression.type")
"""Topic settings that a replay needs. No other value leaves the cluster."""
INTERNAL = "__"


@dataclass(frozen=True, slots=True)
class CapturedTopic:
    """One topic. Each tuple has one value for each partition; a target is None for a partition that does not move."""

    replicas: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...] | None, ...]
    size_bytes: tuple[int, ...]
    inbound_bytes_per_s: tuple[float, ...]
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def moves(self) -> bool:
        """Return whether a partition moves."""
        return any(target is not None for target in self.targets)


@dataclass(frozen=True, slots=True)
class CapturedCluster:
    """A cluster at one time. `brokers` maps a broker to its rack or None; `throttle_bytes_per_s` is the lowest rate."""

    brokers: Mapping[int, str | None]
    topics: Mapping[str, CapturedTopic]
    throttle_bytes_per_s: int | None
    notes: tuple[str, ...] = ()
    """What the capture left out or changed, in sentences."""


def capture(
    admin: AdminApi, *, plan: Plan | None = None, measure_s: float = 10.0, topics: Sequence[str] = ()
) -> CapturedCluster:
    """Return the capture of a cluster: of these topics, or else of the moving ones, or of all when none moves.

    `plan` replaces the running reassignments. Raise `UsageError` for a topic that does not exist, or a cluster that is
    too large, and `KafkaError` when the cluster does not answer.
    """
    info = admin.cluster()
    listed = admin.reassignments()
    names = admin.topics()
    unknown = sorted({*topics, *(plan.topics() if plan else ())} - {*names})
    if unknown:
        raise UsageError(f"the cluster has no topic {', '.join(unknown)}")
    if internal := sorted(name for name in topics if name.startswith(INTERNAL)):
        raise UsageError(f"{', '.join(internal)}: an internal topic is not captured, because a replay makes its own")
    moving = {tp.topic for tp in (plan.targets if plan else listed)}
    wanted = [name for name in names if not name.startswith(INTERNAL) and name in ({*topics} or moving or {*names})]
    states = admin.partitions(wanted)
    if len(info.brokers) > MOST_BROKERS or len(states) > MOST_PARTITIONS:
        raise UsageError(f"{len(info.brokers)} brokers, {len(states)} partitions: name fewer topics with --topic")
    brokers = [broker.id for broker in info.brokers]
    readings = measure(admin, brokers, measure_s, 2, wanted)
    configs = admin.topics_configs(wanted, KEPT_CONFIGS)
    rates = [
        admin.broker_configs(broker, RATES).in_force(key) for broker in brokers for key in (LEADER_RATE, FOLLOWER_RATE)
    ]
    found: dict[str, CapturedTopic] = {}
    for name in wanted:
        tps = sorted(tp for tp in states if tp.topic == name)
        before = []
        targets: list[tuple[int, ...] | None] = []
        for tp in tps:
            running = listed.get(tp)
            adding = running.adding if running else ()
            before.append(_leader_first(states[tp], adding))
            if plan is not None:
                targets.append(plan.targets.get(tp))
            else:
                targets.append(running.target if running else None)
        found[name] = CapturedTopic(
            tuple(before),
            tuple(targets),
            tuple(_size(readings[-1], tp) for tp in tps),
            tuple(_inbound(readings, states[tp].leader, tp) for tp in tps),
            dict(configs.get(name, {})),
        )
    racks = {broker.id: broker.rack for broker in info.brokers}
    named = {
        broker for topic in found.values() for hosts in (*topic.replicas, *topic.targets) for broker in hosts or ()
    }
    dead = sorted(named - set(racks))
    notes = (f"brokers {dead} did not serve; the replay has them",) if dead else ()
    known = [int(rate) for rate in rates if rate is not None]
    return CapturedCluster({**racks, **dict.fromkeys(dead)}, found, min(known, default=None), notes)


def _leader_first(state: PartitionState, adding: Sequence[int]) -> tuple[int, ...]:
    """Return the replicas before the move. While it runs, their order is not known: the leader stands first."""
    before = tuple(broker for broker in state.replicas if broker not in adding)
    if not adding or state.leader not in before:
        return before
    return (state.leader, *(broker for broker in before if broker != state.leader))


def _size(sizes: LogSizes, tp: TopicPartition) -> int:
    return max((logs[tp] for logs in sizes.logs.values() if tp in logs), default=0)


def _inbound(readings: Sequence[LogSizes], leader: int | None, tp: TopicPartition) -> float:
    return 0.0 if leader is None else growth(readings, leader, tp)


def anonymised(cluster: CapturedCluster, key: bytes) -> CapturedCluster:
    """Return the cluster with other names of topics and racks; the same name and key always give the same name."""

    def other(kind: str, name: str) -> str:
        return f"{kind}-{hmac.new(key, f'{kind}:{name}'.encode(), hashlib.sha256).hexdigest()[:10]}"

    return replace(
        cluster,
        brokers={broker: None if rack is None else other("rack", rack) for broker, rack in cluster.brokers.items()},
        topics={other("topic", name): topic for name, topic in cluster.topics.items()},
    )


def usable_names(cluster: CapturedCluster, key: bytes) -> CapturedCluster:
    """Return the cluster with other names for the topics whose names a file of an incident may not have."""
    wrong = {name for name in cluster.topics if not re.fullmatch(TOPIC.strip("^$"), name)}
    if not wrong:
        return cluster
    renamed = anonymised(replace(cluster, topics={name: cluster.topics[name] for name in sorted(wrong)}), key)
    rest = {name: topic for name, topic in cluster.topics.items() if name not in wrong}
    note = f"{len(wrong)} topics have other names: a file may not have theirs"
    return replace(cluster, topics={**rest, **renamed.topics}, notes=(*cluster.notes, note))


def anonymising_key() -> bytes:
    """Return this machine's key, which is made once: captures of one machine use the same names."""
    path = state_dir() / "capture.key"
    with durable.lock(path.with_suffix(".lock")):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Whole or absent: with half a key the names could be guessed.
            durable.write(path, secrets.token_bytes(32), 0o600)
        return path.read_bytes()
