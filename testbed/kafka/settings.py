"""What a broker goes by, whoever set it: its file, its dynamic configuration, or Kafka's own default."""

from collections.abc import Sequence
from contextlib import closing

from kafka.admin import ConfigResourceType
from kafka.protocol.admin import DescribeConfigsRequest

from testbed.kafka.connection import Connection
from testbed.kafka.errors import KafkaError, protocol_name


def broker_settings(
    bootstrap: Sequence[str], broker_id: int, keys: Sequence[str], *, timeout_s: float = 10.0
) -> dict[str, str]:
    """The value of each key as this very broker says it. What it withholds, or does not know, is left out.

    Raises `KafkaError`, as `UnreachableError` when it does not answer.
    """
    what = f"describe the configuration of broker {broker_id}"
    request = DescribeConfigsRequest(
        resources=[(int(ConfigResourceType.BROKER.value), str(broker_id), list(keys))],
        include_synonyms=False,
        min_version=1,
    )
    with closing(Connection(bootstrap, timeout_s, "testbed-settings")) as connection:
        result = connection.send(what, request, broker_id).to_dict()["results"][0]
    if result["error_code"]:
        raise KafkaError(what, protocol_name(result["error_code"]), result["error_message"])
    return {config["name"]: config["value"] for config in result["configs"] if config["value"] is not None}
