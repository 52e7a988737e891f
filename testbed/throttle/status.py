"""The throttles in force in a cluster, also those of other tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testbed.kafka.admin import Admin
from testbed.kafka.errors import UnreachableError
from testbed.kafka.partitions import existing_partitions
from testbed.kafka.types import ConfigResource, PartitionState, TopicPartition
from testbed.throttle.configs import (
    EVERY_BROKER,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LISTS,
    RATES,
    ListedReplicas,
    listed_brokers,
)
from testbed.throttle.journal import JournalFolder, ThrottleJournal, open_journals


@dataclass(frozen=True, slots=True)
class BrokerThrottleStatus:
    """The configuration that one broker reports as in force. ``own`` and ``default`` are the rate keys by level, in
    B/s.

    ``differs``: topics whose lists differ from another broker's. ``why``: the reason for a missing answer.
    """

    id: int
    own: Mapping[str, int]
    default: Mapping[str, int]
    differs: tuple[str, ...] = ()
    why: str | None = None

    def rate(self, key: str) -> int | None:
        """Return the rate in force on this broker, in B/s."""
        return self.own.get(key, self.default.get(key))


@dataclass(frozen=True, slots=True)
class ThrottleStatus:
    """All throttles of a cluster. ``lists`` is topic → key → value; ``journals`` are those of this user.

    ``brokers`` are the live ones, and dead ones that have replicas. ``catching_up`` are partitions outside of
    reassignments with a throttled replica out of sync, such as those of a broker that joined empty (KIP-73).
    """

    cluster_id: str
    brokers: tuple[BrokerThrottleStatus, ...]
    lists: Mapping[str, Mapping[str, str]]
    moving: tuple[TopicPartition, ...]
    catching_up: tuple[TopicPartition, ...]
    journals: tuple[ThrottleJournal, ...]

    def set_now(self) -> dict[ConfigResource, dict[str, str]]:
        """Return every key of a throttle that is set, by resource, with its value."""
        found: dict[ConfigResource, dict[str, str]] = {}
        for broker in self.brokers:
            if broker.own:
                found[ConfigResource.broker(broker.id)] = {key: str(rate) for key, rate in broker.own.items()}
            if broker.default:
                found[EVERY_BROKER] = {key: str(rate) for key, rate in broker.default.items()}
        for topic, keys in self.lists.items():
            found[ConfigResource.topic(topic)] = dict(keys)
        return found

    @property
    def left_behind(self) -> bool:
        """Return whether a throttle is set although nothing moves or catches up, and no living process has set one.

        Between two batches nothing moves either.
        """
        alive = any(journal.owner.alive() for journal in self.journals)
        return bool(self.set_now()) and not self.moving and not self.catching_up and not alive


def read_status(admin: Admin, journals: JournalFolder) -> ThrottleStatus:
    """Return the status as every live broker reports it. Raise `KafkaError` when the cluster gives no answer."""
    cluster = admin.cluster()
    topics = admin.topics()
    lists = admin.topics_configs(topics, LISTS)
    live = [broker.id for broker in cluster.brokers]
    moving = admin.reassignments()
    states = existing_partitions(admin, topics)
    assigned = {broker for state in states.values() for broker in state.replicas}
    dead = sorted((assigned | listed_brokers(lists.values())) - set(live))
    brokers = (
        *(_broker(admin, broker, topics, lists) for broker in live),
        *(BrokerThrottleStatus(broker, {}, {}, (), "it has replicas, but is not alive") for broker in dead),
    )
    return ThrottleStatus(
        cluster.cluster_id,
        brokers,
        lists,
        tuple(moving),
        _catching_up([state for tp, state in states.items() if tp not in moving], ListedReplicas(lists), brokers),
        tuple(journal for journal in open_journals(journals) if journal.cluster_id == cluster.cluster_id),
    )


def _catching_up(
    states: Sequence[PartitionState], listed: ListedReplicas, brokers: Sequence[BrokerThrottleStatus]
) -> tuple[TopicPartition, ...]:
    """Return the partitions with a replica out of sync that its own broker or its leader throttles.

    A broker without an answer counts as one with a rate: only the broker itself reports its own rate.
    """
    limited = {(broker.id, key) for broker in brokers for key in RATES if broker.why or broker.rate(key) is not None}

    def throttled(state: PartitionState, follower: int) -> bool:
        sides = ((follower, FOLLOWER_RATE, FOLLOWER_REPLICAS), (state.leader, LEADER_RATE, LEADER_REPLICAS))
        return any(
            (broker, rate) in limited and listed.names(key, state.tp, broker)
            for broker, rate, key in sides
            if broker is not None
        )

    return tuple(
        state.tp
        for state in states
        if any(throttled(state, follower) for follower in set(state.replicas) - set(state.isr))
    )


def _broker(
    admin: Admin, broker: int, topics: Sequence[str], lists: Mapping[str, Mapping[str, str]]
) -> BrokerThrottleStatus:
    try:
        configs = admin.broker_configs(broker, RATES)
        seen = admin.topics_configs(topics, LISTS, broker)
    except UnreachableError as error:
        return BrokerThrottleStatus(broker, {}, {}, (), str(error))
    own, default = (
        {key: int(level[key]) for key in RATES if key in level} for level in (configs.broker, configs.default)
    )
    differs = sorted(topic for topic in {*seen, *lists} if seen.get(topic) != lists.get(topic))
    return BrokerThrottleStatus(broker, own, default, tuple(differs))
