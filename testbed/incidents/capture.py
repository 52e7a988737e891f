"""A capture of a live cluster: its brokers, topics, sizes, rates, throttle and running reassignments. Read-only.

The number of requests does not depend on the number of partitions: some for the cluster, two for each broker and
reading of the logs, one for each broker's configuration.
"""

import hashlib
import hmac
import re
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from results.contract import durable
from results.contract.texts import counted, plural, shortened
from results.criteria.throttle_bound import listed as list_names
from testbed.errors import TestbedError, UsageError
from testbed.incidents.captured_release import LINE_OF_LEVEL
from testbed.incidents.forms import TOPIC
from testbed.kafka.admin import Admin
from testbed.kafka.errors import UNSUPPORTED_VERSION, KafkaError, TopicConfigsError, UnreachableError
from testbed.kafka.types import PartitionState, Reassignment, TopicPartition, is_internal
from testbed.paths import state_dir
from testbed.reassignment.lag import growth, measure
from testbed.reassignment.plan import Plan
from testbed.software.format import METADATA
from testbed.throttle.configs import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, LISTS, RATES

MOST_BROKERS, MOST_PARTITIONS = 1000, 200_000
KEPT_CONFIGS = ("min.insync.replicas", "segment.bytes", "retention.ms", "cleanup.policy", "compression.type")
"""Topic settings that a replay needs. No other value leaves the cluster."""
TIERED = "remote.storage.enable"
UNREAD: Mapping[str, str] = MappingProxyType({})
"""Settings of a topic that could not be read."""
UNLIMITED = 10**12
"""B/s. So high a rate limits nothing: Kafka's own default is 2**63 - 1."""
_SHOWN = 10
"""Names in a message."""


@dataclass(frozen=True, slots=True)
class CapturedTopic:
    """One topic. Each tuple has one value for each partition; a target is None for a partition that does not move.

    Its move begins `begins_s` seconds after the first move of the cluster, and is cancelled `cancelled_s` seconds after
    it (None: not).
    """

    replicas: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...] | None, ...]
    size_bytes: tuple[int, ...]
    inbound_bytes_per_s: tuple[float, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    begins_s: float = 0.0
    throttled: bool = True
    """Whether lists name its moving replicas: without them a rate does not hold its move back."""
    cancelled_s: float | None = None

    @property
    def last_s(self) -> float:
        """Return the time of the last event of its move: the cancellation, or else the beginning."""
        return self.begins_s if self.cancelled_s is None else self.cancelled_s

    def in_time(self, factor: float) -> "CapturedTopic":
        """Return the topic with its move at `factor` times its seconds."""
        cancelled_s = None if self.cancelled_s is None else self.cancelled_s * factor
        return replace(self, begins_s=self.begins_s * factor, cancelled_s=cancelled_s)

    @property
    def moves(self) -> bool:
        """Return whether a partition moves."""
        return any(target is not None for target in self.targets)


@dataclass(frozen=True, slots=True)
class BrokerOutage:
    """A broker that stopped, in seconds after the first move began; it returned then, or not (None).

    Of one that stopped before, the sign of `stopped_s` alone counts.
    """

    broker: int
    stopped_s: float
    returned_s: float | None

    def in_time(self, factor: float) -> "BrokerOutage":
        """Return the outage at `factor` times its seconds."""
        returned_s = None if self.returned_s is None else self.returned_s * factor
        return BrokerOutage(self.broker, self.stopped_s * factor, returned_s)


@dataclass(frozen=True, slots=True)
class CapturedCluster:
    """A cluster at one time. `brokers` maps a broker to its rack or None; `throttle_bytes_per_s` is the lowest rate."""

    brokers: Mapping[int, str | None]
    topics: Mapping[str, CapturedTopic]
    throttle_bytes_per_s: int | None
    notes: tuple[str, ...] = ()
    """What the capture left out or changed, in sentences."""
    outages: tuple[BrokerOutage, ...] = ()
    releases: tuple[str, ...] = ()
    """The releases of its brokers, such as `4.1.1`, or `4.1` where the last number is not known."""

    def in_time(self, factor: float) -> "CapturedCluster":
        """Return the cluster with its moves and the outages at `factor` times their seconds."""
        topics = {name: topic.in_time(factor) for name, topic in self.topics.items()}
        outages = tuple(each.in_time(factor) for each in self.outages)
        return replace(self, topics=topics, outages=outages)


def capture(
    admin: Admin, *, plan: Plan | None = None, measure_s: float = 10.0, topics: Sequence[str] = ()
) -> CapturedCluster:
    """Return the capture of a cluster: of these topics, or else of the moving ones, or of all when none moves.

    `plan` replaces the running reassignments. Raise `UsageError` for a topic that does not exist, a cluster that is
    too large, or moves none of which is captured, and `KafkaError` when the cluster does not answer.
    """
    racks = {broker.id: broker.rack for broker in admin.brokers()}
    brokers = sorted(racks)
    running = _running(admin)
    names = admin.topics()
    unknown = sorted({*topics, *(plan.topics() if plan else ())} - {*names})
    if unknown:
        raise UsageError(f"the cluster has no topic {', '.join(unknown)}, or this user may not see it")
    refuse_internal(topics)
    asked = running.keys() if plan is None else plan.targets.keys()
    chosen = {*topics} or {tp.topic for tp in asked} or {*names}
    wanted = [name for name in names if not is_internal(name) and name in chosen]
    states = admin.partitions(wanted)
    refuse_large(len(brokers), len(states))
    notes = [] if plan is None else _check_plan(plan, states, wanted)
    notes += left_out(asked, wanted)
    problems: dict[int, KafkaError] = {}
    readings = measure(admin, brokers, measure_s, 2, wanted, problems=problems)
    silent = {broker for broker, error in problems.items() if isinstance(error, UnreachableError)}
    if silent:
        notes.append(f"brokers {sorted(silent)} did not answer; sizes and rates are those of the others")
    if offline := problems.keys() - silent:
        notes.append(f"brokers {sorted(offline)} have log dirs with an error; the replay has them whole")
    configs = _topic_configs(admin, wanted, notes)
    throttle = lowest_rate(_rates(admin, [broker for broker in brokers if broker not in silent], notes), notes)
    partitions: dict[str, list[TopicPartition]] = {name: [] for name in wanted}
    for tp in sorted(states):
        partitions[tp.topic].append(tp)
    found: dict[str, CapturedTopic] = {}
    for name, tps in partitions.items():
        before = tuple(replicas_before(states[tp], running.get(tp)) for tp in tps)
        found[name] = CapturedTopic(
            before,
            tuple(_target(was, tp, running.get(tp), plan) for tp, was in zip(tps, before, strict=True)),
            tuple(max((logs[tp] for logs in readings[-1].logs.values() if tp in logs), default=0) for tp in tps),
            tuple(0.0 if (leader := states[tp].leader) is None else growth(readings, leader, tp) for tp in tps),
            {key: value for key, value in configs.get(name, {}).items() if key in KEPT_CONFIGS},
        )
    if throttle is not None and plan is None:
        found |= listed_only(found, configs, notes)
    if plan is not None and not any(topic.moves for topic in found.values()):
        raise UsageError("the plan changes nothing: its partitions have these replicas already; give another plan")
    named = {
        broker for topic in found.values() for hosts in (*topic.replicas, *topic.targets) for broker in hosts or ()
    }
    if dead := sorted(named - set(racks)):
        notes.append(f"brokers {dead} did not serve; the replay stops them before the first move")
    if lost := sum(all(tp not in logs for logs in readings[-1].logs.values()) for tp in states):
        notes.append(f"{counted(lost, 'partition', 'has')} no replica on a broker that served: empty in the replay")
    outages = tuple(BrokerOutage(broker, -1.0, None) for broker in dead)
    all_brokers = {**racks, **dict.fromkeys(dead)}
    return CapturedCluster(all_brokers, found, throttle, tuple(notes), outages, _releases(admin))


def _running(admin: Admin) -> dict[TopicPartition, Reassignment]:
    try:
        return admin.reassignments()
    except KafkaError as error:
        if error.name != UNSUPPORTED_VERSION:
            raise
        text = "brokers before Kafka 2.4 do not list reassignments; capture from files of the cluster with --from"
        raise TestbedError(f"{error}: {text}") from error


def _releases(admin: Admin) -> tuple[str, ...]:
    """Return the release of the broker that answers, by what it knows; none when that is not known here."""
    try:
        level = admin.supported_features().get(METADATA)
    except KafkaError:
        return ()
    return (LINE_OF_LEVEL[level],) if level in LINE_OF_LEVEL else ()


def _topic_configs(admin: Admin, wanted: Sequence[str], notes: list[str]) -> Mapping[str, Mapping[str, str]]:
    """Return the settings of topics that a capture reads, without those that it may not read."""
    try:
        found: Mapping[str, Mapping[str, str]] = admin.topics_configs(wanted, (*KEPT_CONFIGS, *LISTS, TIERED))
    except TopicConfigsError as error:
        found = {**error.found, **dict.fromkeys(error.refused, UNREAD)}
        notes.append(
            f"the settings of {plural(len(error.refused), 'topic')} could not be read ({error.name}), and the replay "
            "has Kafka's defaults: a user with DescribeConfigs on them sees it"
        )
    if tiered := sum(each.get(TIERED) == "true" for each in found.values()):
        notes.append(f"{counted(tiered, 'topic', 'is')} tiered; the replay has the records in local logs alone")
    return found


def _rates(admin: Admin, brokers: Sequence[int], notes: list[str]) -> list[str | None]:
    """Return both rates in force on each broker that answers."""
    rates: list[str | None] = []
    unread: dict[int, str] = {}
    for broker in brokers:
        try:
            configs = admin.broker_configs(broker, RATES)
        except KafkaError as error:
            unread[broker] = error.name
        else:
            rates += [configs.in_force(LEADER_RATE), configs.in_force(FOLLOWER_RATE)]
    if unread:
        notes.append(
            f"the rates of brokers {sorted(unread)} could not be read ({', '.join(sorted({*unread.values()}))}): a "
            "user with DescribeConfigs on the cluster sees it"
        )
    return rates


def listed_only(
    topics: Mapping[str, CapturedTopic], configs: Mapping[str, Mapping[str, str]], notes: list[str]
) -> dict[str, CapturedTopic]:
    """Return the moving topics of whose moving replicas the lists name none: rates do not hold them back."""
    unlisted: dict[str, CapturedTopic] = {}
    partly = 0
    for name, topic in topics.items():
        own = configs.get(name, {})
        if not topic.moves or own is UNREAD:
            continue
        named = [
            any(list_names(own.get(LEADER_REPLICAS, ""), number, broker) for broker in was)
            or any(list_names(own.get(FOLLOWER_REPLICAS, ""), number, broker) for broker in {*to} - {*was})
            for number, (was, to) in enumerate(zip(topic.replicas, topic.targets, strict=True))
            if to is not None
        ]
        if not any(named):
            unlisted[name] = replace(topic, throttled=False)
        partly += any(named) and not all(named)
    if partly:
        notes.append(f"the lists of {plural(partly, 'topic')} name some of the moving partitions; the replay lists all")
    return unlisted


def _check_plan(plan: Plan, states: Mapping[TopicPartition, PartitionState], wanted: Sequence[str]) -> list[str]:
    """Return what the capture leaves out of the plan. Raise `UsageError` for a partition that does not exist."""
    refuse_empty(plan)
    kept = {*wanted}
    if unknown := sorted(tp for tp in plan.targets if tp.topic in kept and tp not in states):
        named = ", ".join(shortened(unknown, _SHOWN))
        raise UsageError(f"the plan moves {named}, which the cluster does not have: make a new plan")
    return log_dir_notes(plan)


def refuse_internal(topics: Sequence[str]) -> None:
    """Raise `UsageError` when one of the chosen topics is internal."""
    if internal := sorted(filter(is_internal, topics)):
        raise UsageError(f"{', '.join(internal)}: an internal topic is not captured, because a replay makes its own")


def refuse_large(brokers: int, partitions: int) -> None:
    """Raise `UsageError` when a cluster is too large to capture."""
    if brokers > MOST_BROKERS or partitions > MOST_PARTITIONS:
        raise UsageError(f"{brokers} brokers, {partitions} partitions: name fewer topics with --topic")


def refuse_empty(plan: Plan) -> None:
    """Raise `UsageError` when a plan has no partitions."""
    if not plan.targets:
        raise UsageError("the plan has no partitions; give a plan that moves some")


def log_dir_notes(plan: Plan) -> list[str]:
    """Return a note when a plan chooses log dirs, which a replay does not."""
    chosen = len(plan.partitions_with_log_dirs())
    partitions = plural(chosen, "partition")
    return [f"the plan chooses log dirs for {partitions}; the replay has one on each host"] if chosen else []


def left_out(asked: Collection[TopicPartition], wanted: Sequence[str]) -> list[str]:
    """Return how many moves the capture leaves out; not whose, since names may be secret.

    Raise `UsageError` when it leaves out all of them.
    """
    kept = {*wanted}
    topics = sorted({tp.topic for tp in asked} - kept)
    if topics and all(tp.topic not in kept for tp in asked):
        raise UsageError(
            f"what moves is not captured: {', '.join(shortened(topics, _SHOWN))}; "
            "name a topic that moves with --topic; an internal one is never captured"
        )
    left = sum(tp.topic not in kept for tp in asked)
    also = f"{plural(left, 'partition')} of other topics {'moves' if left == 1 else 'move'}"
    return [f"{also}: internal topics, or topics that --topic omits"] if left else []


def lowest_rate(rates: Iterable[str | None], notes: list[str]) -> int | None:
    """Return the lowest rate that limits anything, in B/s. A replay has no rate of 0."""
    limits = [int(rate) for rate in rates if rate is not None and int(rate) < UNLIMITED]
    if not limits:
        return None
    if min(limits) < 1:
        notes.append("a rate is 0 B/s, which stops the move; the replay's is 1 B/s")
    return max(1, min(limits))


def replicas_before(state: PartitionState, running: Reassignment | None) -> tuple[int, ...]:
    """Return the replicas before the move. While it runs, their order is not known: the leader stands first.

    `state` may be from before the move, while it ran, or after it: then it lacks the replicas that the move removed.
    """
    if running is None:
        return state.replicas
    known = state.replicas if {*running.removing} <= {*state.replicas} else running.replicas
    before = tuple(broker for broker in known if broker not in running.adding)
    if state.leader not in before:
        return before
    return (state.leader, *(broker for broker in before if broker != state.leader))


def busiest_bytes(topics: Iterable[CapturedTopic]) -> int:
    """Return the most bytes that one broker copies one way: it receives as a new replica, and sends as the leader."""
    copied: Counter[tuple[str, int]] = Counter()
    for topic in topics:
        for to, was, size in zip(topic.targets, topic.replicas, topic.size_bytes, strict=True):
            new = {*(to or ())} - {*was}
            copied.update({("receive", broker): size for broker in new})
            copied.update({("transmit", leader): size * len(new) for leader in was[:1]})
    return max(copied.values(), default=0)


def _target(
    before: tuple[int, ...], tp: TopicPartition, running: Reassignment | None, plan: Plan | None
) -> tuple[int, ...] | None:
    """Return the replicas after the move, or None when the partition does not move."""
    if plan is None:
        return running.target if running else None
    target = plan.targets.get(tp)
    return None if target == before else target


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
    note = f"{counted(len(wrong), 'topic', 'has')} another name: a file may not have such names"
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
