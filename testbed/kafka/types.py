"""The values that the Admin API reports and accepts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition; sorts by topic, then by number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def is_internal(topic: str) -> bool:
    """Return whether Kafka makes the topic for itself, such as `__consumer_offsets`."""
    return topic.startswith("__")


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A registered, unfenced broker."""

    id: int
    rack: str | None


class ClusterInfo(NamedTuple):
    """A cluster's identity, its active controller (None while none is elected) and its live brokers by id."""

    cluster_id: str
    controller_id: int | None
    brokers: tuple[BrokerInfo, ...]


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The metadata of one partition. ``leader`` is None without a leader.

    ``topic_id`` differs once a topic of the same name was deleted and created again; empty if it is unknown.
    """

    tp: TopicPartition
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A running reassignment as KIP-455 lists it; ``replicas`` holds the adding and the removing ones too."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """Return the replicas that it ends with: merged, they begin with the target's, in order."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def existing(self) -> tuple[int, ...]:
        """Return the replicas without those that it adds: a cancellation leaves these."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)


@dataclass(frozen=True, slots=True, order=True)
class ConfigResource:
    """The owner of a configuration: a topic, one broker, or (broker with an empty name) the default of all brokers."""

    kind: str
    name: str

    def __post_init__(self) -> None:
        if self.kind not in ("broker", "topic"):
            raise ValueError(f"configuration of a {self.kind!r}: must be of a 'broker' or a 'topic'")
        if self.kind == "broker" and self.name and not self.name.isdigit():
            raise ValueError(f"broker {self.name!r}: must be a broker id, or empty for the default of all")

    @classmethod
    def broker(cls, broker_id: int) -> "ConfigResource":
        """Make the resource of one broker."""
        return cls("broker", str(broker_id))

    @classmethod
    def topic(cls, topic: str) -> "ConfigResource":
        """Make the resource of one topic."""
        return cls("topic", topic)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else "default of all brokers"


@dataclass(frozen=True, slots=True)
class BrokerConfigs:
    """The dynamic configuration that one broker has in force, by level.

    ``broker`` holds what is set for this broker alone, ``default`` what is set for all; the former wins.
    """

    broker: Mapping[str, str]
    default: Mapping[str, str]

    def in_force(self, key: str) -> str | None:
        """Return the value in force on this broker, or None if neither level sets the key."""
        return self.broker.get(key, self.default.get(key))


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """One replica's log on one broker. ``is_future``: the broker is copying it to another log directory."""

    size_bytes: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """One partition's replicas before and after a reassignment, and which of them it adds and removes."""

    tp: TopicPartition
    current: tuple[int, ...]
    target: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @classmethod
    def between(cls, tp: TopicPartition, current: tuple[int, ...], target: tuple[int, ...]) -> "PartitionMove":
        """Return the move between two replica lists."""
        adding = tuple(broker for broker in target if broker not in current)
        removing = tuple(broker for broker in current if broker not in target)
        return cls(tp, current, target, adding, removing)

    def in_steps(self) -> "PartitionMove":
        """Return the move as a throttle lists it in steps: a replica that one step adds may lead in the next one."""
        return replace(self, current=(*self.current, *self.adding))
