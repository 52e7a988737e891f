"""Defaults → role → host: from the form of a file to the resolved model, remembering where each value came
from."""

from collections.abc import Iterable

from testbed.topology import rules
from testbed.topology.model import Host, Nic, Role, default_burst_bytes
from testbed.topology.problems import Broken, Path, choices
from testbed.topology.surface import HostForm, KafkaForm, NicForm, TopologyForm

_STAND_IN = Nic.symmetric(rate_bps=100_000_000)
"""Takes the place of a NIC that is already complained about, so that the rest can be checked."""
_STAND_IN_VERSION = "4.0.0"

_NicLevels = list[tuple[Path, NicForm]]


def resolve(form: TopologyForm) -> tuple[tuple[Host, ...], list[Broken]]:
    """The hosts of a form and what is wrong with them. With problems, hosts hold stand-ins and must not be
    used."""
    broken: list[Broken] = []
    racks = tuple(form.racks)
    ids = _node_ids(form)
    hosts = []
    for name, host in form.hosts.items():
        kafka = host.role is not Role.CLIENT
        levels = _kafka_levels(form, host) if kafka else []
        version = next((level.version for level in reversed(levels) if level.version is not None), None)
        if kafka and version is None:
            text = "no Kafka version; allowed: a release such as 4.3.1, here, at its role or in kafka at the top"
            levels_of = (("hosts", name), ("roles", host.role.value), ())
            broken.append(_absent(("hosts", name), "kafka", ("version",), levels_of, text))
            version = _STAND_IN_VERSION
        if not kafka:
            broken.extend(_client_problems(name, host))
        hosts.append(
            Host(
                name=name,
                role=host.role,
                rack=_rack(name, host, racks, broken),
                nic=_nic(name, host.role, _nic_levels(form, name, host), broken),
                node_id=ids.get(name),
                kafka_version=version,
                properties={key: text for level in levels for key, text in (level.properties or {}).items()},
            )
        )
    return tuple(hosts), broken


def _client_problems(name: str, host: HostForm) -> Iterable[Broken]:
    allowed = "allowed: role, rack and nic (or another role)"
    if host.kafka is not None:
        yield Broken(("hosts", name, "kafka"), f"a client runs no Kafka; {allowed}")
    if host.node_id is not None:
        yield Broken(("hosts", name, "node_id"), f"a client has no node id; {allowed}")


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


def _nic_levels(form: TopologyForm, name: str, host: HostForm) -> _NicLevels:
    role = getattr(form.roles, host.role.value) if form.roles is not None else None
    levels: list[tuple[Path, NicForm | None]] = [
        (("hosts", name, "nic"), host.nic),
        (("roles", host.role.value, "nic"), role.nic if role is not None else None),
        (("defaults", "nic"), form.defaults.nic if form.defaults is not None else None),
    ]
    return [(path, nic) for path, nic in levels if nic is not None]


def _nic(name: str, role: Role, levels: _NicLevels, broken: list[Broken]) -> Nic:
    sides = {}
    for side, duty in (("tx", "send"), ("rx", "receive")):
        rate = _nearest(levels, (f"{side}_rate", "rate"))
        if rate is None:
            where = "here, at its role or in defaults"
            text = f"no rate at which {name} can {duty}; allowed: 8kbit to 100gbit, {where}"
            levels_of = (("hosts", name), ("roles", role.value), ("defaults",))
            broken.append(_absent(("hosts", name), "nic", (f"{side}_rate", "rate"), levels_of, text))
            continue
        rate_bps = rate[1]
        burst = _nearest(levels, (f"{side}_burst", "burst"))
        if burst is None:
            sides[side] = rate_bps, default_burst_bytes(rate_bps)
            continue
        wrong = rules.burst_problem(burst[1], rate_bps)
        if wrong is not None:
            broken.append(Broken(burst[0], f"{wrong} (for {name})"))
            continue
        sides[side] = rate_bps, burst[1]
    if len(sides) < 2:
        return _STAND_IN
    given_name = next((nic.name for _, nic in levels if nic.name is not None), "data0")
    return Nic(
        tx_bps=sides["tx"][0],
        rx_bps=sides["rx"][0],
        tx_burst_bytes=sides["tx"][1],
        rx_burst_bytes=sides["rx"][1],
        name=given_name,
    )


def _absent(at: Path, group: str, fields: tuple[str, ...], levels_of: tuple[Path, ...], text: str) -> Broken:
    sources = tuple((*level, group, field) for level in levels_of for field in fields)
    return Broken((*at, group, fields[0]), text, sources)


def _nearest(levels: _NicLevels, fields: tuple[str, str]) -> tuple[Path, int] | None:
    for path, nic in levels:
        for field in fields:
            value: int | None = getattr(nic, field)
            if value is not None:
                return (*path, field), value
    return None
