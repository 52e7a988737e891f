"""Configurations asked for and changed: requests of their own, since the client's functions ask for less."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from kafka.admin import AlterConfigOp, ConfigResourceType
from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from testbed.kafka.connection import Connection
from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError, protocol_name, raise_first
from testbed.kafka.types import ConfigResource

# DescribeConfigs' sources of a value.
TOPIC_LEVEL, BROKER_LEVEL, DEFAULT_LEVEL = 1, 2, 3
_CHUNK = 500


def describe(
    connection: Connection, resource: ConfigResource, from_broker: int | None, keys: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """One resource's configuration, key by key with its synonyms, as one broker (None: any) has it."""
    what = f"describe the configuration of {resource}{_where(from_broker)}"
    request = DescribeConfigsRequest(
        resources=[(_resource_type(resource), resource.name, None if keys is None else list(keys))],
        include_synonyms=True,
        min_version=1,
    )
    result = connection.send(what, request, from_broker).to_dict()["results"][0]
    if result["error_code"]:
        raise KafkaError(what, protocol_name(result["error_code"]), result["error_message"])
    configs: list[dict[str, Any]] = result["configs"]
    return configs


def describe_topics(
    connection: Connection, topics: Sequence[str], keys: Sequence[str], from_broker: int | None
) -> dict[str, dict[str, str]]:
    """Topic → key → value of what is set on the topic itself; see `Admin.topics_configs`."""
    what = f"describe the configuration of topics{_where(from_broker)}"
    found: dict[str, dict[str, str]] = {}
    waiting = iter(topics)
    while chunk := list(islice(waiting, _CHUNK)):
        request = DescribeConfigsRequest(
            resources=[(_resource_type(ConfigResource.topic(topic)), topic, list(keys)) for topic in chunk],
            include_synonyms=False,
            min_version=1,
        )
        for result in connection.send(what, request, from_broker).to_dict()["results"]:
            name = protocol_name(result["error_code"])
            if name == UNKNOWN_TOPIC_OR_PARTITION:
                continue
            if result["error_code"]:
                raise KafkaError(f"{what}: {result['resource_name']}", name, result["error_message"])
            for config in result["configs"]:
                if config["config_source"] == TOPIC_LEVEL and config["value"] is not None:
                    found.setdefault(result["resource_name"], {})[config["name"]] = config["value"]
    return found


def alter(connection: Connection, resource: ConfigResource, changed: Mapping[str, str], deleted: Sequence[str]) -> None:
    """Set and delete keys of one resource in one request; a broker's goes to that broker, which alone accepts it."""
    if not changed and not deleted:
        return
    what = f"alter the configuration of {resource}"
    changes: list[tuple[str, int, str | None]] = [(k, AlterConfigOp.SET.value, v) for k, v in changed.items()]
    changes += [(k, AlterConfigOp.DELETE.value, None) for k in deleted]
    request = IncrementalAlterConfigsRequest(
        resources=[(_resource_type(resource), resource.name, changes)], validate_only=False
    )
    to_broker = int(resource.name) if resource.kind == "broker" and resource.name else None
    raise_first(what, connection.send(what, request, to_broker).to_dict()["responses"])


def _where(from_broker: int | None) -> str:
    return "" if from_broker is None else f" from broker {from_broker}"


def _resource_type(resource: ConfigResource) -> int:
    return int(ConfigResourceType[resource.kind.upper()].value)
