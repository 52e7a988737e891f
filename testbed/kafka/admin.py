"""The testbed's Admin client: typed, and bounded in time.

kafka-python is untyped and answers in dictionaries; no such dictionary leaves this package.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from types import TracebackType
from typing import Any

from kafka import OffsetAndMetadata
from kafka import TopicPartition as ClientTopicPartition
from kafka.admin import AlterConfigOp, ConfigResourceType, OffsetSpec
from kafka.protocol.admin import DescribeConfigsRequest, DescribeLogDirsRequest, IncrementalAlterConfigsRequest

from results.contract.texts import shortened
from testbed.kafka.command_config import CommandConfig
from testbed.kafka.connection import Connection
from testbed.kafka.errors import (
    INVALID_REPLICA_ASSIGNMENT,
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    UNKNOWN_TOPIC_OR_PARTITION,
    ElectionError,
    KafkaError,
    LogDirError,
    ReassignmentError,
    TopicConfigsError,
    UnreachableError,
    protocol_name,
    raise_first,
)
from testbed.kafka.health import describe_quorum
from testbed.kafka.messages import UnregisterBrokerRequest
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
from testbed.wait import WaitTimeout, wait_for

_REASSIGNMENT_CHUNK = 1000
_RETRY_INTERVAL_S = 0.1
_CONFIGS_CHUNK = 500
_SHOWN = 8
_TOPIC_LEVEL, _BROKER_LEVEL, _DEFAULT_LEVEL = 1, 2, 3
"""DescribeConfigs' sources of a value."""
_NO_ID = (None, "00000000-0000-0000-0000-000000000000")
_LEADER_ELECTION_NOT_NEEDED = "ELECTION_NOT_NEEDED"
_PREFERRED = 0


class Admin:
    """An Admin client for one cluster; a context manager.

    It is thread-safe: the I/O happens on the client's own thread, and this class keeps no state between calls. Every
    request has ``timeout_s`` to connect and ``timeout_s`` for its answer, unless ``security`` (a `--command-config`)
    sets other timeouts. Failures are `KafkaError` with the protocol's name of the error; `UnreachableError` without an
    answer.
    """

    def __init__(
        self,
        bootstrap: Sequence[str] | str,
        *,
        timeout_s: float = 10,
        client_id: str = "testbed",
        security: CommandConfig | None = None,
    ) -> None:
        self._timeout_s = (security and security.request_timeout_s) or timeout_s
        client_id = (security and security.client_id) or client_id
        self._connection = Connection(bootstrap, self._timeout_s, client_id, security)
        self._client = self._connection.client

    def __enter__(self) -> "Admin":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._connection.close()

    @property
    def bootstrap(self) -> str:
        """Return the bootstrap servers, ``host:port,…``."""
        return self._connection.bootstrap

    # -- the cluster ---------------------------------------------------------------------------------------

    def cluster(self) -> ClusterInfo:
        """Return the cluster's id, its active controller, and its live brokers by id."""
        answer = self._described_cluster()
        # DescribeCluster names any broker as the controller in KRaft; the quorum names the real one.
        leader: int = describe_quorum(self._connection)["leader_id"]
        return ClusterInfo(answer["cluster_id"], None if leader < 0 else leader, _live_brokers(answer))

    def brokers(self) -> tuple[BrokerInfo, ...]:
        """Return the live brokers by id, also of a cluster with ZooKeeper, which has no quorum to describe."""
        return _live_brokers(self._described_cluster())

    def _described_cluster(self) -> dict[str, Any]:
        described: dict[str, Any] = self._connection.call("describe the cluster", self._client.describe_cluster)
        return described

    def features(self) -> dict[str, int]:
        """Return the level of each finalized feature (``metadata.version``, ``group.version``, …)."""
        answer = self._connection.call("describe the features", self._client.describe_features)
        return {name: f["finalized"][1] for name, f in sorted(answer.items()) if "finalized" in f}

    def supported_features(self) -> dict[str, int]:
        """Return the highest level of each feature that a broker's release knows, also when it is not finalized."""
        answer = self._connection.call("describe the features", self._client.describe_features)
        return {name: f["supported"][1] for name, f in sorted(answer.items()) if "supported" in f}

    def unregister_broker(self, broker_id: int) -> None:
        """Remove the registration of a stopped broker (KIP-631). Raise `KafkaError` when it is not registered."""
        what = f"unregister broker {broker_id}"
        answer = self._connection.send(what, UnregisterBrokerRequest(broker_id=broker_id), None).to_dict()
        if answer["error_code"]:
            raise KafkaError(what, protocol_name(answer["error_code"]), answer["error_message"])

    # -- topics --------------------------------------------------------------------------------------------

    def create_topic(
        self, name: str, assignment: Mapping[int, Sequence[int]], configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic and wait until every partition has a leader.

        ``assignment`` gives each partition's replicas, the preferred leader first.
        """
        what = f"create topic {name!r}"
        spec = {
            "assignments": {p: list(replicas) for p, replicas in assignment.items()},
            "configs": dict(configs or {}),
        }
        answer = self._call(what, self._client.create_topics, {name: spec}, raise_errors=False)
        raise_first(what, answer["topics"])

        def leaderless() -> list[int]:
            try:
                seen = self.partitions([name])
            except KafkaError as error:
                if error.name != UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                seen = {}  # this broker does not know the topic yet
            led = {tp.partition for tp, state in seen.items() if state.leader is not None}
            return sorted(set(assignment) - led)

        try:
            wait_for(leaderless, lambda missing: not missing, self._timeout_s, _RETRY_INTERVAL_S, "leaders")
        except WaitTimeout as error:
            few = ", ".join(shortened(error.last_seen, _SHOWN))
            raise UnreachableError(what, "LEADER_NOT_AVAILABLE", f"partitions without leader: {few}") from error

    def add_partitions(self, name: str, replicas: Sequence[Sequence[int]]) -> None:
        """Add partitions to a topic, each with its replicas; their numbers continue those of the existing ones."""
        what = f"add partitions to topic {name!r}"
        count = len(self.partitions([name])) + len(replicas)
        added = {name: {"count": count, "assignments": [list(each) for each in replicas]}}
        answer = self._call(what, self._client.create_partitions, added, raise_errors=False).to_dict()
        raise_first(what, answer["results"])

    def delete_topic(self, name: str) -> None:
        """Delete a topic. Raise `KafkaError` when it does not exist."""
        what = f"delete topic {name!r}"
        answer = self._call(what, self._client.delete_topics, [name], raise_errors=False)
        raise_first(what, answer["topics"])

    def topics(self) -> tuple[str, ...]:
        """Return the names of all topics that this user may see, in order."""
        answer = self._connection.call("describe all topics", self._client.describe_topics)
        return tuple(sorted(topic["name"] for topic in answer if not topic["error_code"]))

    def partitions(self, topics: Sequence[str]) -> dict[TopicPartition, PartitionState]:
        """Return every partition of the topics. Raise `KafkaError` when a topic does not exist."""
        if not topics:
            return {}
        answer = self._connection.call("describe topics", self._client.describe_topics, sorted(set(topics)))
        found = {}
        for topic in answer:
            if topic["error_code"]:
                raise KafkaError(f"describe topic {topic['name']!r}", protocol_name(topic["error_code"]))
            for p in topic["partitions"]:
                tp = TopicPartition(topic["name"], p["partition_index"])
                found[tp] = PartitionState(
                    tp,
                    None if p["leader_id"] < 0 else p["leader_id"],
                    p.get("leader_epoch", -1),
                    tuple(p["replica_nodes"]),
                    tuple(p["isr_nodes"]),
                    "" if topic.get("topic_id") in _NO_ID else topic["topic_id"],
                )
        return dict(sorted(found.items()))

    def end_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return each partition's high watermark, as its leader reports it."""
        wanted = {ClientTopicPartition(tp.topic, tp.partition): OffsetSpec.LATEST for tp in tps}
        if not wanted:
            return {}
        answer = self._call("list end offsets", self._client.list_partition_offsets, wanted)
        return {TopicPartition(tp.topic, tp.partition): found.offset for tp, found in sorted(answer.items())}

    # -- groups --------------------------------------------------------------------------------------------

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets for a group without members, in one request. Raise `KafkaError` when one is refused."""
        what = f"commit offsets of group {group}"
        given = {ClientTopicPartition(tp.topic, tp.partition): OffsetAndMetadata(at) for tp, at in offsets.items()}
        answer = self._connection.call(what, self._client.alter_group_offsets, group, given)
        raise_first(what, ({"error_code": error.errno} for error in answer.values()))

    def committed_offsets(self, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
        """Return each group's committed offsets, as its coordinator has them."""
        answer = self._connection.call("list committed offsets", self._client.list_group_offsets, list(groups))
        return {
            group: {TopicPartition(tp.topic, tp.partition): each.offset for tp, each in offsets.items()}
            for group, offsets in answer.items()
        }

    # -- reassignments -------------------------------------------------------------------------------------

    def reassignments(self, topics: Sequence[str] | None = None) -> dict[TopicPartition, Reassignment]:
        """Return the running reassignments, of these topics or of all (None)."""
        answer = self._call("list reassignments", self._client.list_partition_reassignments)
        wanted = None if topics is None else set(topics)
        return {
            TopicPartition(tp.topic, tp.partition): Reassignment(
                tuple(r["replicas"]), tuple(r["adding_replicas"]), tuple(r["removing_replicas"])
            )
            for tp, r in sorted(answer.items())
            if wanted is None or tp.topic in wanted
        }

    def alter_reassignments(self, targets: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        """Start, change or (None) cancel reassignments, at most 1,000 partitions a request.

        Raise `ReassignmentError` when any partition was refused, naming each and its error, after all requests. The
        client retries while the controller is changing, until the timeout. It repeats a request without an answer and
        without cancellations once: the same target twice is one reassignment.
        """
        # The client library cannot send an empty target; the controller would refuse it by this name.
        empty = [tp for tp, target in targets.items() if target is not None and not target]
        errors: dict[TopicPartition, str] = dict.fromkeys(empty, INVALID_REPLICA_ASSIGNMENT)
        waiting = iter(sorted(item for item in targets.items() if item[0] not in errors))
        while chunk := dict(islice(waiting, _REASSIGNMENT_CHUNK)):
            errors |= self._alter_chunk(chunk)
        if errors:
            raise ReassignmentError("alter reassignments", errors, len(targets))

    def _alter_chunk(self, chunk: Mapping[TopicPartition, Sequence[int] | None]) -> dict[TopicPartition, str]:
        deadline = time.monotonic() + self._timeout_s
        errors: dict[TopicPartition, str] = {}
        pending = dict(chunk)
        repeatable = None not in chunk.values()
        while pending:
            request = {ClientTopicPartition(tp.topic, tp.partition): r for tp, r in pending.items()}
            try:
                answer = self._call("alter reassignments", self._client.alter_partition_reassignments, request)
            except UnreachableError as error:
                if error.name != REQUEST_TIMED_OUT or not repeatable:
                    raise
                repeatable = False
                continue
            again = {}
            for tp, target in pending.items():
                key = ClientTopicPartition(tp.topic, tp.partition)
                if key not in answer:
                    errors[tp] = "NO_ANSWER"
                elif answer[key] is not None:
                    name = protocol_name(answer[key].errno)
                    if name == NOT_CONTROLLER and time.monotonic() < deadline:
                        again[tp] = target
                    else:
                        errors[tp] = name
            pending = again
            if pending:
                time.sleep(_RETRY_INTERVAL_S)
        return errors

    def elect_preferred(self, tps: Iterable[TopicPartition]) -> None:
        """Make the first replica of each partition its leader; do nothing for one that leads already."""
        wanted: dict[str, list[int]] = {}
        for tp in tps:
            wanted.setdefault(tp.topic, []).append(tp.partition)
        if not wanted:
            return
        what = "elect preferred leaders"
        answer = self._call(what, self._client.elect_leaders, _PREFERRED, wanted, raise_errors=False).to_dict()
        if answer.get("error_code"):
            raise KafkaError(what, protocol_name(answer["error_code"]))
        errors = {
            TopicPartition(topic["topic"], p["partition_id"]): protocol_name(p["error_code"])
            for topic in answer["replica_election_results"]
            for p in topic["partition_result"]
            if p["error_code"]
        }
        errors = {tp: name for tp, name in errors.items() if name != _LEADER_ELECTION_NOT_NEEDED}
        if errors:
            raise ElectionError(what, errors, sum(map(len, wanted.values())))

    # -- configurations ------------------------------------------------------------------------------------

    def broker_configs(self, broker_id: int, keys: Sequence[str] | None = None) -> BrokerConfigs:
        """Return the dynamic configuration that one broker has applied, by level; of these keys, or of all (None).

        The whole answer is some 50 kB. The broker withholds values of sensitive and unknown keys; they are left out.
        """
        levels: dict[int, dict[str, str]] = {_BROKER_LEVEL: {}, _DEFAULT_LEVEL: {}}
        for config in self._described(ConfigResource.broker(broker_id), broker_id, keys):
            for synonym in config["synonyms"]:
                if synonym["source"] in levels and synonym["value"] is not None:
                    levels[synonym["source"]].setdefault(config["name"], synonym["value"])
        return BrokerConfigs(levels[_BROKER_LEVEL], levels[_DEFAULT_LEVEL])

    def broker_settings(self, broker_id: int, keys: Sequence[str]) -> dict[str, str]:
        """Return the values in force on one broker, at any level, without keys that it does not know."""
        answer = self._described(ConfigResource.broker(broker_id), broker_id, keys)
        return {c["name"]: c["value"] for c in answer if c["value"] is not None}

    def topic_configs(self, topic: str, from_broker: int | None = None) -> dict[str, str]:
        """Return the topic's own configuration, as the given broker (None: any) reports it."""
        return _of_topic(self._described(ConfigResource.topic(topic), from_broker))

    def topic_setting(self, topic: str, key: str) -> str | None:
        """Return the value in force for a topic, at any level: the topic, a broker, or Kafka's own default."""
        answer = self._described(ConfigResource.topic(topic), None, [key])
        return next((config["value"] for config in answer if config["name"] == key), None)

    def topics_configs(
        self, topics: Sequence[str], keys: Sequence[str], from_broker: int | None = None
    ) -> dict[str, dict[str, str]]:
        """Return the values of these keys set on each topic itself, as `topic_configs`; without topics that have none.

        A topic that no longer exists has none. Raise `TopicConfigsError` when some topics cannot be read; it has the
        configuration of the others.
        """
        refused: dict[str, tuple[str, str | None]] = {}
        what = f"describe the configuration of topics{_where(from_broker)}"
        found: dict[str, dict[str, str]] = {}
        waiting = iter(topics)
        while chunk := list(islice(waiting, _CONFIGS_CHUNK)):
            resources = [(int(ConfigResourceType.TOPIC.value), topic, list(keys)) for topic in chunk]
            for result in self._config_results(what, resources, from_broker, synonyms=False):
                name = protocol_name(result["error_code"])
                if name == UNKNOWN_TOPIC_OR_PARTITION:
                    continue
                if result["error_code"]:
                    refused[result["resource_name"]] = name, result["error_message"]
                if values := _of_topic(result["configs"]):
                    found[result["resource_name"]] = values
        if refused:
            first, (name, message) = next(iter(refused.items()))
            raise TopicConfigsError(f"{what}: {first}", name, message, tuple(refused), found)
        return found

    def alter_configs(self, resource: ConfigResource, set: Mapping[str, str], delete: Sequence[str] = ()) -> None:
        """Set and delete keys of one resource, in one request; its other keys stay."""
        if not set and not delete:
            return
        what = f"alter the configuration of {resource}"
        changes: list[tuple[str, int, str | None]] = [(k, AlterConfigOp.SET.value, v) for k, v in set.items()]
        changes += [(k, AlterConfigOp.DELETE.value, None) for k in delete]
        request = IncrementalAlterConfigsRequest(
            resources=[(_resource_type(resource), resource.name, changes)], validate_only=False
        )
        # Only the broker itself accepts its own configuration.
        to_broker = int(resource.name) if resource.kind == "broker" and resource.name else None
        raise_first(what, self._connection.send(what, request, to_broker).to_dict()["responses"])

    def _described(
        self, resource: ConfigResource, from_broker: int | None, keys: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return one resource's configuration, key by key with its synonyms, as one broker (None: any) reports it."""
        what = f"describe the configuration of {resource}{_where(from_broker)}"
        named = (_resource_type(resource), resource.name, None if keys is None else list(keys))
        results = self._config_results(what, [named], from_broker, synonyms=True)
        raise_first(what, results)
        configs: list[dict[str, Any]] = results[0]["configs"]
        return configs

    def _config_results(
        self, what: str, resources: Sequence[tuple[int, str, list[str] | None]], broker: int | None, *, synonyms: bool
    ) -> list[dict[str, Any]]:
        request = DescribeConfigsRequest(resources=list(resources), include_synonyms=synonyms, min_version=1)
        results: list[dict[str, Any]] = self._connection.send(what, request, broker).to_dict()["results"]
        return results

    # -- logs ----------------------------------------------------------------------------------------------

    def log_dirs(
        self, brokers: Sequence[int], topics: Sequence[str] | None = None
    ) -> dict[int, dict[TopicPartition, ReplicaLog]]:
        """Return the replicas on each broker, of these topics or of all (None).

        A broker that copies a replica to another folder holds it twice; the result has the replica in use. Raise
        `LogDirError` when a folder has an error, such as one that is offline; it has the replicas in the others.
        """
        failed: tuple[str, str] | None = None
        wanted = None if topics is None else set(topics)
        found: dict[int, dict[TopicPartition, ReplicaLog]] = {}
        for broker in brokers:
            what = f"describe the log folders of broker {broker}"
            # The client's own function drops the error of the whole answer: without the right to describe it returns
            # nothing.
            answer = self._connection.send(what, DescribeLogDirsRequest(topics=None), broker).to_dict()
            if answer.get("error_code"):
                raise KafkaError(what, protocol_name(answer["error_code"]))
            replicas = found.setdefault(broker, {})
            for folder in answer["results"]:
                if folder["error_code"]:
                    failed = failed or (f"{what}, {folder['log_dir']}", protocol_name(folder["error_code"]))
                    continue
                for topic in folder["topics"]:
                    if wanted is not None and topic["name"] not in wanted:
                        continue
                    for p in topic["partitions"]:
                        tp = TopicPartition(topic["name"], p["partition_index"])
                        log = ReplicaLog(p["partition_size"], p["is_future_key"])
                        if tp not in replicas or replicas[tp].is_future:
                            replicas[tp] = log
        if failed is not None:
            raise LogDirError(*failed, found)
        return found

    def _call(self, what: str, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Call a function of the client that takes a timeout; see `Connection.call`."""
        return self._connection.call(what, function, *args, timeout_ms=int(self._timeout_s * 1000), **named)


def _live_brokers(described: Mapping[str, Any]) -> tuple[BrokerInfo, ...]:
    """Return the brokers of an answer of DescribeCluster that are not fenced, by id."""
    brokers = (BrokerInfo(b["broker_id"], b["rack"]) for b in described["brokers"] if not b.get("is_fenced", False))
    return tuple(sorted(brokers, key=lambda broker: broker.id))


def _of_topic(configs: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the values that are set on the topic itself."""
    return {c["name"]: c["value"] for c in configs if c["config_source"] == _TOPIC_LEVEL and c["value"] is not None}


def _where(from_broker: int | None) -> str:
    return "" if from_broker is None else f" from broker {from_broker}"


def _resource_type(resource: ConfigResource) -> int:
    return int(ConfigResourceType[resource.kind.upper()].value)
