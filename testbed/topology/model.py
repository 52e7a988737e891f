"""The resolved topology: the result of defaults, roles and hosts. Immutable and checked.

`testbed.topology.find` builds it from YAML. Python code may call these classes. The construction of an invalid
Topology raises TopologyError with every violation.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from testbed.topology.host import AutomqSource, DeclaredHost, RemoteStorage, Role
from testbed.topology.inventory import Provision, provision_problems
from testbed.topology.jvm import Jvm
from testbed.topology.links import Link, Nic
from testbed.topology.machines import EngineMachine, machine_problems
from testbed.topology.rules import violations
from testbed.units import format_bit_rate, format_byte_rate, format_share, format_size
from testbed.yaml_document import FormError, Problem, Violation, field_name


class TopologyError(FormError):
    """The topology is unusable; `problems` holds every mistake, in the order of the file.

    `violations` are the broken rules of a `Topology` that cannot be constructed.
    """

    def __init__(self, problems: Iterable[Problem], violations: Sequence[Violation] = ()) -> None:
        super().__init__(problems)
        self.violations = tuple(violations)


@dataclass(frozen=True, slots=True)
class Topology:
    """Hosts in racks. `source` names its origin and is no part of its identity.

    `uplinks` has the racks whose link to the core is shaped; the other links have the machine's own speed.
    """

    name: str
    hosts: tuple[DeclaredHost, ...]
    racks: tuple[str, ...] = ("r1",)
    description: str = ""
    source: str | None = field(default=None, compare=False)
    uplinks: Mapping[str, Link] = field(default_factory=dict, hash=False)
    remote_storage: RemoteStorage | None = None
    automq: AutomqSource | None = None
    provision: Provision = "containers"
    machines: tuple[EngineMachine, ...] = ()
    """The machines whose engines have the hosts; empty: the local engine has them all."""
    mtu: int | None = None
    """The MTU of the data NICs on several machines; None: what the network between them allows."""
    places: tuple[str, ...] = ()
    """The names of all hosts by number, also of removed ones; empty while no host was removed or added."""

    def __post_init__(self) -> None:
        in_order = {rack: self.uplinks[rack] for rack in (*self.racks, *self.uplinks) if rack in self.uplinks}
        object.__setattr__(self, "uplinks", MappingProxyType(in_order))
        if found := [*violations(self), *provision_problems(self), *machine_problems(self)]:
            file = self.source or f"topology {self.name!r}"
            problems = [Problem(file, None, None, field_name(each.path), each.message) for each in found]
            raise TopologyError(problems, found)

    @property
    def exists(self) -> bool:
        """Return whether its hosts are machines that exist, which the testbed does not make."""
        return self.provision == "inventory"

    @property
    def has_unshaped_network(self) -> bool:
        """Return whether the driver reaches each broker past its NIC: all are containers of the local engine."""
        return not self.exists and not self.remote_machines

    @property
    def remote_machines(self) -> tuple[EngineMachine, ...]:
        """Return the machines whose engine is reached over SSH."""
        return tuple(machine for machine in self.machines if not machine.is_local)

    def remote_machine_of(self, host: DeclaredHost) -> str:
        """Return the name of the machine that a host is on; empty for the machine on which the testbed runs."""
        return next((machine.name for machine in self.remote_machines if machine.name == host.machine), "")

    @property
    def brokers(self) -> tuple[DeclaredHost, ...]:
        """Return the hosts that hold partitions, in the file's order."""
        return tuple(host for host in self.hosts if host.is_broker)

    @property
    def controllers(self) -> tuple[DeclaredHost, ...]:
        """Return the hosts that vote in the metadata quorum, in the file's order."""
        return tuple(host for host in self.hosts if host.is_controller)

    @property
    def clients(self) -> tuple[DeclaredHost, ...]:
        """Return the hosts for load, in the file's order."""
        return tuple(host for host in self.hosts if host.role is Role.CLIENT)

    @property
    def objectstores(self) -> tuple[DeclaredHost, ...]:
        """Return the hosts that run a server of the object store, in the file's order."""
        return tuple(host for host in self.hosts if host.role is Role.OBJECTSTORE)

    def host(self, name: str) -> DeclaredHost:
        """Return the host of this name. Raise KeyError, which names the hosts, when there is none."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise KeyError(f"no host {name!r} in {self.name}; there are {', '.join(h.name for h in self.hosts)}")

    @property
    def by_number(self) -> tuple[str, ...]:
        """Return the name at each number, also of removed hosts. A host's number decides its addresses and ports."""
        return self.places or tuple(host.name for host in self.hosts)

    @property
    def numbered(self) -> tuple[tuple[int, DeclaredHost], ...]:
        """Return every host with its number, in order."""
        return tuple((self.by_number.index(host.name), host) for host in self.hosts)

    def with_host(self, host: DeclaredHost) -> "Topology":
        """Return the topology with one more host; all others keep their numbers. A removed host gets its own again.

        Raise `TopologyError` when the host contradicts the others.
        """
        places = self.by_number if host.name in self.by_number else (*self.by_number, host.name)
        hosts = sorted((*self.hosts, host), key=lambda each: places.index(each.name))
        return replace(self, hosts=tuple(hosts), places=places)

    def without_host(self, name: str) -> "Topology":
        """Return the topology without a host; all others keep their numbers."""
        return replace(self, hosts=tuple(host for host in self.hosts if host.name != name), places=self.by_number)

    def with_kafka_version(self, version: str) -> "Topology":
        """Return the same topology with every Kafka host at this version of Apache Kafka."""
        hosts = (replace(h, kafka_version=version) if h.role.runs_kafka else h for h in self.hosts)
        return replace(self, hosts=tuple(hosts), automq=None)

    def with_heap(self, heap_bytes: int) -> "Topology":
        """Return the same topology with this heap for every broker that declares none."""
        hosts = (
            replace(h, jvm=replace(h.jvm, heap_bytes=heap_bytes)) if h.is_broker and h.jvm.heap_bytes is None else h
            for h in self.hosts
        )
        return replace(self, hosts=tuple(hosts))

    def to_document(self) -> dict[str, Any]:
        """Return a JSON-able dict in the form of the YAML files, without inheritance; `load_document` inverts it."""
        document: dict[str, Any] = {"name": self.name, "description": self.description}
        # Only the fields in use, so that a topology without them keeps its digest.
        if self.provision != "containers":
            document["provision"] = self.provision
        if self.machines:
            document["machines"] = {machine.name: machine.to_document() for machine in self.machines}
        if self.mtu is not None:
            document["mtu"] = self.mtu
        document["racks"] = _racks_document(self.racks, self.uplinks)
        if self.remote_storage is not None:
            document["remote_storage"] = _given(manager=self.remote_storage.manager)
        if self.automq is not None:
            document["software"] = {"automq": _given(path=self.automq.path, image=self.automq.image)}
        document["hosts"] = {host.name: _host_document(host) for host in self.hosts}
        return document

    def digest(self) -> str:
        """Return the hex SHA-256 over `to_document()`: equal for two files with the same meaning."""
        text = json.dumps(self.to_document(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()


def _racks_document(racks: tuple[str, ...], uplinks: Mapping[str, Link]) -> list[str] | dict[str, Any]:
    """Return the list of racks, or with shaped uplinks the mapping of racks to uplinks."""
    if not uplinks:
        return list(racks)
    return {rack: {"uplink": _link_document(uplinks[rack])} if rack in uplinks else {} for rack in racks}


def _given(**fields: str | None) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value is not None}


def _host_document(host: DeclaredHost) -> dict[str, Any]:
    document: dict[str, Any] = {"role": host.role.value, "rack": host.rack, **_given(machine=host.machine)}
    if host.more_nics:
        document["nics"] = {
            f"nic{number}" if host.ssh else nic.name: {**_link_document(nic), "use": nic.use.value, **_own(nic, host)}
            for number, nic in enumerate(host.nics)
        }
    else:
        document["nic"] = {**_own(host.nic, host, "name"), **_link_document(host.nic)}
    if host.ssh is not None:
        document["ssh"] = host.ssh.to_document()
    if host.disk is not None:
        document["disk"] = {"size": format_size(host.disk.size_bytes)}
        if host.disk.bandwidth_bytes_per_s is not None:
            document["disk"]["bandwidth"] = format_byte_rate(host.disk.bandwidth_bytes_per_s)
    if host.cpus is not None:
        document["cpus"] = float(host.cpus)
    if host.role.runs_kafka:
        document["node_id"] = host.node_id
        source = "path" if (host.kafka_version or "").startswith("/") else "version"
        document["kafka"] = {**_given(**{source: host.kafka_version}), "properties": dict(host.properties)}
        if jvm := _jvm_document(host.jvm):
            document["kafka"]["jvm"] = jvm
    return document


def _own(nic: Nic, host: DeclaredHost, name: str = "") -> dict[str, str]:
    """Return the NIC's device and address on a machine that exists; else its name, if `name` is the field for it."""
    if host.ssh is not None:
        return {"device": nic.name, **_given(address=nic.address)}
    return {name: nic.name} if name else {}


def _jvm_document(jvm: Jvm) -> dict[str, Any]:
    """Return the fields that are declared, so that a topology without them keeps its digest."""
    heap = None if jvm.heap_bytes is None else format_size(jvm.heap_bytes)
    return {**_given(heap=heap, gc=jvm.gc), **({"flags": list(jvm.flags)} if jvm.flags else {})}


def _link_document(link: Link) -> dict[str, str]:
    """Return the rates and bursts, and delay and loss where there are any."""
    document = {f"{side.name}_rate": format_bit_rate(side.rate_bps) for side in link.sides}
    document |= {f"{side.name}_burst": format_size(side.burst_bytes) for side in link.sides}
    for side in link.sides:
        prefix = "" if side.name == "tx" else "rx_"
        for name, value, text in (
            ("delay", side.impairment.delay_us, f"{side.impairment.delay_us}us"),
            ("jitter", side.impairment.jitter_us, f"{side.impairment.jitter_us}us"),
            ("loss", side.impairment.loss_ppm, format_share(side.impairment.loss_ppm)),
        ):
            if value:
                document[prefix + name] = text
    return document
