"""The containers of a topology, and the files of its hosts. Pure: values in, values out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed.hosts.host import AGENT_PATH
from testbed.kafka.node import DATA_DIR, node_files, server_properties
from testbed.network.addresses import AddressPlan
from testbed.network.overlay import fabric_place
from testbed.objectstore import server
from testbed.objectstore.server import Credentials
from testbed.provision.containers import ContainerSpec, Labels, name_of_fabric, name_of_host
from testbed.provision.machine import DiskMount
from testbed.provision.software import KafkaSoftware
from testbed.provision.state import KeyPair
from testbed.software.format import meta_properties, new_id
from testbed.software.image import ImageRef
from testbed.topology.host import DeclaredHost, Role
from testbed.topology.model import Topology


@dataclass(frozen=True, slots=True)
class Equipment:
    """The software of hosts that are all clients. The testbed gives it to every host, and starts none of it."""

    image: ImageRef
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Path on the machine → path in the container, read-only."""
    users: tuple[str, ...] = ()
    """The image's users, besides root, that log in with the testbed's key."""
    capabilities: tuple[str, ...] = ()
    """Linux capabilities besides the engine's usual ones, such as NET_ADMIN."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of every login."""


HOST_KEY = "/etc/testbed/ssh/host_key"
AUTHORIZED_KEYS = "/etc/testbed/ssh/authorized_keys"
SSHD_CONFIG = "/etc/testbed/ssh/sshd_config"

_SSHD = """\
ListenAddress {ip}
HostKey {host_key}
AuthorizedKeysFile {authorized_keys}
AllowUsers {users}
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
MaxSessions 100
MaxStartups 100
PidFile none
Subsystem sftp internal-sftp
{environment}"""


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """The random values of a testbed, so that the rest of the plan is a function."""

    cluster_id: str
    login: KeyPair
    host_keys: Mapping[str, KeyPair]
    store: Credentials | None = None
    """The credentials of the object store, where the topology has one."""

    @classmethod
    def generate(cls, topology: Topology) -> "ClusterIdentity":
        """Return new keys and a new cluster id."""
        keys = {host.name: KeyPair.generate() for host in topology.hosts}
        return cls(new_id(), KeyPair.generate(), keys, Credentials.generate() if topology.objectstores else None)


def management_network(labels: Labels) -> str:
    """Return the name of the testbed's management network in the engine.

    The name contains the slot. A killed `up` may have requested a network that appears only after the next `up` has
    cleaned up, and two networks of one name cannot be distinguished.
    """
    return f"testbed-{labels.name}-{labels.slot}"


def fabric_spec(image: str, labels: Labels, machine: str = "") -> ContainerSpec:
    """Return the container on a machine whose network namespace has the bridges."""
    return ContainerSpec(
        name=name_of_fabric(labels.name),
        image=image,
        command=["sleep", "infinity"],
        labels=labels.of("fabric", fabric_place(machine)),
        hostname="fabric",
        machine=machine,
    )


def host_spec(
    host: DeclaredHost,
    topology: Topology,
    plan: AddressPlan,
    identity: ClusterIdentity,
    image: str,
    labels: Labels,
    software: KafkaSoftware | None,
    overlay: Mapping[str, str],
    disk: DiskMount | None = None,
    minio: Path | None = None,
    equipment: Equipment | None = None,
) -> ContainerSpec:
    """Return one host: an SSH server, the probe's agent, and the software of its role, ready to start.

    That is a formatted node for Kafka's roles, the `minio` binary for an object store, and the `equipment` otherwise.
    """
    ip = str(plan.management_ip(host.name))
    login = {
        HOST_KEY: identity.host_keys[host.name].private,
        AUTHORIZED_KEYS: (identity.login.public + "\n").encode(),
        SSHD_CONFIG: _SSHD.format(
            # The data NIC comes after sshd: software of the user's own may reach a host by that address, too.
            ip="0.0.0.0" if equipment else ip,
            host_key=HOST_KEY,
            authorized_keys=AUTHORIZED_KEYS,
            users=" ".join(("root", *(equipment.users if equipment else ()))),
            environment=_set_env(equipment.environment if equipment else {}),
        ).encode(),
        "/run/sshd/.keep": b"",
    }
    files, secret = host_files(host, topology, plan, identity, software, overlay)
    serves = host.role is Role.OBJECTSTORE
    mounts = dict(software.mounts) if software else dict(equipment.mounts) if equipment else {}
    if serves and minio is not None:
        mounts[str(minio)] = server.BINARY
    return ContainerSpec(
        name=name_of_host(labels.name, host.name),
        image=image,
        command=["/usr/sbin/sshd", "-D", "-e", "-f", SSHD_CONFIG],
        labels=labels.of("host", host.name),
        hostname=host.name,
        network=management_network(labels),
        ip=ip,
        read_only_mounts=mounts,
        files={**login, **files},
        # sshd reads the keys of a login as its user.
        private_files=(HOST_KEY, *(() if equipment and equipment.users else (AUTHORIZED_KEYS,)), *secret),
        volumes={disk.volume: server.DATA_DIR if serves else DATA_DIR} if disk else {},
        bandwidths={disk.device: limit} if disk and host.disk and (limit := host.disk.bandwidth_bytes_per_s) else {},
        names=nic_names(topology.hosts, plan) | (host_names(topology, plan) if equipment else {}),
        cpus=host.cpus,
        machine=topology.remote_machine_of(host),
        capabilities=equipment.capabilities if equipment else (),
    )


def host_files(
    host: DeclaredHost,
    topology: Topology,
    plan: AddressPlan,
    identity: ClusterIdentity,
    software: KafkaSoftware | None,
    overlay: Mapping[str, str],
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return path → content of a host's files, and the paths of the private ones: the agent, its node, credentials."""
    agent = Path(__file__).parents[1] / "probes" / "agent.py"
    files = {AGENT_PATH: agent.read_bytes()}
    if software is not None and host.node_id is not None:
        properties = server_properties(
            topology,
            host,
            plan,
            overlay,
            able=software.capabilities,
            manager=software.manager,
            cluster_id=identity.cluster_id,
        )
        meta = meta_properties(identity.cluster_id, host.node_id, new_id())
        files |= node_files(properties, meta, software.checkpoint)
    secret: Mapping[str, bytes] = {}
    if identity.store is not None and host.role.stores_data:
        of_role = server.server_files if host.role is Role.OBJECTSTORE else server.user_files
        secret = of_role(identity.store)
    return {**files, **secret}, tuple(secret)


def nic_names(hosts: Iterable[DeclaredHost], plan: AddressPlan) -> dict[str, str]:
    """Return the data addresses of hosts, by host and NIC.

    A broker looks up the name of its own address at each SASL login: without a DNS answer that takes 10 s and more.
    """
    return {
        f"{host.name}.{nic.name}": str(plan.data_ip(host.name, index))
        for host in hosts
        for index, nic in enumerate(host.nics)
    }


def _set_env(variables: Mapping[str, str]) -> str:
    """Return sshd's line for the variables: it obeys the first such line alone. Empty without variables."""
    words = " ".join(f'"{name}={value}"' for name, value in variables.items())
    return f"SetEnv {words}\n" if words else ""


def host_names(topology: Topology, plan: AddressPlan) -> dict[str, str]:
    """Return the data address of each host by its name alone, so that a name leads to the shaped NIC."""
    return {host.name: str(plan.data_ip(host.name)) for host in topology.hosts}
