"""A Kafka node on a host: its `server.properties`, its files, and its process.

The properties follow from the topology: listeners and quorum, remote log storage (KIP-405), and the settings of a node
with partitions in an object store.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

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
    """Return a node's properties in a topology with `remote_storage`. Raise `TestbedError` when the class is unknown.

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
        # A client listener: its bytes must not count as replication's.
        "remote.log.metadata.manager.listener.name": "CLIENT",
        f"{METADATA_PREFIX}remote.log.metadata.topic.replication.factor": str(min(3, len(topology.brokers))),
        # Every broker reads the partitions that it leads: Kafka's default of 50 would only lengthen a start.
        f"{METADATA_PREFIX}remote.log.metadata.topic.num.partitions": str(METADATA_PARTITIONS),
        # Newer releases require two in-sync replicas, which a single or last remaining broker does not have.
        f"{METADATA_PREFIX}remote.log.metadata.topic.min.isr": "1",
        # Uploaded segments leave the local log within seconds, instead of minutes.
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
    # These values are in the credentials file, not here: no printed property contains them.
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
"""The store has the copies: a partition has one replica, and the broker refuses a topic with more."""
FLAGS = ("-XX:MaxDirectMemorySize=512m", "-XX:+ExitOnOutOfMemoryError", "-Dio.netty.allocator.maxOrder=11")

# A shell reads the credentials into the environment: no command line ever contains them.
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
    """Return the same command, with the store's credentials in its environment."""
    return ("sh", "-c", _WITH_CREDENTIALS, "with-credentials", *command)


_SHARED_STORAGE_DEFAULTS = {
    # On by default: it would also move partitions while an experiment measures.
    BALANCER: "false",
    "s3.telemetry.metrics.exporter.uri": f"prometheus://?host=127.0.0.1&port={METRICS_PORT}",
}


def shared_storage_properties(topology: Topology, plan: AddressPlan, cluster_id: str | None) -> Mapping[str, str]:
    """Return properties that follow from the topology. With `cluster_id` a node formats its folders by itself."""
    where = f"region={REGION}&endpoint={endpoints(topology, plan)[0]}&pathStyle=true"
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
"""The port from which followers fetch; it separates the bytes of replication from those of clients."""
CONTROLLER_PORT = 9094
SECURE_PORT = 9095
"""The port with TLS or a login, if the broker's properties configure it: see `secure_protocol`."""
DRIVER_PORT = 9096
"""The port on the management network, whose links are not shaped: preloads and audits pass there."""
PORTS = (CLIENT_PORT, REPLICATION_PORT, CONTROLLER_PORT, SECURE_PORT, DRIVER_PORT)
DATA_DIR = "/var/lib/kafka"
_OWN_LISTENERS = ("CLIENT", "REPLICATION", "CONTROLLER", "DRIVER")
_SECURE = "listener.name.secure."

FETCH_TUNED: Mapping[str, str] = {
    # With these a throttled follower asks again within 50 ms instead of up to a second, for 1 MiB at a time:
    # its rate is then smooth enough for a comparison with the quota (docs/throttle-bound.md).
    # The least steady mean of the criterion `steady-mean` follows from the 50 ms.
    "replica.fetch.response.max.bytes": "1048576",
    "replica.fetch.wait.max.ms": "50",
    "replica.fetch.backoff.ms": "50",
}


def voters(topology: Topology, plan: AddressPlan) -> str:
    """Return the static quorum, `1@198.19.0.11:9094,…`."""
    return ",".join(f"{host.node_id}@{plan.data_ip(host.name)}:{CONTROLLER_PORT}" for host in topology.controllers)


def bootstrap_servers(topology: Topology, plan: AddressPlan) -> tuple[str, ...]:
    """Return the addresses to which clients on the data network (and the driver) connect."""
    return tuple(f"{plan.data_ip(host.name)}:{CLIENT_PORT}" for host in topology.brokers)


def driver_servers(topology: Topology, plan: AddressPlan) -> tuple[str, ...]:
    """Return the brokers' addresses on the management network, whose links are not shaped; else those of clients."""
    if not topology.has_unshaped_network:
        return bootstrap_servers(topology, plan)
    return tuple(f"{plan.management_ip(host.name)}:{DRIVER_PORT}" for host in topology.brokers)


def properties_of(capability: Capability, topology: Topology) -> dict[str, str]:
    """Return the properties that only a release with this capability knows; another one would warn of each."""
    if capability is not Capability.SHARE_GROUPS:
        return {}
    return {
        "share.coordinator.state.topic.replication.factor": _replicas(topology),
        "share.coordinator.state.topic.min.isr": "1",
    }


def _replicas(topology: Topology) -> str:
    return str(min(3, len(topology.brokers)))


def secure_protocol(properties: Mapping[str, str]) -> str | None:
    """Return the protocol of the listener SECURE, or None without one.

    The listener exists when there are properties `listener.name.secure.…`, Kafka's prefix for one listener. With any
    `ssl.` property it uses TLS, with any SASL property a login. The testbed itself still uses its own listeners.
    """
    names = [name.removeprefix(_SECURE) for name in properties if name.startswith(_SECURE)]
    if not names:
        return None
    sasl = "SASL_" if any("sasl." in name for name in names) else ""
    return sasl + ("SSL" if any(name.startswith("ssl.") for name in names) else "PLAINTEXT")


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
    """Return every property of one node: those of the testbed, its defaults, the topology's, then `overlay`.

    `able` are the capabilities of the node's release; `manager` is the storage manager of a topology with remote
    storage. `cluster_id` is for a node that formats its folders by itself.
    """
    if host.node_id is None:
        raise ValueError(f"{host.name} is a {host.role.value}, it runs no Kafka node")
    replicas = _replicas(topology)
    shared = Capability.SHARED_STORAGE in able
    properties = {
        # Leaders stay where the experiment placed them.
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
        **(_SHARED_STORAGE_DEFAULTS if shared else {}),
        **host.properties,
        **(overlay or {}),
        **(shared_storage_properties(topology, plan, cluster_id) if shared else {}),
        "node.id": str(host.node_id),
        "broker.rack": host.rack,
        "log.dirs": DATA_DIR,
        "controller.quorum.voters": voters(topology, plan),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "REPLICATION",
        "listener.security.protocol.map": ",".join(f"{listener}:PLAINTEXT" for listener in _OWN_LISTENERS),
    }
    ip = plan.data_ip(host.name)
    replication_nic, _nic = host.nic_for(NicUse.REPLICATION)
    replication_ip = plan.data_ip(host.name, replication_nic)
    broker = f"CLIENT://{ip}:{CLIENT_PORT},REPLICATION://{replication_ip}:{REPLICATION_PORT}"
    if topology.has_unshaped_network:
        broker += f",DRIVER://{plan.management_ip(host.name)}:{DRIVER_PORT}"
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
    """Return the text of a Java properties file; backslashes are escaped as `java.util.Properties` reads them."""
    return "".join(f"{key}={value}\n".replace("\\", "\\\\") for key, value in sorted(properties.items()))


CONFIG_DIR = "/etc/testbed/kafka"
PROPERTIES = f"{CONFIG_DIR}/server.properties"
LOG = "/var/log/kafka/server.log"
PID_FILE = "/run/kafka.pid"
_ENDS = ("TERM", "KILL")
"""The signals by which the testbed ends Kafka. The others that it sends (STOP, CONT, QUIT) end no process."""
ENDED = "The process ended with status"
"""The begin of the line that follows Kafka's own in its log when its process has ended."""
_AT_END = f'date -u "+[%Y-%m-%d %H:%M:%S,%3N] INFO {ENDED} $status (testbed)" >> {LOG}'


def node_files(properties: Mapping[str, str], meta: str, checkpoint: bytes | None) -> dict[str, bytes]:
    """Return path → content of all files of a node, its formatted (empty) data directory included.

    `meta` and `checkpoint` are the output of `kafka-storage format`: `meta.properties` and the release's
    `bootstrap.checkpoint`, which finalizes the release's features. Without a checkpoint the node formats its folder
    itself.
    """
    files = {PROPERTIES: render(properties).encode()}
    if checkpoint is not None:
        files |= {f"{DATA_DIR}/meta.properties": meta.encode(), f"{DATA_DIR}/bootstrap.checkpoint": checkpoint}
    return files


class Node(Daemon):
    """The Kafka process of one host; its shutdown is controlled.

    `ending` is called with the signal, such as `KILL`, just before the testbed ends the process by it.
    """

    def __init__(
        self, host: Host, command: Sequence[str], ending: Callable[[str], None] = lambda _signal: None
    ) -> None:
        super().__init__(host, "Kafka", command, pid_file=PID_FILE, log=LOG, at_end=_AT_END)
        self._ending = ending

    def configure(self, properties: Mapping[str, str]) -> None:
        """Replace the properties file; it takes effect at the next start."""
        self.host.put(render(properties).encode(), PROPERTIES)

    def _send(self, pid: int, signal: str, *, check: bool = False) -> None:
        if signal in _ENDS:
            self._ending(signal)
        super()._send(pid, signal, check=check)
