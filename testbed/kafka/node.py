"""A Kafka node on a host: its `server.properties`, its files, and the process that is started and stopped.

The properties follow from the topology: listeners and quorum, remote log storage (KIP-405), and what a node needs whose
partitions lie in an object store.
"""

from collections.abc import Collection, Mapping, Sequence

from testbed.errors import TestbedError
from testbed.hosts import Daemon, Host
from testbed.kafka.capabilities import SHARED_STORAGE_KEY, Capability
from testbed.network.addresses import AddressPlan
from testbed.objectstore.server import CREDENTIALS_FILE as CREDENTIALS
from testbed.objectstore.server import endpoints
from testbed.objectstore.store import AUTOMQ_DATA, AUTOMQ_OPS, REGION, TIERED
from testbed.software.rsm import CLASS_PROPERTY, TARGET, RemoteStorageManager
from testbed.topology.host import DeclaredHost
from testbed.topology.links import NicUse
from testbed.topology.model import Topology

MANAGER_PREFIX = "rsm.config."
METADATA_PREFIX = "rlmm.config."
METADATA_TOPIC = "__remote_log_metadata"
METADATA_PARTITIONS = 5
_AIVEN = "io.aiven.kafka.tieredstorage."


def remote_storage_properties(
    topology: Topology, host: DeclaredHost, plan: AddressPlan, manager: RemoteStorageManager
) -> dict[str, str]:
    """A node's properties, of a topology with `remote_storage`. Raises `TestbedError` when no class is known.

    A controller needs them too, since it accepts a topic's `remote.storage.enable`.
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


METRICS_PORT = 8890
"""The port of a broker's own metrics, on its loopback only."""
BALANCER = "autobalancer.controller.enable"
ONE_REPLICA = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)
"""The store has the copies: there is never more than one replica, and a topic with more is refused."""
FLAGS = ("-XX:MaxDirectMemorySize=512m", "-XX:+ExitOnOutOfMemoryError", "-Dio.netty.allocator.maxOrder=11")

# The credentials come into the environment between two processes: no command line ever has them.
_WITH_CREDENTIALS = f"""\
KAFKA_S3_ACCESS_KEY=$(sed -n 's/^access_key=//p' {CREDENTIALS})
KAFKA_S3_SECRET_KEY=$(sed -n 's/^secret_key=//p' {CREDENTIALS})
if [ -z "$KAFKA_S3_ACCESS_KEY" ] || [ -z "$KAFKA_S3_SECRET_KEY" ]; then
  echo "{CREDENTIALS} has no access_key and secret_key of the object store: bring the testbed up again" >&2; exit 78
fi
export KAFKA_S3_ACCESS_KEY KAFKA_S3_SECRET_KEY
exec "$@"
"""


def with_credentials(command: Sequence[str]) -> tuple[str, ...]:
    """The same command, with the store's credentials in its environment."""
    return ("sh", "-c", _WITH_CREDENTIALS, "with-credentials", *command)


def store_endpoint(topology: Topology, plan: AddressPlan) -> str:
    """Where the store answers, on the data network. Raises ValueError for a topology without one."""
    if not topology.objectstores:
        raise ValueError(f"{topology.name} has no host with the role objectstore")
    return endpoints(topology, plan)[0]


def shared_storage_defaults() -> dict[str, str]:
    """Properties that a topology may set otherwise."""
    return {
        # On by default: it would move partitions on its own, also while an experiment measures.
        BALANCER: "false",
        "s3.telemetry.metrics.exporter.uri": f"prometheus://?host=127.0.0.1&port={METRICS_PORT}",
    }


def shared_storage_properties(topology: Topology, plan: AddressPlan, cluster_id: str | None) -> Mapping[str, str]:
    """Properties that follow from the topology. With `cluster_id` a node formats its folders by itself."""
    where = f"region={REGION}&endpoint={store_endpoint(topology, plan)}&pathStyle=true"
    return {
        SHARED_STORAGE_KEY: "true",
        "s3.data.buckets": f"0@s3://{AUTOMQ_DATA}?{where}",
        "s3.ops.buckets": f"1@s3://{AUTOMQ_OPS}?{where}",
        "s3.wal.path": f"0@s3://{AUTOMQ_DATA}?{where}",
        **dict.fromkeys(ONE_REPLICA, "1"),
        **({} if cluster_id is None else {"cluster.id": cluster_id}),
    }


CLIENT_PORT = 9092
REPLICATION_PORT = 9093
"""Followers fetch on a port of their own, which separates the bytes of replication from those of clients."""
CONTROLLER_PORT = 9094
SECURE_PORT = 9095
"""Where a broker listens with TLS or a login, if its properties say how: see `secure_protocol`."""
DATA_DIR = "/var/lib/kafka"
_SECURE = "listener.name.secure."

FETCH_TUNED: Mapping[str, str] = {
    # With these a throttled follower asks again within 50 ms instead of up to a second, for 1 MiB at a time:
    # its rate is then smooth enough to be held against the quota (docs/throttle-bound.md).
    "replica.fetch.response.max.bytes": "1048576",
    "replica.fetch.wait.max.ms": "50",
    "replica.fetch.backoff.ms": "50",
}


def voters(topology: Topology, plan: AddressPlan) -> str:
    """The static quorum, `1@198.19.0.11:9094,…`."""
    return ",".join(f"{host.node_id}@{plan.data_ip(host.name)}:{CONTROLLER_PORT}" for host in topology.controllers)


def bootstrap_servers(topology: Topology, plan: AddressPlan) -> tuple[str, ...]:
    """Where clients on the data network (and the driver) connect."""
    return tuple(f"{plan.data_ip(host.name)}:{CLIENT_PORT}" for host in topology.brokers)


def properties_of(capability: Capability, topology: Topology) -> dict[str, str]:
    """The properties that only a release with this capability knows; another one would warn of each."""
    if capability is not Capability.SHARE_GROUPS:
        return {}
    return {
        "share.coordinator.state.topic.replication.factor": _replicas(topology),
        "share.coordinator.state.topic.min.isr": "1",
    }


def _replicas(topology: Topology) -> str:
    return str(min(3, len(topology.brokers)))


def secure_protocol(properties: Mapping[str, str]) -> str | None:
    """The protocol of the listener SECURE, or None without one.

    It is there when there are properties `listener.name.secure.…`, as Kafka names what belongs to one listener: TLS
    when they say anything of `ssl.`, a login when they say anything of SASL. The testbed itself goes on using its
    own listeners.
    """
    names = [name.removeprefix(_SECURE) for name in properties if name.startswith(_SECURE)]
    if not names:
        return None
    sasl = "SASL_" if any("sasl." in name for name in names) else ""
    return sasl + ("SSL" if any(name.startswith("ssl.") for name in names) else "PLAINTEXT")


def secure_servers(topology: Topology, plan: AddressPlan) -> tuple[str, ...]:
    """Where clients find the listener SECURE, of a topology that has it."""
    return tuple(f"{plan.data_ip(host.name)}:{SECURE_PORT}" for host in topology.brokers)


def server_properties(
    topology: Topology,
    host: DeclaredHost,
    plan: AddressPlan,
    overlay: Mapping[str, str] | None = None,
    *,
    able: Collection[Capability] = (),
    manager: RemoteStorageManager | None = None,
    cluster_id: str | None = None,
) -> dict[str, str]:
    """Every property of one node: what the testbed owns, its defaults, the topology's, then `overlay`.

    `able` is what the node's release can do, `manager` what a topology with remote storage has it in. `cluster_id` is
    for one that formats its folders by itself.
    """
    if host.node_id is None:
        raise ValueError(f"{host.name} is a {host.role.value}, it runs no Kafka node")
    replicas = _replicas(topology)
    shared = Capability.SHARED_STORAGE in able
    properties = {
        # Leaders stay where an experiment put them.
        "auto.leader.rebalance.enable": "false",
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        **{key: value for each in able for key, value in properties_of(each, topology).items()},
        **(remote_storage_properties(topology, host, plan, manager) if manager else {}),
        **(shared_storage_defaults() if shared else {}),
        **host.properties,
        **(overlay or {}),
        **(shared_storage_properties(topology, plan, cluster_id) if shared else {}),
        "node.id": str(host.node_id),
        "broker.rack": host.rack,
        "log.dirs": DATA_DIR,
        "controller.quorum.voters": voters(topology, plan),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "REPLICATION",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,REPLICATION:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    ip = plan.data_ip(host.name)
    replication_nic, _nic = host.nic_for(NicUse.REPLICATION)
    replication_ip = plan.data_ip(host.name, replication_nic)
    broker = f"CLIENT://{ip}:{CLIENT_PORT},REPLICATION://{replication_ip}:{REPLICATION_PORT}"
    secure = secure_protocol(properties)
    if secure is not None:
        broker += f",SECURE://{ip}:{SECURE_PORT}"
        properties["listener.security.protocol.map"] += f",SECURE:{secure}"
    controller = f"CONTROLLER://{ip}:{CONTROLLER_PORT}"
    roles = [role for role, has in (("broker", host.is_broker), ("controller", host.is_controller)) if has]
    properties["process.roles"] = ",".join(roles)
    properties["listeners"] = ",".join(
        listener for listener, has in ((broker, host.is_broker), (controller, host.is_controller)) if has
    )
    if host.is_broker:
        properties["advertised.listeners"] = broker
    else:
        # A controller has no rack, and advertises only its own listener.
        del properties["broker.rack"]
    return properties


def render(properties: Mapping[str, str]) -> str:
    """The text of a Java properties file; backslashes are escaped as `java.util.Properties` reads them."""
    return "".join(f"{key}={value}\n".replace("\\", "\\\\") for key, value in sorted(properties.items()))


CONFIG_DIR = "/etc/testbed/kafka"
PROPERTIES = f"{CONFIG_DIR}/server.properties"
LOG = "/var/log/kafka/server.log"
PID_FILE = "/run/kafka.pid"


def node_files(properties: Mapping[str, str], meta: str, checkpoint: bytes | None) -> dict[str, bytes]:
    """Path → content of everything a node needs, its formatted (empty) data directory included.

    `meta` and `checkpoint` are what `kafka-storage format` would write: `meta.properties` and the release's
    `bootstrap.checkpoint`, which finalizes the release's features. Without a checkpoint the node formats it itself.
    """
    if checkpoint is None:
        return {PROPERTIES: render(properties).encode()}
    return {
        PROPERTIES: render(properties).encode(),
        f"{DATA_DIR}/meta.properties": meta.encode(),
        f"{DATA_DIR}/bootstrap.checkpoint": checkpoint,
    }


class Node(Daemon):
    """The Kafka process of one host. It shuts down controlled."""

    def __init__(self, host: Host, command: Sequence[str]) -> None:
        super().__init__(host, "Kafka", command, pid_file=PID_FILE, log=LOG)

    def configure(self, properties: Mapping[str, str]) -> None:
        """Replace the properties file; in force from the next start."""
        self.host.put(render(properties).encode(), PROPERTIES)
