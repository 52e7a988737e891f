"""Kafka's errors under the names of its protocol."""

from collections.abc import Iterable, Mapping
from typing import Any

import kafka.errors as client_errors

from results.contract.texts import shortened
from testbed.errors import TestbedError
from testbed.kafka.types import ReplicaLog, TopicPartition

# Codes for which the client library has an outdated name, or none.
_RENAMED = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: "NONE",
    6: "NOT_LEADER_OR_FOLLOWER",
    10: "MESSAGE_TOO_LARGE",
    17: "INVALID_TOPIC_EXCEPTION",
    39: "INVALID_REPLICA_ASSIGNMENT",
}
_SHOWN_PARTITIONS = 5

# The request → the right that Kafka's authorizer requires for it; the longest matching prefix counts.
_RIGHTS = {
    "describe the quorum": ("Describe", "--cluster"),
    "describe the log folders": ("Describe", "--cluster"),
    "list reassignments": ("Describe", "--cluster"),
    "alter reassignments": ("Alter", "--cluster"),
    "elect preferred leaders": ("Alter", "--cluster"),
    "describe topic": ("Describe", "--topic …"),
    "list end offsets": ("Describe", "--topic …"),
    "create topic": ("Create", "--topic …"),
    "delete topic": ("Delete", "--topic …"),
    "add partitions to topic": ("Alter", "--topic …"),
    "describe the configuration of topic": ("DescribeConfigs", "--topic …"),
    "describe the configuration of broker": ("DescribeConfigs", "--cluster"),
    "alter the configuration of topic": ("AlterConfigs", "--topic …"),
    "alter the configuration of": ("AlterConfigs", "--cluster"),
}

CLUSTER_AUTHORIZATION_FAILED = "CLUSTER_AUTHORIZATION_FAILED"
INVALID_REPLICA_ASSIGNMENT = "INVALID_REPLICA_ASSIGNMENT"
NOT_CONTROLLER = "NOT_CONTROLLER"
REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT"
UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
BROKER_NOT_REGISTERED = "BROKER_ID_NOT_REGISTERED"


def protocol_name(code: int) -> str:
    """Return the protocol's name of an error code, such as ``UNKNOWN_TOPIC_OR_PARTITION`` for 3."""
    known = client_errors.kafka_errors.get(code)
    return _RENAMED.get(code) or (known.message if known and known.message else f"ERROR_{code}")


class KafkaError(TestbedError):
    """A request failed. ``name`` is the protocol's name of the error."""

    def __init__(self, what: str, name: str, message: str | None = None) -> None:
        self.name = name
        if name.endswith("_AUTHORIZATION_FAILED"):
            message = _wanted_right(what)
        super().__init__(f"{what}: {name}" + (f" ({message})" if message else ""))


class UnreachableError(KafkaError):
    """No answer: the broker or the cluster cannot be reached, or took longer than the timeout."""


def raise_first(what: str, results: Iterable[Mapping[str, Any]]) -> None:
    """Raise `KafkaError` for the first result that has an error."""
    for result in results:
        if result["error_code"]:
            raise KafkaError(what, protocol_name(result["error_code"]), result.get("error_message"))


class LogDirError(KafkaError):
    """Log dirs of some brokers have an error; `found` has the replicas in all others, by broker."""

    def __init__(self, what: str, name: str, found: dict[int, dict[TopicPartition, ReplicaLog]]) -> None:
        self.found = found
        super().__init__(what, name)


class TopicConfigsError(KafkaError):
    """The configuration of the topics in `refused` could not be read; `found` has that of the others."""

    def __init__(
        self,
        what: str,
        name: str,
        message: str | None,
        refused: tuple[str, ...],
        found: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.refused, self.found = refused, found
        super().__init__(what, name, message)


class PartitionErrors(KafkaError):
    """Some partitions of a request failed; ``errors`` gives the protocol's name of each one's error."""

    def __init__(self, what: str, errors: Mapping[TopicPartition, str], asked: int) -> None:
        self.errors = dict(sorted(errors.items()))
        by_name: dict[str, list[str]] = {}
        for tp, name in self.errors.items():
            by_name.setdefault(name, []).append(str(tp))
        parts = [f"{name} for {', '.join(shortened(tps, _SHOWN_PARTITIONS))}" for name, tps in by_name.items()]
        super().__init__(f"{what} failed for {len(errors)} of {asked} partitions", "; ".join(parts))


class ReassignmentError(PartitionErrors):
    """The controller refused to start, change or cancel the reassignment of some partitions."""


class ElectionError(PartitionErrors):
    """The preferred leader of some partitions could not be elected."""


def _wanted_right(what: str) -> str:
    fits = [begin for begin in _RIGHTS if what.startswith(begin)]
    if not fits:
        return "the user of this connection lacks the permission"
    operation, on = _RIGHTS[max(fits, key=len)]
    return (
        f"the user of this connection lacks a permission; grant it with `kafka-acls --add --allow-principal User:… "
        f"--operation {operation} {on}`"
    )
