"""A cluster in memory behind the Admin interface."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from testbed.kafka.errors import KafkaError, ReassignmentError
from testbed.kafka.types import (
    BrokerConfigs,
    BrokerInfo,
    ClusterInfo,
    ConfigResource,
    PartitionState,
    Reassignment,
    ReplicaLog,
    TopicPartition,
)
from testbed.throttle.configs import EVERY_BROKER

Hook = Callable[[str, tuple[object, ...]], None]


@dataclass
class FakeAdmin:
    """Every call is noted in ``calls``, then given to ``hook``, which may raise to inject a failure.

    ``deaf_brokers`` never apply a configuration. A reassignment is listed for ``polls_needed`` looks, and the
    old logs remain for ``polls_to_delete`` more.
    """

    assignment: dict[TopicPartition, tuple[int, ...]]
    broker_ids: tuple[int, ...] = (1, 2, 3)
    cluster_id: str = "fake-cluster"
    polls_needed: int = 2
    polls_to_delete: int = 1
    deaf_brokers: frozenset[int] = frozenset()
    refused: dict[TopicPartition, str] = field(default_factory=dict)
    hook: Hook = lambda _call, _args: None
    configs: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    calls: list[tuple[str, tuple[object, ...]]] = field(default_factory=list)
    running: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    stale_logs: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    isr_lacks: frozenset[int] = frozenset()
    topic_ids: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    supported: dict[str, int] = field(default_factory=dict)
    size_of: Callable[[int, TopicPartition], int] = lambda _broker, _tp: 1

    @property
    def bootstrap(self) -> str:
        return "fake:9092"

    def __enter__(self) -> "FakeAdmin":
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def _note(self, call: str, *args: object) -> None:
        self.calls.append((call, args))
        self.hook(call, args)

    def cluster(self) -> ClusterInfo:
        self._note("cluster")
        return ClusterInfo(self.cluster_id, 1, tuple(BrokerInfo(b, None) for b in self.broker_ids))

    def brokers(self) -> tuple[BrokerInfo, ...]:
        self._note("brokers")
        return tuple(BrokerInfo(b, None) for b in self.broker_ids)

    def supported_features(self) -> dict[str, int]:
        self._note("supported_features")
        return self.supported

    def topics(self) -> tuple[str, ...]:
        self._note("topics")
        return tuple(sorted({tp.topic for tp in self.assignment}))

    def partitions(self, topics: Sequence[str]) -> dict[TopicPartition, PartitionState]:
        self._note("partitions", tuple(topics))
        return {
            tp: PartitionState(
                tp,
                replicas[0],
                0,
                replicas,
                tuple(b for b in replicas if b not in self.isr_lacks),
                self.topic_ids.get(tp.topic, f"id of {tp.topic}"),
            )
            for tp, replicas in self.assignment.items()
            if tp.topic in topics
        }

    def reassignments(self, topics: Sequence[str] | None = None) -> dict[TopicPartition, Reassignment]:
        self._note("reassignments", topics)
        if self.running:
            self.polls_needed -= 1
            if self.polls_needed < 0:
                for tp, target in self.running.items():
                    self.stale_logs[tp] = tuple(b for b in self.assignment[tp] if b not in target)
                    self.assignment[tp] = target
                self.running.clear()
        return {
            tp: Reassignment(
                (*target, *(b for b in self.assignment[tp] if b not in target)),
                tuple(b for b in target if b not in self.assignment[tp]),
                tuple(b for b in self.assignment[tp] if b not in target),
            )
            for tp, target in self.running.items()
        }

    def alter_reassignments(self, targets: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        self._note("alter_reassignments", dict(targets))
        for tp, target in targets.items():
            if tp in self.refused:
                continue
            if target is None:
                self.running.pop(tp, None)
            elif tuple(target) != self.assignment[tp]:
                self.running[tp] = tuple(target)
        errors = {tp: name for tp, name in self.refused.items() if tp in targets}
        if errors:
            raise ReassignmentError("alter reassignments", errors, len(targets))

    def broker_configs(self, broker_id: int, keys: Sequence[str] | None = None) -> BrokerConfigs:
        self._note("broker_configs", broker_id)
        if broker_id in self.deaf_brokers:
            return BrokerConfigs({}, {})
        own, default = (
            {k: v for k, v in self.configs.get(each, {}).items() if keys is None or k in keys}
            for each in (ConfigResource.broker(broker_id), EVERY_BROKER)
        )
        return BrokerConfigs(own, default)

    def broker_settings(self, broker_id: int, keys: Sequence[str]) -> dict[str, str]:
        self._note("broker_settings", broker_id, tuple(keys))
        return {key: self.settings[key] for key in keys if key in self.settings}

    def topic_configs(self, topic: str, from_broker: int | None = None) -> dict[str, str]:
        self._note("topic_configs", topic, from_broker)
        if topic not in {tp.topic for tp in self.assignment}:
            raise KafkaError(f"describe topic {topic}", "UNKNOWN_TOPIC_OR_PARTITION")
        return {} if from_broker in self.deaf_brokers else dict(self.configs.get(ConfigResource.topic(topic), {}))

    def topics_configs(
        self, topics: Sequence[str], keys: Sequence[str], from_broker: int | None = None
    ) -> dict[str, dict[str, str]]:
        self._note("topics_configs", tuple(topics), tuple(keys), from_broker)
        if from_broker in self.deaf_brokers:
            return {}
        there = {topic: self.configs.get(ConfigResource.topic(topic), {}) for topic in topics}
        found = {topic: {key: set_[key] for key in keys if key in set_} for topic, set_ in there.items()}
        return {topic: set_ for topic, set_ in found.items() if set_}

    def alter_configs(self, resource: ConfigResource, set: Mapping[str, str], delete: Sequence[str] = ()) -> None:
        self._note("alter_configs", resource, dict(set), tuple(delete))
        if resource.kind == "topic" and all(tp.topic != resource.name for tp in self.assignment):
            raise KafkaError(f"alter the configuration of {resource}", "UNKNOWN_TOPIC_OR_PARTITION")
        keys = self.configs.setdefault(resource, {})
        keys.update(set)
        for key in delete:
            keys.pop(key, None)
        if not keys:
            del self.configs[resource]

    def log_dirs(
        self, brokers: Sequence[int], topics: Sequence[str] | None = None
    ) -> dict[int, dict[TopicPartition, ReplicaLog]]:
        self._note("log_dirs", tuple(brokers))
        self.polls_to_delete -= 1
        if self.polls_to_delete < 0:
            self.stale_logs.clear()
        return {
            broker: {
                tp: ReplicaLog(self.size_of(broker, tp), False)
                for tp in self.assignment
                if broker in self.assignment[tp] or broker in self.stale_logs.get(tp, ())
            }
            for broker in brokers
        }
