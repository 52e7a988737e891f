"""Hosts of a topology, and the software that runs on them. Immutable values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from testbed.topology.inventory import SshAccess
from testbed.topology.jvm import OWN, Jvm
from testbed.topology.links import Disk, Nic, NicUse


class Role(StrEnum):
    """The role of a host."""

    BROKER = "broker"
    CONTROLLER = "controller"
    BOTH = "both"
    CLIENT = "client"
    OBJECTSTORE = "objectstore"

    @property
    def runs_kafka(self) -> bool:
        """Return whether such a host has a Kafka node."""
        return self not in (Role.CLIENT, Role.OBJECTSTORE)

    @property
    def stores_data(self) -> bool:
        """Return whether such a host may have a separate disk."""
        return self is not Role.CLIENT

    @property
    def in_words(self) -> str:
        """Return `a client`, `an object store`: the role in messages."""
        return {Role.OBJECTSTORE: "an object store"}.get(self, f"a {self.value}")


@dataclass(frozen=True, slots=True)
class RemoteStorage:
    """KIP-405's remote log storage of every broker, on the object stores. Each topic's settings enable it."""

    manager: str | None = None
    """A folder of jars with a RemoteStorageManager; None for the testbed's own."""


@dataclass(frozen=True, slots=True)
class AutomqSource:
    """AutoMQ instead of Apache Kafka, from a release's folder or tarball (`path`) or from an `image`.

    With both None, TESTBED_AUTOMQ in the environment names it.
    """

    path: str | None = None
    image: str | None = None


@dataclass(frozen=True, slots=True)
class DeclaredHost:
    """One host. `node_id` is None and `properties` empty exactly for clients and object stores.

    `kafka_version` is None for those, and for all hosts where the software is not Apache Kafka.

    `nic` is the first NIC, the one for data; `more_nics` are the others. All its processes share `cpus` CPUs, in
    hundredths; None: all CPUs of the machine.
    """

    name: str
    role: Role
    rack: str
    nic: Nic
    node_id: int | None = None
    kafka_version: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    more_nics: tuple[Nic, ...] = ()
    disk: Disk | None = None
    cpus: float | None = None
    jvm: Jvm = OWN
    """The JVM of its Kafka."""
    ssh: SshAccess | None = None
    """How a machine that exists is reached; None: the testbed makes the host."""
    machine: str | None = None
    """The machine whose engine has it; None exactly for a topology without machines."""

    def __post_init__(self) -> None:
        ordered = dict(sorted(self.properties.items()))
        object.__setattr__(self, "properties", MappingProxyType(ordered))

    @property
    def nics(self) -> tuple[Nic, ...]:
        """Return every NIC, the one for data first."""
        return (self.nic, *self.more_nics)

    @property
    def access(self) -> SshAccess:
        """Return how this host is reached; it is a machine that exists."""
        assert self.ssh is not None
        return self.ssh

    def nic_for(self, use: NicUse) -> tuple[int, Nic]:
        """Return the NIC for `use` (the first one, unless another is for it) and its number among `nics`."""
        return next(((number, nic) for number, nic in enumerate(self.nics) if nic.use is use), (0, self.nic))

    @property
    def is_broker(self) -> bool:
        """Return whether it holds partitions."""
        return self.role in (Role.BROKER, Role.BOTH)

    @property
    def is_controller(self) -> bool:
        """Return whether it votes in the metadata quorum."""
        return self.role in (Role.CONTROLLER, Role.BOTH)


def node_ids(hosts: Iterable[DeclaredHost]) -> dict[str, int]:
    """Return the node id of each of these hosts that runs Kafka, by the host's name."""
    return {host.name: host.node_id for host in hosts if host.node_id is not None}


def names_by_id(hosts: Iterable[DeclaredHost]) -> dict[int, str]:
    """Return the name of each of these hosts that runs Kafka, by its node id."""
    return {node_id: name for name, node_id in node_ids(hosts).items()}
