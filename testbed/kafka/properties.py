"""A node's `server.properties`, rendered from the topology. Pure."""

from collections.abc import Collection, Mapping

from testbed.kafka import shared_storage
from testbed.kafka.capabilities import Capability
from testbed.kafka.remote_storage import remote_storage_properties
from testbed.network.addresses import AddressPlan
from testbed.software.rsm import RemoteStorageManager
from testbed.topology.links import NicUse
from testbed.topology.model import Host, Topology

CLIENT_PORT = 9092
REPLICATION_PORT = 9093
"""Followers fetch on a port of their own, so that replication's bytes can be told from the clients'."""
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
    host: Host,
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
        **(shared_storage.defaults() if shared else {}),
        **host.properties,
        **(overlay or {}),
        **(shared_storage.owned(topology, plan, cluster_id) if shared else {}),
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
