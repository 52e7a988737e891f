"""Defaults → role → host: from the form of a file to the resolved model, remembering where each value came
from."""

from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath

from testbed.topology.links import Link
from testbed.topology.model import AutomqSource, Host, RemoteStorage, Role
from testbed.topology.problems import Broken, Path, absent, choices
from testbed.topology.resolve_links import cpus, disk, nics, uplinks
from testbed.topology.rules import NOT_APACHE
from testbed.topology.surface import HostForm, KafkaForm, TopologyForm

_STAND_IN_VERSION = "4.0.0"
"""Takes the place of a version that is already complained about, so that the rest can be checked."""


def resolve(form: TopologyForm, folder: FilePath) -> tuple[tuple[Host, ...], Mapping[str, Link], list[Broken]]:
    """The hosts of a form, the uplinks of its racks, and what is wrong with them; paths count from `folder`.

    With problems, they hold stand-ins and must not be used.
    """
    broken: list[Broken] = []
    racks = tuple(form.racks)
    ids = _node_ids(form)
    hosts = []
    for name, host in form.hosts.items():
        kafka = host.role.runs_kafka
        levels = _kafka_levels(form, host) if kafka else []
        version = next(filter(None, (_source(level, folder) for level in reversed(levels))), None)
        if form.software is not None:
            version = None
        elif kafka and version is None:
            text = "no Kafka version; allowed: a release such as 4.3.1, here, at its role or in kafka at the top"
            levels_of = (("hosts", name), ("roles", host.role.value), ())
            broken.append(absent(("hosts", name), "kafka", ("version",), levels_of, text, instead=("software",)))
            version = _STAND_IN_VERSION
        if not kafka:
            broken.extend(_problems_without_kafka(name, host))
        first, *more = nics(form, name, host, broken)
        hosts.append(
            Host(
                name=name,
                role=host.role,
                rack=_rack(name, host, racks, broken),
                nic=first,
                node_id=ids.get(name),
                kafka_version=version,
                properties={key: text for level in levels for key, text in (level.properties or {}).items()},
                more_nics=tuple(more),
                disk=disk(form, name, host, broken) if host.role.stores_data else None,
                cpus=cpus(form, name, host),
            )
        )
    if form.software is not None:
        broken.extend(_versions_of_apache_kafka(form))
    return tuple(hosts), uplinks(form, broken), broken


def remote_storage(form: TopologyForm, folder: FilePath) -> RemoteStorage | None:
    """What the form says of remote log storage; paths count from `folder`."""
    wanted = form.remote_storage
    if wanted is None:
        return None
    return RemoteStorage(None if wanted.manager is None else _absolute(wanted.manager, folder))


def automq(form: TopologyForm, folder: FilePath) -> AutomqSource | None:
    """What the form says of AutoMQ; paths count from `folder`."""
    if form.software is None:
        return None
    wanted = form.software.automq
    return AutomqSource(None if wanted.path is None else _absolute(wanted.path, folder), wanted.image)


def _absolute(path: str, folder: FilePath) -> str:
    return str((folder / FilePath(path).expanduser()).resolve())


def _source(kafka: KafkaForm, folder: FilePath) -> str | None:
    return kafka.version if kafka.path is None else _absolute(kafka.path, folder)


def _versions_of_apache_kafka(form: TopologyForm) -> Iterable[Broken]:
    """Each place that names a release of Apache Kafka, where the cluster runs something else."""
    places: dict[Path, KafkaForm | None] = {("kafka",): form.kafka}
    for role in Role:
        places["roles", role.value, "kafka"] = getattr(getattr(form.roles, role.value, None), "kafka", None)
    places |= {("hosts", name, "kafka"): host.kafka for name, host in form.hosts.items() if host.role.runs_kafka}
    for at, kafka in places.items():
        for field in ("version", "path"):
            if kafka is not None and getattr(kafka, field) is not None:
                yield Broken((*at, field), NOT_APACHE)


def _problems_without_kafka(name: str, host: HostForm) -> Iterable[Broken]:
    who = host.role.in_words
    allowed = (
        f"allowed: role, rack{', nic, cpus and disk' if host.role.stores_data else ', nic and cpus'} (or another role)"
    )
    if host.kafka is not None:
        yield Broken(("hosts", name, "kafka"), f"{who} runs no Kafka; {allowed}")
    if host.node_id is not None:
        yield Broken(("hosts", name, "node_id"), f"{who} has no node id; {allowed}")
    if host.disk is not None and not host.role.stores_data:
        yield Broken(("hosts", name, "disk"), f"{who} has no Kafka data; {allowed}")


def _rack(name: str, host: HostForm, racks: tuple[str, ...], broken: list[Broken]) -> str:
    if host.rack is not None:
        return host.rack
    if len(racks) > 1:
        text = f"no rack given, and there are several; allowed: {choices(racks)}"
        broken.append(Broken(("hosts", name, "rack"), text, (("hosts", name, "rack"), ("racks",))))
    return racks[0]


def _node_ids(form: TopologyForm) -> dict[str, int]:
    hosts = {name: host for name, host in form.hosts.items() if host.role.runs_kafka}
    given = {name: host.node_id for name, host in hosts.items() if host.node_id is not None}
    taken = set(given.values())
    free = (number for number in range(1, len(hosts) + len(taken) + 1) if number not in taken)
    return {name: given[name] if name in given else next(free) for name in hosts}


def _kafka_levels(form: TopologyForm, host: HostForm) -> list[KafkaForm]:
    role = getattr(form.roles, host.role.value) if form.roles is not None else None
    levels = (form.kafka, role.kafka if role is not None else None, host.kafka)
    return [level for level in levels if level is not None]
