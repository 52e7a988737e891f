"""Links, disks and CPUs: each field from the nearest place that has it, remembering where it came from."""

from collections.abc import Iterator, Sequence
from typing import Any

from testbed.topology import link_rules
from testbed.topology.link_forms import DiskForm, NicForm, UplinkForm
from testbed.topology.links import Disk, Impairment, Link, Nic, NicUse, Side, default_burst_bytes
from testbed.topology.problems import Broken, Path, absent
from testbed.topology.surface import HostForm, TopologyForm

_STAND_IN_BPS = 100_000_000
"""Takes the place of a rate that is already complained about, so that the rest can be checked."""

_Levels = Sequence[tuple[Path, UplinkForm | DiskForm]]


def nics(form: TopologyForm, name: str, host: HostForm, broken: list[Broken]) -> list[Nic]:
    """The NICs of one host, the one for data first. What stands in `nic` holds for each of them."""
    levels = list(_levels(form, name, host))
    for path, level in levels:
        if level.nic is not None and level.nics is not None:
            told = "nics stands beside nic; allowed: nic alone (one NIC), or nics (each by its name)"
            _once(broken, Broken((*path, "nics"), told))
    names = next((list(level.nics) for _, level in levels if level.nics is not None), None)
    places = (("hosts", name), ("roles", host.role.value), ("defaults",))
    if names is None:
        one = [((*path, "nic"), level.nic) for path, level in levels if level.nic is not None]
        called = next((nic.name for _, nic in one if nic.name is not None), "data0")
        return [_nic(name, called, one, ("hosts", name, "nic"), [(*place, "nic") for place in places], broken)]
    found = []
    for called in names:
        forms: list[tuple[Path, NicForm]] = []
        for path, level in levels:
            forms += [((*path, "nics", called), level.nics[called])] if called in (level.nics or {}) else []
            forms += [((*path, "nic"), level.nic)] if level.nic is not None else []
        for path, nic in forms:
            if nic.name is not None:
                told = "the names of several NICs stand in nics; allowed: no name here"
                _once(broken, Broken((*path, "name"), told))
        sources = [(*place, *group) for place in places for group in (("nics", called), ("nic",))]
        found.append(_nic(name, called, forms, ("hosts", name, "nics", called), sources, broken))
    return found


def uplinks(form: TopologyForm, broken: list[Broken]) -> dict[str, Link]:
    """The uplinks that are shaped, by rack."""
    if isinstance(form.racks, list):
        return {}
    found = {}
    for rack, wanted in form.racks.items():
        if wanted.uplink is not None:
            at: Path = ("racks", rack, "uplink")
            tx, rx = _sides(f"rack {rack}", [(at, wanted.uplink)], at, [at], "here", broken)
            found[rack] = Link(
                tx.rate_bps,
                rx.rate_bps,
                tx.burst_bytes,
                rx.burst_bytes,
                tx_impairment=tx.impairment,
                rx_impairment=rx.impairment,
            )
    return found


def disk(form: TopologyForm, name: str, host: HostForm, broken: list[Broken]) -> Disk | None:
    """The disk of one host; None for a folder on the machine's own."""
    levels = [((*path, "disk"), level.disk) for path, level in _levels(form, name, host) if level.disk is not None]
    if not levels:
        return None
    size, bandwidth = _nearest(levels, ("size",)), _nearest(levels, ("bandwidth",))
    if size is None:
        told = "no size; allowed: 100MB to 1024GiB, here, at its role or in defaults"
        sources = (("hosts", name), ("roles", host.role.value), ("defaults",))
        broken.append(absent(("hosts", name), "disk", ("size",), sources, told))
        return None
    return Disk(size[1], bandwidth[1] if bandwidth is not None else None)


def cpus(form: TopologyForm, name: str, host: HostForm) -> float | None:
    """How many CPUs one host has; None for as many as the machine."""
    return next((level.cpus for _path, level in _levels(form, name, host) if level.cpus is not None), None)


def _levels(form: TopologyForm, name: str, host: HostForm) -> Iterator[tuple[Path, Any]]:
    """Where a host inherits from, nearest first."""
    yield ("hosts", name), host
    role = getattr(form.roles, host.role.value) if form.roles is not None else None
    if role is not None:
        yield ("roles", host.role.value), role
    if form.defaults is not None:
        yield ("defaults",), form.defaults


def _nic(
    host: str,
    called: str,
    levels: Sequence[tuple[Path, NicForm]],
    at: Path,
    sources: Sequence[Path],
    broken: list[Broken],
) -> Nic:
    tx, rx = _sides(host, levels, at, sources, "here, at its role or in defaults", broken)
    return Nic(
        tx.rate_bps,
        rx.rate_bps,
        tx.burst_bytes,
        rx.burst_bytes,
        called,
        tx_impairment=tx.impairment,
        rx_impairment=rx.impairment,
        use=next((nic.use for _, nic in levels if nic.use is not None), NicUse.DATA),
    )


def _sides(
    who: str,
    levels: Sequence[tuple[Path, UplinkForm]],
    at: Path,
    sources: Sequence[Path],
    where: str,
    broken: list[Broken],
) -> tuple[Side, Side]:
    """Both directions of the link that stands at `at`; what is wrong or missing is replaced, and told."""
    found = []
    for side, duty in (("tx", "send"), ("rx", "receive")):
        fields = (f"{side}_rate", "rate")
        rate = _nearest(levels, fields)
        if rate is None:
            told = f"no rate at which {who} can {duty}; allowed: 8kbit to 100gbit, {where}"
            origins = tuple((*source, field) for source in sources for field in fields)
            broken.append(Broken((*at, fields[0]), told, origins))
        rate_bps = rate[1] if rate is not None else _STAND_IN_BPS
        burst_bytes = default_burst_bytes(rate_bps)
        burst = _nearest(levels, (f"{side}_burst", "burst"))
        if burst is not None and rate is not None:
            wrong = link_rules.burst_problem(burst[1], rate_bps)
            if wrong is not None:
                broken.append(Broken(burst[0], f"{wrong} (for {who})"))
            else:
                burst_bytes = burst[1]
        found.append(Side(side, rate_bps, burst_bytes, _impairment(who, levels, side, broken)))
    return found[0], found[1]


def _impairment(who: str, levels: Sequence[tuple[Path, UplinkForm]], side: str, broken: list[Broken]) -> Impairment:
    prefix = "" if side == "tx" else "rx_"
    delay, jitter, loss = (_nearest(levels, (prefix + field,)) for field in ("delay", "jitter", "loss"))
    found = Impairment(*(value[1] if value is not None else 0 for value in (delay, jitter, loss)))
    wrong = link_rules.jitter_problem(found)
    if wrong is not None and jitter is not None:
        broken.append(Broken(jitter[0], f"{wrong} (for {who})"))
        return Impairment(found.delay_us, 0, found.loss_ppm)
    return found


def _nearest(levels: _Levels, fields: tuple[str, ...]) -> tuple[Path, int] | None:
    for path, form in levels:
        for field in fields:
            value: int | None = getattr(form, field)
            if value is not None:
                return (*path, field), value
    return None


def _once(broken: list[Broken], problem: Broken) -> None:
    """What is wrong at a role or in defaults is told once, not for every host."""
    if problem not in broken:
        broken.append(problem)
