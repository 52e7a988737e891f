"""Several machines: the engines of a topology, how each is reached, and the machine of each host.

A machine is the local engine, or an engine that is reached over SSH. The fabrics of the machines are joined by VXLAN.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, WithJsonSchema

from testbed.form import Form, check, optional, text_schema
from testbed.suggestions import choices, did_you_mean, show
from testbed.topology.inventory import KNOWN_HOSTS, HostKey, NicAddress, SshAccess, UserFile
from testbed.yaml_document import FieldPath, Violation

if TYPE_CHECKING:
    from testbed.topology.host import DeclaredHost
    from testbed.topology.model import Topology

LOCAL = "local"
"""The engine of the machine on which the testbed runs."""
ENGINE = r"^(local|ssh://([a-z_][a-z0-9_-]{0,31}@)?[A-Za-z0-9][A-Za-z0-9.-]{0,252}(:[0-9]{1,5})?)$"
MAX_MACHINES = 8
MAX_SWITCHES = 16
"""Each switch of a rack on a machine has an address of its own; there are so many."""
MIN_MTU, MAX_MTU = 1280, 1500
"""Docker's default for the largest frame's payload is 1500; IP demands 1280 of IPv6, and Kafka's hosts run with it."""
VXLAN_BYTES = 50
"""What VXLAN adds to a packet: the frame's Ethernet header (14), VXLAN (8), UDP (8) and IPv4 (20)."""


@dataclass(frozen=True, slots=True)
class EngineMachine:
    """A machine with a container engine. `engine` is `local` or `ssh://[user@]host[:port]`.

    `key` is the path of a private key; None: the user's SSH agent and usual keys. `host_key` is a fingerprint or a
    public key; None: `known_hosts` has it. `address` is the machine's IPv4 address on the network between the machines;
    None: the address on which its SSH server was reached.
    """

    name: str
    engine: str = LOCAL
    key: str | None = None
    host_key: str | None = None
    known_hosts: str = KNOWN_HOSTS
    address: str | None = None

    @property
    def is_local(self) -> bool:
        """Return whether it is the machine on which the testbed runs."""
        return self.engine == LOCAL

    @property
    def access(self) -> SshAccess:
        """Return how it is reached; without an address for the local engine."""
        url = urlsplit(self.engine)
        user, port = url.username or "root", url.port or 22
        return SshAccess(url.hostname or "", user, port, self.key, host_key=self.host_key, known_hosts=self.known_hosts)

    def to_document(self) -> dict[str, Any]:
        """Return the fields as a file has them; those without a value are omitted."""
        names = ("engine", "address") if self.is_local else ("engine", "key", "host_key", "known_hosts", "address")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def _engine_problem(found: object) -> str | None:
    allowed = "allowed: local, or ssh://user@host:port"
    if not isinstance(found, str) or not re.fullmatch(ENGINE.strip("^$"), found, re.ASCII):
        return f"{show(found)} is no engine; {allowed}"
    port = found.rpartition(":")[2]
    if found != LOCAL and port.isdigit() and not 1 <= int(port) <= 65535:
        return f"{show(found)} has no such port; allowed: 1 to 65535"
    return None


def _mtu_problem(found: object) -> str | None:
    if isinstance(found, int) and not isinstance(found, bool) and MIN_MTU <= found <= MAX_MTU:
        return None
    return f"{show(found)} is no MTU of NICs; allowed: {MIN_MTU} to {MAX_MTU} bytes"


Mtu = Annotated[int, check(_mtu_problem), WithJsonSchema({"type": "integer", "minimum": MIN_MTU, "maximum": MAX_MTU})]


class MachineForm(Form):
    """A machine with a container engine."""

    engine: Annotated[str, check(_engine_problem), text_schema(ENGINE, "local", "ssh://root@10.0.0.5:22")] = Field(
        LOCAL, description="local: this machine's engine; else ssh://user@host:port."
    )
    key: UserFile | None = optional("A private key for SSH. Left out: the SSH agent and your usual keys.")
    host_key: HostKey | None = optional("The SSH server's key or its fingerprint. Left out: known_hosts must have it.")
    known_hosts: UserFile | None = optional("The file of known hosts; ~/.ssh/known_hosts unless given.")
    address: NicAddress | None = optional(
        "Its address on the network between the machines. Left out: where SSH reached it."
    )


def placed(
    hosts: Sequence["DeclaredHost"], machines: Sequence[EngineMachine], uplinks: Iterable[str]
) -> dict[str, str]:
    """Return host → machine: the declared one, else the machine with the fewest hosts. Pure.

    Hosts of a rack with a shaped uplink stay together. Where two machines have equally few hosts, a controller goes to
    the one with fewer brokers, and a broker to the one with fewer controllers.
    """
    names = [machine.name for machine in machines]
    found = {host.name: host.machine for host in hosts if host.machine is not None}
    by_rack = {rack: [host for host in hosts if host.rack == rack] for rack in uplinks}
    groups = [members for members in by_rack.values() if members]
    alone = [host for host in hosts if host.rack not in by_rack]
    groups += [[host] for host in sorted(alone, key=_duty)]
    for members in groups:
        declared = next((found[host.name] for host in members if host.name in found), None)
        place = declared or min(names, key=lambda name: _burden(members[0], name, hosts, found))
        for host in members:
            found.setdefault(host.name, place)
    return found


def _duty(host: "DeclaredHost") -> int:
    return 0 if host.is_broker else 1 if host.is_controller else 2


def _burden(
    host: "DeclaredHost", machine: str, hosts: Iterable["DeclaredHost"], found: Mapping[str, str]
) -> tuple[int, int]:
    """Return how many hosts the machine has, and how many of them have the other duty in the cluster."""
    there = [other for other in hosts if found.get(other.name) == machine]
    apart = [other for other in there if other.role.runs_kafka and _duty(other) != _duty(host)]
    return len(there), len(apart)


def machine_problems(topology: "Topology") -> Iterator[Violation]:
    """Yield every violation of the machines and the hosts' places."""
    hosts, machines = topology.hosts, topology.machines
    if not machines:
        for host in hosts:
            if host.machine is not None:
                message = f"there is no machine {show(host.machine)}; allowed: machines at the top, with its name"
                yield Violation(("hosts", host.name, "machine"), message)
        if topology.mtu is not None:
            yield Violation(("mtu",), "the NICs of one machine have 1500; allowed with mtu: machines")
        return
    if any(host.ssh is not None for host in hosts):
        yield Violation(("machines",), "with provision: inventory the hosts exist; allowed: no machines")
    if len(machines) > MAX_MACHINES:
        yield Violation(("machines",), f"{len(machines)} machines; allowed: {MAX_MACHINES} at most")
    first: dict[str, str] = {}
    for machine in machines:
        where = f"{machine.access.address}:{machine.access.port}"
        if where in first:
            what = "the local engine" if machine.is_local else where
            message = f"{what} is {first[where]} already; allowed: each engine once"
            yield Violation(("machines", machine.name, "engine"), message)
        first.setdefault(where, machine.name)
    yield from _place_problems(topology)


def _place_problems(topology: "Topology") -> Iterator[Violation]:
    machines, at_rack = {machine.name: machine for machine in topology.machines}, dict[str, "DeclaredHost"]()
    for host in topology.hosts:
        at: FieldPath = ("hosts", host.name)
        machine = machines.get(host.machine or "")
        if machine is None:
            message = f"there is no machine {show(host.machine)}; allowed: {choices(list(machines))}"
            yield Violation((*at, "machine"), message + did_you_mean(host.machine, list(machines)))
            continue
        if host.disk is not None and not machine.is_local:
            message = f"a disk of a size cannot be made on another machine ({machine.name}); allowed: none there"
            yield Violation((*at, "disk"), message)
        other = at_rack.setdefault(host.rack, host) if host.rack in topology.uplinks else host
        if other.machine != host.machine:
            message = (
                f"{other.name} of rack {host.rack} is on {other.machine}, and the rack has one shaped uplink; "
                "allowed: all hosts of such a rack on one machine"
            )
            yield Violation((*at, "machine"), message)
    switches = {(host.machine, host.rack) for host in topology.hosts}
    if len(switches) > MAX_SWITCHES:
        message = f"its racks have {len(switches)} switches on the machines; allowed: {MAX_SWITCHES} at most"
        yield Violation(("hosts",), message)
