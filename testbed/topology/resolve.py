"""Inheritance: from the form of a file (defaults, roles, hosts) to the resolved topology.

A host takes each field from the nearest level that has it: the host itself, its role, defaults.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from testbed.suggestions import choices
from testbed.topology import links, rules
from testbed.topology.file_form import HostForm, KafkaForm, NicForm, TopologyForm
from testbed.topology.host import AutomqSource, DeclaredHost, RemoteStorage, Role
from testbed.topology.inventory import SshAccess, access, given
from testbed.topology.jvm import Jvm
from testbed.topology.links import Disk, Impairment, Link, Nic, NicUse, Side, default_burst_bytes
from testbed.topology.machines import EngineMachine, placed
from testbed.topology.model import Topology, TopologyError
from testbed.yaml_document import Document, FieldPath, Violation

_Levels = Sequence[tuple[FieldPath, Any]]
"""The forms of the levels that may have a field, each with its path, nearest first."""


def resolve(form: TopologyForm, document: Document, folder: Path) -> Topology:
    """Return the topology of a form; its relative paths count from `folder`.

    Raise TopologyError with every violation. When a host lacks a value that no level has, the rules about all hosts
    cannot be checked.
    """
    resolution = _Resolution(form, folder)
    hosts = [host for name in form.hosts if (host := resolution.host(name)) is not None]
    uplinks = resolution.uplinks()
    broken = [*resolution.violations, *_violations_of_software(form), *_violations_without_inventory(form)]
    declared = (form.machines or {}).items()
    machines = tuple(EngineMachine(name, **given(resolution.absolute, machine)) for name, machine in declared)
    if machines:
        places = placed(hosts, machines, uplinks)
        hosts = [replace(host, machine=places[host.name]) for host in hosts]
    topology = None
    if len(hosts) == len(form.hosts):
        try:
            topology = Topology(
                form.name,
                tuple(hosts),
                tuple(form.racks),
                form.description,
                document.file,
                uplinks,
                resolution.remote_storage(),
                resolution.automq(),
                form.provision,
                machines,
                form.mtu,
            )
        except TopologyError as error:
            broken += [each for each in error.violations if each.path not in resolution.explained]
    document.raise_violations(broken)
    assert topology is not None
    return topology


class _Resolution:
    """Resolve the hosts and uplinks of one form, and collect missing values."""

    def __init__(self, form: TopologyForm, folder: Path) -> None:
        self.violations: list[Violation] = []
        self.explained: set[FieldPath] = set()
        """Values of the resolved topology that `violations` reports, often at another level."""
        self._form = form
        self._folder = folder
        self._ids = _node_ids(form)
        self._exists = form.provision == "inventory"

    def host(self, name: str) -> DeclaredHost | None:
        """Return one host; None where a value is missing."""
        form, host = self._form, self._form.hosts[name]
        levels = list(self._levels(name, host))
        of_levels = (*(getattr(level, "kafka", None) for _path, level in levels), form.kafka)
        kafka = list(filter(None, of_levels)) if host.role.runs_kafka else []
        version = next(filter(None, map(self._release, kafka)), None)
        if form.software is not None:
            version = None
        elif host.role.runs_kafka and version is None:
            message = "no Kafka version; allowed: a release such as 4.3.1, here, at its role or in kafka at the top"
            self._report(("hosts", name, "kafka", "version"), message)
        if not host.role.runs_kafka:
            self.violations += _violations_without_kafka(name, host)
        rack, nics, disk = self._rack(name, host), self._nics(name, levels), self._disk(name, host, levels)
        if rack is None or not nics:
            return None
        return DeclaredHost(
            name=name,
            role=host.role,
            rack=rack,
            nic=nics[0],
            node_id=self._ids.get(name),
            kafka_version=version,
            properties={key: text for level in reversed(kafka) for key, text in (level.properties or {}).items()},
            more_nics=tuple(nics[1:]),
            disk=disk,
            cpus=_value(levels, "cpus"),
            jvm=_jvm(kafka),
            ssh=self._access(name, host, nics[0]) if self._exists else None,
            machine=host.machine,
        )

    def uplinks(self) -> Mapping[str, Link]:
        """Return the shaped uplinks by rack."""
        found = {}
        for rack, wanted in self._form.racks.items() if isinstance(self._form.racks, dict) else ():
            at: FieldPath = ("racks", rack, "uplink")
            if wanted.uplink is not None and (link := self._link(f"rack {rack}", [(at, wanted.uplink)], at, "here")):
                found[rack] = Link(**link)
        return found

    def _report(self, path: FieldPath, message: str, explained: FieldPath | None = None) -> None:
        self.violations.append(Violation(path, message))
        self.explained.add(explained or path)

    def _levels(self, name: str, host: HostForm) -> Iterator[tuple[FieldPath, Any]]:
        """Yield the levels that a host inherits from, nearest first."""
        yield ("hosts", name), host
        role = getattr(self._form.roles, host.role.value, None)
        if role is not None:
            yield ("roles", host.role.value), role
        if self._form.defaults is not None:
            yield ("defaults",), self._form.defaults

    def _release(self, kafka: KafkaForm) -> str | None:
        return kafka.version if kafka.path is None else self.absolute(kafka.path)

    def absolute(self, path: str) -> str:
        """Return a path of the file, which counts from the file's folder."""
        return str((self._folder / Path(path).expanduser()).resolve())

    def remote_storage(self) -> RemoteStorage | None:
        """Return the brokers' remote log storage, if any."""
        wanted = self._form.remote_storage
        if wanted is None:
            return None
        return RemoteStorage(None if wanted.manager is None else self.absolute(wanted.manager))

    def automq(self) -> AutomqSource | None:
        """Return AutoMQ's source; None for Apache Kafka."""
        if self._form.software is None:
            return None
        wanted = self._form.software.automq
        return AutomqSource(None if wanted.path is None else self.absolute(wanted.path), wanted.image)

    def _rack(self, name: str, host: HostForm) -> str | None:
        racks = tuple(self._form.racks)
        if host.rack is not None or len(racks) == 1:
            return host.rack or racks[0]
        self._report(("hosts", name, "rack"), f"no rack given, and there are several; allowed: {choices(racks)}")
        return None

    def _nics(self, host: str, levels: _Levels) -> list[Nic]:
        """Return the NICs of one host, the one for data first; fields in `nic` apply to each of them."""
        for path, level in levels:
            if level.nic is not None and level.nics is not None:
                message = "nics and nic are both given; allowed: nic alone (one NIC), or nics (each by its name)"
                self._report((*path, "nics"), message)
        names = _value(levels, "nics")
        if names is None:
            one = [((*path, "nic"), level.nic) for path, level in levels if level.nic is not None]
            single = self._nic(host, _value(one, "name") or "data0", one, ("hosts", host, "nic"))
            return [single] if single is not None else []
        found = []
        for name in names:
            forms: list[tuple[FieldPath, NicForm]] = []
            for path, level in levels:
                forms += [((*path, "nics", name), level.nics[name])] if name in (level.nics or {}) else []
                forms += [((*path, "nic"), level.nic)] if level.nic is not None else []
            for path, nic in forms:
                if nic.name is not None:
                    self._report((*path, "name"), "the names of several NICs stand in nics; allowed: no name here")
            found.append(self._nic(host, name, forms, ("hosts", host, "nics", name)))
        return [nic for nic in found if nic is not None]

    def _nic(self, host: str, name: str, levels: _Levels, at: FieldPath) -> Nic | None:
        link = self._link(host, levels, at, "here, at its role or in defaults")
        if link is None:
            return None
        use, address = _value(levels, "use") or NicUse.DATA, _value(levels, "address")
        return Nic(**link, name=self._device(name, levels, at), use=use, address=address)

    def _link(self, who: str, levels: _Levels, at: FieldPath, where: str) -> dict[str, Any] | None:
        """Return the fields of the link at `at`; None where a rate is missing."""
        sides = [self._side(name, who, levels, at, where) for name in ("tx", "rx")]
        fields: dict[str, Any] = {}
        for side in sides:
            if side is None:
                return None
            fields[f"{side.name}_bps"] = side.rate_bps
            fields[f"{side.name}_burst_bytes"] = side.burst_bytes
            fields[f"{side.name}_impairment"] = side.impairment
        return fields

    def _side(self, side: str, who: str, levels: _Levels, at: FieldPath, where: str) -> Side | None:
        impairment = self._impairment(who, levels, side, at)
        rate = _nearest(levels, (f"{side}_rate", "rate"))
        if rate is None:
            duty = "send" if side == "tx" else "receive"
            message = f"no rate at which {who} can {duty}; allowed: 8kbit to 100gbit, {where}"
            self._report((*at, f"{side}_rate"), message)
            return None
        burst = _nearest(levels, (f"{side}_burst", "burst"))
        if burst is None:
            return Side(side, rate[1], default_burst_bytes(rate[1]), impairment)
        wrong = links.burst_problem(burst[1], rate[1])
        if wrong is not None:
            self._report(burst[0], f"{wrong} (for {who})", (*at, f"{side}_burst"))
        return Side(side, rate[1], burst[1], impairment)

    def _impairment(self, who: str, levels: _Levels, side: str, at: FieldPath) -> Impairment:
        prefix = "" if side == "tx" else "rx_"
        delay, jitter, loss = (_nearest(levels, (prefix + field,)) for field in ("delay", "jitter", "loss"))
        found = Impairment(*(value[1] if value is not None else 0 for value in (delay, jitter, loss)))
        wrong = links.jitter_problem(found)
        if wrong is not None and jitter is not None:
            self._report(jitter[0], f"{wrong} (for {who})", (*at, f"{prefix}jitter"))
        return found

    def _access(self, name: str, host: HostForm, nic: Nic) -> SshAccess:
        """Return how a machine that exists is reached."""
        fields = given(self.absolute, self._form.inventory, host.ssh)
        address = fields.get("address", nic.address)
        if address is None:
            message = "nothing says where this machine is; allowed: address here, or the NIC's address"
            self._report(("hosts", name, "ssh", "address"), message)
        return access(fields, address or name)

    def _device(self, name: str, levels: _Levels, at: FieldPath) -> str:
        """Return the NIC's name inside the host: on a machine that exists, its network device."""
        if not self._exists:
            return name
        device: str | None = _value(levels, "device")
        if device is None:
            self._report((*at, "device"), "nothing says which device is shaped; allowed: a name such as eth1")
        return device or name

    def _disk(self, name: str, host: HostForm, host_levels: _Levels) -> Disk | None:
        """Return the disk of one host; None for a folder on the machine's own disk."""
        if not host.role.stores_data:
            return None
        levels = [((*path, "disk"), level.disk) for path, level in host_levels if level.disk is not None]
        if not levels:
            return None
        size = _value(levels, "size")
        if size is None:
            message = "no size; allowed: 100MB to 1024GiB, here, at its role or in defaults"
            self._report(("hosts", name, "disk", "size"), message)
            return None
        return Disk(size, _value(levels, "bandwidth"))


def _jvm(levels: Sequence[KafkaForm]) -> Jvm:
    """Return each value of the nearest level that has it."""
    given = [((), level.jvm) for level in levels if level.jvm is not None]
    return Jvm(_value(given, "heap"), _value(given, "gc"), tuple(_value(given, "flags") or ()))


def _nearest(levels: _Levels, fields: tuple[str, ...]) -> tuple[FieldPath, Any] | None:
    """Return the first of these fields at the nearest level, and its path."""
    for path, form in levels:
        for field in fields:
            if (value := getattr(form, field)) is not None:
                return (*path, field), value
    return None


def _value(levels: _Levels, field: str) -> Any:
    """Return the field's value at the nearest level that has it; None without one."""
    found = _nearest(levels, (field,))
    return None if found is None else found[1]


def _node_ids(form: TopologyForm) -> dict[str, int]:
    hosts = {name: host for name, host in form.hosts.items() if host.role.runs_kafka}
    given = {name: host.node_id for name, host in hosts.items() if host.node_id is not None}
    taken = set(given.values())
    free = (number for number in range(1, len(hosts) + len(taken) + 1) if number not in taken)
    return {name: given[name] if name in given else next(free) for name in hosts}


def _levels_of_all(form: TopologyForm) -> _Levels:
    """Return every level that hosts inherit from, and every host."""
    roles = [(("roles", role.value), getattr(form.roles, role.value, None)) for role in Role]
    hosts = [(("hosts", name), host) for name, host in form.hosts.items()]
    return [(at, level) for at, level in ((("defaults",), form.defaults), *roles, *hosts) if level is not None]


def _violations_of_software(form: TopologyForm) -> Iterator[Violation]:
    """Yield each field that names a release of Apache Kafka where the cluster runs other software."""
    if form.software is None:
        return
    for at, level in (((), form), *_levels_of_all(form)):
        kafka = getattr(level, "kafka", None)
        if isinstance(level, HostForm) and not level.role.runs_kafka:
            continue
        for field in ("version", "path"):
            if kafka is not None and getattr(kafka, field) is not None:
                yield Violation((*at, "kafka", field), rules.NOT_APACHE)


def _violations_without_inventory(form: TopologyForm) -> Iterator[Violation]:
    """Yield each field of machines that exist where the testbed makes the hosts."""
    if form.provision == "inventory":
        return
    if form.inventory is not None:
        yield Violation(("inventory",), "the testbed makes the hosts; allowed with inventory: provision: inventory")
    for at, level in _levels_of_all(form):
        if getattr(level, "ssh", None) is not None:
            yield Violation((*at, "ssh"), "the testbed makes this host; allowed with ssh: provision: inventory")
        nics = {(*at, "nic"): level.nic, **{(*at, "nics", name): nic for name, nic in (level.nics or {}).items()}}
        for where, nic in nics.items():
            for field in ("device", "address"):
                if nic is not None and getattr(nic, field) is not None:
                    message = f"the testbed makes this NIC; allowed with {field}: provision: inventory"
                    yield Violation((*where, field), message)


def _violations_without_kafka(name: str, host: HostForm) -> Iterator[Violation]:
    who = host.role.in_words
    fields = "nic, cpus and disk" if host.role.stores_data else "nic and cpus"
    allowed = f"allowed: role, rack, {fields} (or another role)"
    if host.kafka is not None:
        yield Violation(("hosts", name, "kafka"), f"{who} runs no Kafka; {allowed}")
    if host.node_id is not None:
        yield Violation(("hosts", name, "node_id"), f"{who} has no node id; {allowed}")
    if host.disk is not None and not host.role.stores_data:
        yield Violation(("hosts", name, "disk"), f"{who} has no Kafka data; {allowed}")
