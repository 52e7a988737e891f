"""Defaults → role → host: from the form of a file to the resolved model, remembering where each value came
from."""

from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath

from testbed.topology.links import Link
from testbed.topology.model import Host, Role
from testbed.topology.problems import Broken, absent, choices
from testbed.topology.resolve_links import disk, nics, uplinks
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
        kafka = host.role is not Role.CLIENT
        levels = _kafka_levels(form, host) if kafka else []
        version = next(filter(None, (_source(level, folder) for level in reversed(levels))), None)
        if kafka and version is None:
            text = "no Kafka version; allowed: a release such as 4.3.1, here, at its role or in kafka at the top"
            levels_of = (("hosts", name), ("roles", host.role.value), ())
            broken.append(absent(("hosts", name), "kafka", ("version",), levels_of, text))
            version = _STAND_IN_VERSION
        if not kafka:
            broken.extend(_client_problems(name, host))
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
                disk=disk(form, name, host, broken) if kafka else None,
            )
        )
    return tuple(hosts), uplinks(form, broken), broken


def _source(kafka: KafkaForm, folder: FilePath) -> str | None:
    return kafka.version if kafka.path is None else str((folder / FilePath(kafka.path).expanduser()).resolve())


def _client_problems(name: str, host: HostForm) -> Iterable[Broken]:
    allowed = "allowed: role, rack and nic (or another role)"
    if host.kafka is not None:
        yield Broken(("hosts", name, "kafka"), f"a client runs no Kafka; {allowed}")
    if host.node_id is not None:
        yield Broken(("hosts", name, "node_id"), f"a client has no node id; {allowed}")
    if host.disk is not None:
        yield Broken(("hosts", name, "disk"), f"a client has no Kafka data; {allowed}")


def _rack(name: str, host: HostForm, racks: tuple[str, ...], broken: list[Broken]) -> str:
    if host.rack is not None:
        return host.rack
    if len(racks) > 1:
        text = f"no rack given, and there are several; allowed: {choices(racks)}"
        broken.append(Broken(("hosts", name, "rack"), text, (("hosts", name, "rack"), ("racks",))))
    return racks[0]


def _node_ids(form: TopologyForm) -> dict[str, int]:
    hosts = {name: host for name, host in form.hosts.items() if host.role is not Role.CLIENT}
    given = {name: host.node_id for name, host in hosts.items() if host.node_id is not None}
    taken = set(given.values())
    free = (number for number in range(1, len(hosts) + len(taken) + 1) if number not in taken)
    return {name: given[name] if name in given else next(free) for name in hosts}


def _kafka_levels(form: TopologyForm, host: HostForm) -> list[KafkaForm]:
    role = getattr(form.roles, host.role.value) if form.roles is not None else None
    levels = (form.kafka, role.kafka if role is not None else None, host.kafka)
    return [level for level in levels if level is not None]
