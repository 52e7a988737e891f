"""Which containers a topology becomes. Pure: values in, values out."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.kafka.node import DATA_DIR, node_files, server_properties
from testbed.network.addresses import AddressPlan
from testbed.objectstore import server
from testbed.objectstore.server import Credentials
from testbed.probes.recorder import AGENT_PATH
from testbed.provision.containers import Spec
from testbed.provision.disks import DiskMount
from testbed.provision.keys import KeyPair
from testbed.provision.labels import Labels
from testbed.provision.software import KafkaSoftware
from testbed.software.format import meta_properties, new_id
from testbed.topology.host import Host, Role
from testbed.topology.model import Topology

HOST_KEY = "/etc/testbed/ssh/host_key"
AUTHORIZED_KEYS = "/etc/testbed/ssh/authorized_keys"
SSHD_CONFIG = "/etc/testbed/ssh/sshd_config"

_SSHD = """\
ListenAddress {ip}
HostKey {host_key}
AuthorizedKeysFile {authorized_keys}
AllowUsers root
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
MaxSessions 100
MaxStartups 100
PidFile none
Subsystem sftp internal-sftp
"""


@dataclass(frozen=True, slots=True)
class Identity:
    """What is random about a testbed, so that the rest of the plan is a function."""

    cluster_id: str
    login: KeyPair
    host_keys: Mapping[str, KeyPair]
    store: Credentials | None = None
    """Of the object store, where the topology has one."""

    @classmethod
    def generate(cls, topology: Topology) -> "Identity":
        """New keys and a new cluster id."""
        keys = {host.name: KeyPair.generate() for host in topology.hosts}
        return cls(new_id(), KeyPair.generate(), keys, Credentials.generate() if topology.objectstores else None)


def management_network(labels: Labels) -> str:
    """The name of the testbed's management network in the engine.

    With its slot: an `up` that was killed may have asked the engine for a network that appears only after the next `up`
    has cleaned up, and two networks of one name cannot be told apart.
    """
    return f"testbed-{labels.name}-{labels.slot}"


def fabric_spec(image: str, labels: Labels) -> Spec:
    """The container whose network namespace holds the bridges."""
    return Spec(
        name=f"testbed-{labels.name}-fabric",
        image=image,
        command=["sleep", "infinity"],
        labels=labels.of("fabric"),
        hostname="fabric",
        network=None,
        ip=None,
        read_only_mounts={},
        files={},
    )


def host_spec(
    host: Host,
    topology: Topology,
    plan: AddressPlan,
    identity: Identity,
    image: str,
    labels: Labels,
    software: KafkaSoftware | None,
    overlay: Mapping[str, str],
    disk: DiskMount | None = None,
    minio: Path | None = None,
) -> Spec:
    """One host: an SSH server, the probe's agent, and what its role needs ready to start.

    That is a formatted node for Kafka's roles, and for an object store the `minio` binary.
    """
    ip = str(plan.management_ip(host.name))
    agent = Path(__file__).parents[1] / "probes" / "agent.py"
    files = {
        HOST_KEY: identity.host_keys[host.name].private,
        AUTHORIZED_KEYS: (identity.login.public + "\n").encode(),
        SSHD_CONFIG: _SSHD.format(ip=ip, host_key=HOST_KEY, authorized_keys=AUTHORIZED_KEYS).encode(),
        AGENT_PATH: agent.read_bytes(),
        "/run/sshd/.keep": b"",
    }
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
    serves = host.role is Role.OBJECTSTORE
    secret = _store_files(host, identity.store)
    mounts = dict(software.mounts) if software else {}
    if serves and minio is not None:
        mounts[str(minio)] = server.BINARY
    return Spec(
        name=f"testbed-{labels.name}-{host.name}",
        image=image,
        command=["/usr/sbin/sshd", "-D", "-e", "-f", SSHD_CONFIG],
        labels=labels.of("host", host.name),
        hostname=host.name,
        network=management_network(labels),
        ip=ip,
        read_only_mounts=mounts,
        files={**files, **secret},
        private_files=(HOST_KEY, AUTHORIZED_KEYS, *secret),
        volumes={disk.volume: server.DATA_DIR if serves else DATA_DIR} if disk else {},
        bandwidths={disk.device: disk.bandwidth_bytes_per_s} if disk and disk.bandwidth_bytes_per_s else {},
        names=_names(topology, plan),
        cpus=host.cpus,
    )


def _store_files(host: Host, credentials: Credentials | None) -> dict[str, bytes]:
    """What a host that serves the object store, or may use it, is given of the credentials; private."""
    if credentials is None or not host.role.stores_data:
        return {}
    return dict(server.server_files(credentials) if host.role is Role.OBJECTSTORE else server.user_files(credentials))


def _names(topology: Topology, plan: AddressPlan) -> dict[str, str]:
    """The data addresses of all hosts, by host and NIC.

    A broker looks for the name of its own address at each SASL login: where no DNS answers, that takes 10 s and more.
    """
    return {
        f"{host.name}.{nic.name}": str(plan.data_ip(host.name, index))
        for host in topology.hosts
        for index, nic in enumerate(host.nics)
    }
