"""The rules of a topology, as functions of resolved values: for files (with their lines) and for Python alike."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from testbed.suggestions import choices, did_you_mean, show
from testbed.topology.host import DeclaredHost, Role
from testbed.topology.jvm import OWN
from testbed.topology.jvm import problems as jvm_problems
from testbed.topology.links import NicUse, disk_problems, link_problems
from testbed.yaml_document import FieldPath, Violation

if TYPE_CHECKING:
    from testbed.topology.model import Topology

NAME = r"^[a-z][a-z0-9-]{0,30}$"
HOST_NAME = r"^[a-z][a-z0-9-]{0,14}$"
NIC_NAME = r"^[a-z][a-z0-9]{0,14}$"
VERSION = r"^[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(-rc[0-9]{1,3}|(-[A-Za-z0-9.-]{1,30})?\+[0-9a-f]{12})?$"
PROPERTY_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$"
OLDEST_KAFKA = (3, 9, 0)
MAX_NODE_ID = 2**31 - 1
MAX_HOSTS = 100
MAX_RACKS = 16
MAX_NICS = 3
MIN_CPUS, MAX_CPUS = 0.01, 1024
MAX_HOSTS_OF_SEVERAL_NICS = 60
"""The addresses of second and of third NICs are 62 each."""

NOT_APACHE = "this cluster is AutoMQ's (software.automq); allowed: no version or path of Apache Kafka with it"
BOTH_SOURCES = "image and path are both given; allowed: one of the two, or neither (then TESTBED_AUTOMQ says)"
_DERIVED = "the testbed sets it from the topology"
OWNED_PROPERTIES: Mapping[str, str] = {
    "node.id": "write node_id at the host",
    "broker.id": "write node_id at the host",
    "process.roles": "write role at the host",
    "broker.rack": "write rack at the host",
    "listeners": _DERIVED,
    "advertised.listeners": _DERIVED,
    "listener.security.protocol.map": _DERIVED,
    "security.inter.broker.protocol": _DERIVED,
    "inter.broker.listener.name": _DERIVED,
    "controller.listener.names": _DERIVED,
    "log.dir": "each host has one data folder, wiped with its cluster",
    "log.dirs": "each host has one data folder, wiped with its cluster",
    "metadata.log.dir": "each host has one data folder, wiped with its cluster",
    "zookeeper.connect": "clusters here are KRaft",
}
"""Properties that a file may not set, with the alternative; includes every `controller.quorum.` property."""
OWNED_PREFIXES: Mapping[str, str] = {"controller.quorum.": "the testbed sets it from the hosts' roles"}


def name_problem(found: object, pattern: str, what: str) -> str | None:
    """Return why this cannot be the name of a `what`, or None."""
    if isinstance(found, str) and re.fullmatch(pattern.strip("^$"), found, re.ASCII):
        return None
    most = pattern.rstrip("}$").rpartition(",")[2]
    marks = "letters, digits and -" if "-" in pattern else "letters and digits"
    form = f"a small letter, then small {marks}, {int(most) + 1} at most"
    return f"{show(found)} cannot name a {what}; allowed: {form}"


def nic_name_problem(found: object) -> str | None:
    """Return why a data NIC cannot have this name, or None."""
    if found == "lo" or (isinstance(found, str) and re.fullmatch("eth[0-9]*", found, re.ASCII)):
        taken = f"{show(found)} is taken (lo is loopback, eth0 the management NIC)"
        return f"{taken}; allowed: any other name, such as data0"
    return name_problem(found, NIC_NAME, "NIC")


def version_problem(found: object) -> str | None:
    """Return why this is no Kafka version, or None."""
    form = "allowed: all three numbers, such as 4.3.1 or 4.3.0-rc1"
    if found is None:
        return f"no Kafka version; {form}"
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        return f"{show(found)} is not a Kafka version; {form}"
    if not isinstance(found, str):
        return f"{show(found)} is a number, not a Kafka version; {form}{_third_number(str(found))}"
    if found.startswith("/"):
        return None  # the path of a tarball or a folder with a build: `up` checks whether it exists
    if not re.fullmatch(VERSION.strip("^$"), found, re.ASCII):
        return f"{show(found)} is not a Kafka version; {form}{_third_number(found)}"
    if tuple(map(int, re.split("[-+]", found)[0].split("."))) < OLDEST_KAFKA:
        return f"{found} is too old; allowed: 3.9.0 (from which everything newer can be upgraded) or newer"
    return None


def _third_number(found: str) -> str:
    two = re.fullmatch(r"[vV]?([0-9]{1,3})(\.[0-9]{1,3})?(\.[0-9]{1,3})?", found, re.ASCII)
    if two is None:
        return ""
    return f"; did you mean {two[1]}{two[2] or '.0'}{two[3] or '.0'}?"


def node_id_problem(found: object) -> str | None:
    """Return why this is no node id, or None."""
    if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= MAX_NODE_ID:
        return None
    return f"{show(found)} is not a node id; allowed: a whole number from 0 to {MAX_NODE_ID}"


def cpus_problem(found: object) -> str | None:
    """Return why this is no number of CPUs, or None."""
    if isinstance(found, int | float) and not isinstance(found, bool) and _in_hundredths(found):
        return None
    return f"{show(found)} is not a number of CPUs; allowed: {MIN_CPUS:g} to {MAX_CPUS}, in hundredths, such as 0.5"


def _in_hundredths(cpus: float) -> bool:
    # In decimals, since 0.29 * 100 is not 29 in binary. (A file's numbers print as the user wrote them.)
    return MIN_CPUS <= cpus <= MAX_CPUS and Decimal(float.__repr__(float(cpus))) * 100 % 1 == 0


def property_name_problem(name: object) -> str | None:
    """Return why a file may not set this property, or None."""
    if not isinstance(name, str) or not re.fullmatch(PROPERTY_NAME.strip("^$"), name, re.ASCII):
        return f"{show(name)} is not a property name; allowed: letters, digits and . _ -, 200 at most"
    if name in OWNED_PROPERTIES:
        return f"{name} is not yours to set; instead: {OWNED_PROPERTIES[name]}"
    for prefix, instead in OWNED_PREFIXES.items():
        if name.startswith(prefix):
            return f"{name} is not yours to set; instead: {instead}"
    return None


def property_value_problem(value: object) -> str | None:
    """Return why a Kafka property cannot have this value, or None."""
    if not isinstance(value, str):
        return f"{show(value)} is no property value; allowed: text"
    if not value.isprintable():
        return f"{show(value)} has a line break or a control character in it; allowed: one line of text"
    if value.lower() in ("yes", "no", "on", "off"):
        meant = "true" if value.lower() in ("yes", "on") else "false"
        return f"{value} is no Kafka value; allowed: true or false for a switch; did you mean {meant}?"
    if len(value) > 10_000:
        return f"{show(value)} has {len(value)} characters; allowed: 10000"
    return None


def violations(topology: "Topology") -> Iterator[Violation]:
    """Yield every violation of this topology: its path, and the remedy."""
    hosts, racks = topology.hosts, topology.racks
    yield from _at(("name",), name_problem(topology.name, NAME, "topology"))
    if not 1 <= len(racks) <= MAX_RACKS:
        yield Violation(("racks",), f"{len(racks)} racks; allowed: 1 to {MAX_RACKS}")
    for index, rack in enumerate(racks):
        yield from _at(("racks", index), name_problem(rack, HOST_NAME, "rack"))
        if rack in racks[:index]:
            yield Violation(("racks", index), f"{show(rack)} is listed twice; allowed: each rack once")
    for rack, uplink in topology.uplinks.items():
        if rack not in racks:
            yield Violation(("racks", rack), unknown_rack(rack, racks))
        yield from link_problems(uplink, ("racks", rack, "uplink"))
    if len(hosts) > MAX_HOSTS:
        yield Violation(("hosts",), f"{len(hosts)} hosts; allowed: {MAX_HOSTS} at most")
    for index, host in enumerate(hosts):
        if any(host.name == other.name for other in hosts[:index]):
            yield Violation(("hosts", host.name), f"two hosts are called {show(host.name)}; allowed: each name once")
        yield from _host_problems(host, topology)
    yield from _repeated_node_ids(hosts)
    yield from _nics_that_do_not_meet(hosts)
    if not hosts or any(host.role is not Role.CLIENT for host in hosts):
        # Hosts that are all clients are for software of the user's own.
        if not topology.brokers:
            yield Violation(("hosts",), "no host is a broker; allowed: at least one with role broker or both")
        if not topology.controllers:
            yield Violation(("hosts",), "no host is a controller; allowed: at least one with role controller or both")
    yield from _storage_problems(topology)
    yield from _number_problems(topology)


def unknown_rack(found: object, racks: tuple[str, ...]) -> str:
    """Return the message for a rack that is not in the list."""
    there_are = choices(racks) if racks else "none"
    return f"there is no rack {show(found)}; allowed: {there_are}{did_you_mean(found, racks)}"


def _storage_problems(topology: "Topology") -> Iterator[Violation]:
    """Yield each violation of storage: it needs an object store, and has one source."""
    remote_storage, automq = topology.remote_storage, topology.automq
    if not topology.objectstores:
        there = "no host is an object store; allowed: at least one with role objectstore"
        for at, wanted in ((("remote_storage",), remote_storage), (("software", "automq"), automq)):
            if wanted is not None:
                yield Violation(at, there)
    if remote_storage is not None and automq is not None:
        message = "AutoMQ has all its data on the object store; allowed: software.automq or remote_storage"
        yield Violation(("remote_storage",), message)
    if automq is not None and automq.path is not None and automq.image is not None:
        yield Violation(("software", "automq"), BOTH_SOURCES)


def _host_problems(host: DeclaredHost, topology: "Topology") -> Iterator[Violation]:
    at = ("hosts", host.name)
    yield from _at(at, name_problem(host.name, HOST_NAME, "host"))
    if host.rack not in topology.racks:
        yield Violation((*at, "rack"), unknown_rack(host.rack, topology.racks))
    yield from _nic_problems(host, at)
    if host.disk is not None:
        yield from disk_problems(host.disk, (*at, "disk"))
    if host.disk is not None and not host.role.stores_data:
        yield Violation((*at, "disk"), f"{host.role.in_words} has no Kafka data; allowed: no disk")
    if host.cpus is not None:
        yield from _at((*at, "cpus"), cpus_problem(host.cpus))
    if not host.role.runs_kafka:
        if host.node_id is not None:
            yield Violation((*at, "node_id"), f"{host.role.in_words} runs no Kafka; allowed: no node_id")
        if host.kafka_version is not None or host.properties or host.jvm != OWN:
            yield Violation((*at, "kafka"), f"{host.role.in_words} runs no Kafka; allowed: no kafka settings")
    else:
        yield from _at((*at, "node_id"), node_id_problem(host.node_id))
        if topology.automq is None:
            yield from _at((*at, "kafka", "version"), version_problem(host.kafka_version))
        elif host.kafka_version is not None:
            yield Violation((*at, "kafka", "version"), NOT_APACHE)
    for field, wrong in jvm_problems(host.jvm):
        yield Violation((*at, "kafka", "jvm", field), wrong)
    for key, value in host.properties.items():
        problem = property_name_problem(key) or property_value_problem(value)
        yield from _at((*at, "kafka", "properties", key), problem)


def _nic_problems(host: DeclaredHost, at: FieldPath) -> Iterator[Violation]:
    several = len(host.nics) > 1
    if len(host.nics) > MAX_NICS:
        yield Violation((*at, "nics"), f"{len(host.nics)} NICs; allowed: {MAX_NICS} at most")
    names = [nic.name for nic in host.nics]
    for number, nic in enumerate(host.nics):
        here = (*at, "nics", nic.name) if several else (*at, "nic")
        wrong_name = nic_name_problem(nic.name) if host.ssh is None else None
        if wrong_name is not None:
            yield Violation(here if several else (*here, "name"), wrong_name)
        if nic.name in names[:number]:
            yield Violation(here, f"two NICs are called {show(nic.name)}; allowed: each name once")
        yield from link_problems(nic, here)
        same = [other.name for other in host.nics[:number] if other.use is nic.use]
        if number == 0 and nic.use is not NicUse.DATA:
            message = f"the first NIC is the one for data, not for {nic.use.value}; allowed: data"
            yield Violation((*here, "use"), message)
        elif number and nic.use is not NicUse.DATA and same:
            yield Violation((*here, "use"), f"{same[0]} is for {nic.use.value} already; allowed: one NIC for each use")


def _nics_that_do_not_meet(hosts: tuple[DeclaredHost, ...]) -> Iterator[Violation]:
    """Yield each violation of NIC numbers: brokers must replicate on NICs of one number, which are in one network."""
    if any(len(host.nics) > 1 for host in hosts) and len(hosts) > MAX_HOSTS_OF_SEVERAL_NICS:
        message = f"{len(hosts)} hosts, and some have several NICs; allowed: {MAX_HOSTS_OF_SEVERAL_NICS} at most then"
        yield Violation(("hosts",), message)
    brokers = [host for host in hosts if host.is_broker]
    numbers = {host.name: host.nic_for(NicUse.REPLICATION)[0] for host in brokers}
    for host in brokers[1:]:
        if numbers[host.name] != numbers[brokers[0].name]:
            first = brokers[0]
            message = (
                f"{host.name} replicates on its NIC number {numbers[host.name] + 1} and {first.name} on number "
                f"{numbers[first.name] + 1}, which do not meet; allowed: the same number on every broker"
            )
            yield Violation(("hosts", host.name, "nics"), message)


def _number_problems(topology: "Topology") -> Iterator[Violation]:
    """Yield a violation when more numbers were given out, also to removed hosts, than there are addresses."""
    hosts, places = topology.hosts, topology.places
    most = MAX_HOSTS_OF_SEVERAL_NICS if any(host.more_nics for host in hosts) else MAX_HOSTS
    if len(places) > most:
        removed = [name for name in places if name not in {host.name for host in hosts}]
        message = (
            f"{len(places)} hosts were given an address, with those that were removed; allowed: {most}, or the name of "
            f"a removed host, which gets its own address again: {choices(removed)}"
        )
        yield Violation(("hosts",), message)


def _repeated_node_ids(hosts: tuple[DeclaredHost, ...]) -> Iterator[Violation]:
    first: dict[int, str] = {}
    for host in hosts:
        if host.node_id is None:
            continue
        if host.node_id in first:
            text = f"{host.node_id} is already the node id of {first[host.node_id]}; allowed: each id once"
            yield Violation(("hosts", host.name, "node_id"), text)
        first.setdefault(host.node_id, host.name)


def _at(path: FieldPath, problem: str | None) -> Iterator[Violation]:
    if problem is not None:
        yield Violation(path, problem)
