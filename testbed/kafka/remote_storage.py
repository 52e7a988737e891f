"""What brokers are told of remote log storage (KIP-405): the properties, rendered from the topology. Pure."""

from collections.abc import Mapping

from testbed.errors import TestbedError
from testbed.network.addresses import AddressPlan
from testbed.objectstore.server import CREDENTIALS_FILE as CREDENTIALS
from testbed.objectstore.server import endpoints
from testbed.objectstore.store import REGION, TIERED
from testbed.software.rsm import CLASS_PROPERTY, TARGET, RemoteStorageManager
from testbed.topology.model import Host, Topology

MANAGER_PREFIX = "rsm.config."
METADATA_PREFIX = "rlmm.config."
METADATA_TOPIC = "__remote_log_metadata"
METADATA_PARTITIONS = 5
_AIVEN = "io.aiven.kafka.tieredstorage."


def remote_storage_properties(
    topology: Topology, host: Host, plan: AddressPlan, manager: RemoteStorageManager
) -> dict[str, str]:
    """A node's properties, of a topology with `remote_storage`. Raises `TestbedError` when no class is known.

    A controller is told too, since it is the one that accepts a topic's `remote.storage.enable`.
    """
    properties = {"remote.log.storage.system.enable": "true"}
    if not host.is_broker:
        return properties
    class_name = host.properties.get(CLASS_PROPERTY, manager.class_name)
    if not class_name:
        raise TestbedError(
            f"{host.name}: the jars of remote_storage.manager have no class that implements a RemoteStorageManager, "
            f"or several; name it with the property {CLASS_PROPERTY}"
        )
    return {
        **properties,
        CLASS_PROPERTY: class_name,
        "remote.log.storage.manager.class.path": f"{TARGET}/*",
        "remote.log.storage.manager.impl.prefix": MANAGER_PREFIX,
        "remote.log.metadata.manager.impl.prefix": METADATA_PREFIX,
        # It is a client of the cluster like any other: its bytes are not to be taken for replication's.
        "remote.log.metadata.manager.listener.name": "CLIENT",
        f"{METADATA_PREFIX}remote.log.metadata.topic.replication.factor": str(min(3, len(topology.brokers))),
        # Every broker reads those of the partitions it leads: with Kafka's 50 a start takes longer, for nothing.
        f"{METADATA_PREFIX}remote.log.metadata.topic.num.partitions": str(METADATA_PARTITIONS),
        # Newer releases ask for two in-sync replicas, which one broker, or one that is left, does not have.
        f"{METADATA_PREFIX}remote.log.metadata.topic.min.isr": "1",
        # What is uploaded leaves the local log within seconds, instead of minutes.
        "log.retention.check.interval.ms": "1000",
        "remote.log.manager.task.interval.ms": "1000",
        **_manager_properties(topology, plan, class_name, manager),
    }


def _manager_properties(
    topology: Topology, plan: AddressPlan, class_name: str, manager: RemoteStorageManager
) -> Mapping[str, str]:
    endpoint = endpoints(topology, plan)[0]
    if manager.is_own:
        return _prefixed({"endpoint": endpoint, "bucket": TIERED, "region": REGION, "credentials.file": CREDENTIALS})
    # Of the file with the credentials, not of this one: they are in no property that anything prints.
    by_file = {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    if not class_name.startswith(_AIVEN):
        return by_file
    return by_file | _prefixed(
        {
            "chunk.size": str(1 << 20),
            "storage.backend.class": f"{_AIVEN}storage.s3.S3Storage",
            "storage.s3.bucket.name": TIERED,
            "storage.s3.endpoint.url": endpoint,
            "storage.s3.region": REGION,
            "storage.s3.path.style.access.enabled": "true",
            "storage.aws.access.key.id": f"${{file:{CREDENTIALS}:access_key}}",
            "storage.aws.secret.access.key": f"${{file:{CREDENTIALS}:secret_key}}",
        }
    )


def _prefixed(properties: Mapping[str, str]) -> dict[str, str]:
    return {f"{MANAGER_PREFIX}{name}": value for name, value in properties.items()}
