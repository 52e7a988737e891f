"""The links between the fabrics of several machines: one VXLAN device in each fabric. Pure.

    core of this machine ── vxlan0 ══ (UDP between the machines) ══ vxlan0 ── core of another

The device is made from the machine's own namespace, where its UDP packets stay, and placed in the fabric's. So it
disappears with the fabric's container. It floods to every other machine and learns which address is where. A bridge
never sends a frame back to the port that it came from, so frames do not circle.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testbed.topology.machines import MAX_MTU, MIN_MTU, VXLAN_BYTES
from testbed.topology.model import Topology

DEVICE = "vxlan0"
PORT = 4789
"""The port that IANA assigned to VXLAN."""
_FIRST_ID = 0x7E0000
_EVERYONE = "00:00:00:00:00:00"
HERE = ""
"""The machine on which the testbed runs, among the names of machines."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """The addresses of the machines on the network between them (`HERE` for this one), and the MTU of data NICs."""

    addresses: Mapping[str, str]
    mtu: int


def fabric_place(machine: str) -> str:
    """Return the place of a machine's fabric: empty for this machine's. No host can have such a name."""
    return f"@{machine}" if machine else ""


def in_words(place: str) -> str:
    """Return `the fabric` or `the fabric on m2` for a fabric's place; a host's name is returned as it is."""
    if not place:
        return "the fabric"
    return f"the fabric on {place[1:]}" if place.startswith("@") else place


def machines_of(topology: Topology) -> tuple[str, ...]:
    """Return every machine that has a fabric: this one, then the others."""
    return (HERE, *(machine.name for machine in topology.remote_machines))


def underlay_lines(machine: str, overlay: Overlay, slot: int, fabric_pid: int | str) -> tuple[str, ...]:
    """Return the lines that make a machine's VXLAN device, in the machine's own namespace, in the fabric's."""
    return (
        # A machine has each slot once, so two testbeds never share an identifier. A packet that is too large for the
        # network between the machines must not be cut into two.
        f"link add name {DEVICE} mtu {overlay.mtu} netns {fabric_pid} type vxlan id {_FIRST_ID + slot} "
        f"local {overlay.addresses[machine]} dstport {PORT} ttl 64 df set",
    )


def peer_commands(machine: str, overlay: Overlay) -> tuple[tuple[str, ...], ...]:
    """Return the commands that name the other machines to a machine's VXLAN device."""
    return tuple(
        ("bridge", "fdb", "append", _EVERYONE, "dev", DEVICE, "dst", address)
        for other, address in overlay.addresses.items()
        if other != machine
    )


def resolve_mtu(declared: int | None, underlay: Mapping[str, int]) -> tuple[int, str]:
    """Return the MTU of data NICs, and why it cannot be had: empty when it can. `underlay` is machine → its MTU. Pure.

    VXLAN adds 50 bytes to a packet. Without a declared MTU the NICs have what is left, at most 1500.
    """
    narrowest = min(underlay, key=lambda machine: underlay[machine])
    left = underlay[narrowest] - VXLAN_BYTES
    if declared is None:
        mtu = min(left, MAX_MTU)
        if mtu >= MIN_MTU:
            return mtu, ""
        wanted = f"NICs need {MIN_MTU} or more"
    else:
        mtu, wanted = declared, f"mtu: {declared} is declared"
        if left >= declared:
            return mtu, ""
    need = max(mtu, MIN_MTU) + VXLAN_BYTES
    lower = f", or declare mtu: {left} or less" if left >= MIN_MTU else ""
    return mtu, (
        f"{wanted}, and VXLAN adds {VXLAN_BYTES}: the network between the machines must have an MTU of {need}; on "
        f"{narrowest or 'this machine'} it has {underlay[narrowest]}. Raise it there{lower}"
    )


@dataclass(frozen=True, slots=True)
class PathNeed:
    """What is declared on the path from some machines to others: the rate, and the NICs that ask for it."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    rate_bps: int
    nics: tuple[str, ...]

    @property
    def what(self) -> str:
        """Return `m1 → m2`."""
        return " → ".join(", ".join(name or "this machine" for name in names) for names in (self.sources, self.targets))


def path_needs(topology: Topology) -> tuple[PathNeed, ...]:
    """Return what hosts may send from each machine to each other; with three or more, also to all others at once. Pure.

    A path carries at most what all NICs at one end send, and at most what all NICs at the other end receive.
    A shaped uplink limits the hosts of its rack.
    """
    machines = [name for name in machines_of(topology) if declared_rate(topology, (name,), sends=True)[0]]
    pairs: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
        ((source,), (target,)) for source in machines for target in machines if source != target
    ]
    if len(machines) > 2:
        others = {name: tuple(other for other in machines if other != name) for name in machines}
        pairs += [((name,), others[name]) for name in machines] + [(others[name], (name,)) for name in machines]
    found = []
    for sources, targets in pairs:
        ends = [declared_rate(topology, sources, sends=True), declared_rate(topology, targets, sends=False)]
        rate, nics = min(ends, key=lambda end: end[0])
        found.append(PathNeed(sources, targets, rate, nics))
    return tuple(found)


def declared_rate(topology: Topology, machines: Sequence[str], *, sends: bool) -> tuple[int, tuple[str, ...]]:
    """Return what all hosts on these machines send (or receive) together, in bits/s, and by which NICs."""
    total, nics = 0, list[str]()
    racks: dict[str, int] = {}
    for host in topology.hosts:
        if topology.remote_machine_of(host) in machines:
            rate = sum(nic.tx_bps if sends else nic.rx_bps for nic in host.nics)
            racks[host.rack] = racks.get(host.rack, 0) + rate
            nics += [f"{host.name} {nic.name}" for nic in host.nics]
    for rack, rate in racks.items():
        uplink = topology.uplinks.get(rack)
        total += rate if uplink is None else min(rate, uplink.tx_bps if sends else uplink.rx_bps)
    return total, tuple(nics)
