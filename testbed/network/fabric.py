"""The fabric: a testbed's bridges and links, and the commands that make them. Pure.

All bridges of a testbed are in the network namespace of one container, the *fabric*. So the labels of this container
find them. The machine's own firewall and forwarding rules do not apply to the testbed's traffic.
The removal of the container removes every bridge and link at once, in any state.

    core ── up0/dn0 ── rack0 ── port0 (the far end is the first host's `data0`), port1 …
      └──── up1/dn1 ── rack1 ── port2 …
      └──── driver (the machine itself, unshaped)

Devices are numbered, because names of devices have at most 15 characters; each carries its name as alias. A host's
further NICs end in their own ports, `port0n1`, in the same rack.

An uplink that the topology shapes is shaped at both ends: `up0` sends what leaves the rack, `dn0` what enters it.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from testbed.network.addresses import AddressPlan
from testbed.network.machine_shaping import ingress_device
from testbed.network.overlay import DEVICE, HERE, Overlay, fabric_place, machines_of, peer_commands, underlay_lines
from testbed.network.shape import FULL_MTU, Shape, frames_line, offload_command, sends_frames, tc_lines
from testbed.topology.host import DeclaredHost
from testbed.topology.links import Direction
from testbed.topology.model import Topology

CORE = "core"
DRIVER = "driver"
PORT = "port"


@dataclass(frozen=True, slots=True)
class Script:
    """The commands for one network namespace, in order."""

    ip: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    tc: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wiring:
    """The scripts for a whole fabric: for the fabric of each machine, for each host, for the machine of the testbed.

    `underlay` has the script of each machine's own namespace that runs before all others; empty for one machine.
    """

    fabrics: Mapping[str, Script]
    hosts: Mapping[str, Script]
    machine: Script
    underlay: Mapping[str, Script] = field(default_factory=dict)


def driver_device(testbed: str) -> str:
    """Return the name of the machine's own link into the testbed (names of devices have at most 15 characters)."""
    return "tb-" + hashlib.sha256(testbed.encode()).hexdigest()[:10]


@dataclass(frozen=True, slots=True)
class Shaped:
    """A device that sends at a declared rate. It carries one direction of one link."""

    place: str
    """The owner of the link: a host, or `rack r1`."""
    link: str
    """The link's name at its owner: `data0`, or `uplink`."""
    direction: Direction
    """As the owner sees it."""
    host: str | None
    """The host that has the device; None when a fabric has it."""
    device: str
    shape: Shape
    fabric: str = ""
    """The place of the fabric that has the device; empty for the machine of the testbed."""

    @property
    def where(self) -> str:
        """Return the host that has the device, or the place of its fabric."""
        return self.host or self.fabric

    @property
    def what(self) -> str:
        """Return the link and its direction as text: `b2 data0 receive`."""
        return f"{self.place} {self.link} {self.direction}"


def port(host: int, nic: int) -> str:
    """Return the name of the switch's end of a host's link, by the numbers of host and NIC."""
    return f"{PORT}{host}" + (f"n{nic}" if nic else "")


@dataclass(frozen=True, slots=True)
class RackSwitch:
    """The bridge of a rack on one machine. `number` is that of its address; its devices have the number of the rack."""

    machine: str
    rack: str
    number: int
    bridge: str
    up: str
    down: str


def switches(topology: Topology) -> tuple[RackSwitch, ...]:
    """Return the switches of all racks: one for each machine that has hosts of the rack."""
    found: list[RackSwitch] = []
    for index, rack in enumerate(topology.racks):
        there = {topology.remote_machine_of(host) for host in topology.hosts if host.rack == rack}
        for machine in machines_of(topology):
            if machine in (there or {HERE}):
                names = (f"rack{index}", f"up{index}", f"dn{index}")
                found.append(RackSwitch(machine, rack, len(found), *names))
    return tuple(found)


def switch_of(topology: Topology, host: DeclaredHost) -> RackSwitch:
    """Return the switch that a host's NICs end in."""
    machine = topology.remote_machine_of(host)
    return next(each for each in switches(topology) if (each.machine, each.rack) == (machine, host.rack))


def fabric_devices(topology: Topology) -> dict[str, str]:
    """Return the place of the fabric that has each host's port and each rack's uplink: device → place.

    An unshaped uplink of a rack whose hosts are on several machines is omitted: it has several.
    """
    found: dict[str, str] = {}
    every = switches(topology)
    for switch in every:
        if sum(other.rack == switch.rack for other in every) == 1:
            found |= dict.fromkeys((switch.bridge, switch.up, switch.down), fabric_place(switch.machine))
    for number, host in topology.numbered:
        place = fabric_place(topology.remote_machine_of(host))
        found |= {port(number, index): place for index in range(len(host.nics))}
    return found


def shaped_devices(topology: Topology) -> tuple[Shaped, ...]:
    """Return every device whose shaping the topology declares."""
    found = []
    for number, host in topology.numbered:
        fabric = fabric_place(topology.remote_machine_of(host))
        for index, nic in enumerate(host.nics):
            tx, rx = nic.sides
            found.append(Shaped(host.name, nic.name, tx.direction, host.name, nic.name, Shape.of(tx)))
            # The host receives what the switch's end sends. A machine that exists has only its own end in reach.
            device = ingress_device(nic.name) if topology.exists else port(number, index)
            owner = host.name if topology.exists else None
            found.append(Shaped(host.name, nic.name, rx.direction, owner, device, Shape.of(rx), fabric))
    for rack, uplink in topology.uplinks.items():
        # A rack with an uplink has one switch: its hosts are on one machine.
        switch = next(each for each in switches(topology) if each.rack == rack)
        found += [
            Shaped(f"rack {rack}", "uplink", side.direction, None, device, Shape.of(side), fabric_place(switch.machine))
            for side, device in zip(uplink.sides, (switch.up, switch.down), strict=True)
        ]
    return tuple(found)


def _tc(devices: Iterable[Shaped]) -> tuple[str, ...]:
    return tuple(line for each in devices for line in tc_lines(each.device, each.shape))


def _bridge(name: str) -> list[str]:
    # No spanning tree and no delay: there are no loops, and a port must forward from its first packet on.
    return [f"link add name {name} type bridge forward_delay 0 stp_state 0", f"link set dev {name} up"]


def wire(
    testbed: str,
    topology: Topology,
    plan: AddressPlan,
    pids: Mapping[str, int | str],
    machine_pid: int | str,
    overlay: Overlay | None = None,
) -> Wiring:
    """Render the whole fabric of `topology` and return its scripts.

    `pids` has a process of each host: the far end of the host's link moves into that process's namespace. With
    `overlay` it also has a process of each machine's fabric, by its place. `machine_pid` is a process of the own
    namespace of the machine of the testbed.
    """
    shaped = shaped_devices(topology)
    mtu = f" mtu {overlay.mtu}" if overlay is not None and overlay.mtu != FULL_MTU else ""
    fabrics = {
        machine: _fabric_script(machine, number, topology, plan, pids, shaped, overlay, mtu)
        for number, machine in enumerate(machines_of(topology))
    }
    hosts = {host.name: _host_script(host, plan, shaped) for host in topology.hosts}
    prefix, device = plan.network().prefixlen, driver_device(testbed)
    fabrics[HERE] = replace(
        fabrics[HERE],
        ip=(
            *fabrics[HERE].ip,
            f"link add name {DRIVER}{mtu} type veth peer name {device}{mtu} netns {machine_pid}",
            f"link set dev {DRIVER} master {CORE}",
            f"link set dev {DRIVER} up",
        ),
    )
    machine = Script(
        ip=(
            f"link set dev {device} alias testbed={testbed}",
            f"addr add {plan.driver}/{prefix} dev {device}",
            f"link set dev {device} up",
            # Each of its packets must reach a short queue of the fabric as a single frame.
            *([frames_line(device)] if any(sends_frames(each.shape) for each in shaped) else []),
        )
    )
    underlay = (
        {}
        if overlay is None
        else {name: Script(ip=underlay_lines(name, overlay, plan.slot, pids[fabric_place(name)])) for name in fabrics}
    )
    return Wiring(fabrics, hosts, machine, underlay)


def _fabric_script(
    machine: str,
    number: int,
    topology: Topology,
    plan: AddressPlan,
    pids: Mapping[str, int | str],
    shaped: Sequence[Shaped],
    overlay: Overlay | None,
    mtu: str,
) -> Script:
    """Return the script of one machine's fabric: its core, the switches of its racks, and the ports of its hosts."""
    ip = [
        "link set dev lo up",
        *_bridge(CORE),
        f"addr add {plan.fabric_on(number)}/{plan.network().prefixlen} dev {CORE}",
    ]
    # The switches' own traffic, which measures a link, must be single frames as well.
    commands = [offload_command(CORE)]
    if overlay is not None:
        ip += [f"link set dev {DEVICE} master {CORE}", f"link set dev {DEVICE} up"]
        commands += [offload_command(DEVICE), *peer_commands(machine, overlay)]
    for switch in switches(topology):
        if switch.machine != machine:
            continue
        bridge, up, down = switch.bridge, switch.up, switch.down
        ip += [
            *_bridge(bridge),
            f"link set dev {bridge} alias {switch.rack}",
            # /32: no route leads here; the users of this address bind to the bridge.
            f"addr add {plan.fabric_in_rack(switch.number)}/32 dev {bridge}",
            f"link add name {up}{mtu} type veth peer name {down}{mtu}",
            f"link set dev {up} master {bridge}",
            f"link set dev {down} master {CORE}",
            f"link set dev {up} up",
            f"link set dev {down} up",
        ]
        commands += [offload_command(device) for device in (bridge, up, down)]
    for place, host in topology.numbered:
        if topology.remote_machine_of(host) == machine:
            links = _links(topology, place, host, pids[host.name], mtu)
            ip += links.ip
            commands += links.commands
    own = [each for each in shaped if each.host is None and each.fabric == fabric_place(machine)]
    return Script(tuple(ip), tuple(commands), _tc(own))


def wire_host(topology: Topology, plan: AddressPlan, name: str, pid: int | str) -> tuple[Script, Script]:
    """Render the links of one host of a fabric that exists; return the fabric's script and the host's.

    `pid` is a process of the host.
    """
    ((number, host),) = ((number, host) for number, host in topology.numbered if host.name == name)
    shaped = shaped_devices(topology)
    links = _links(topology, number, host, pid)
    ends = {port(number, index) for index in range(len(host.nics))}
    in_fabric = Script(links.ip, links.commands, _tc(each for each in shaped if each.device in ends))
    return in_fabric, _host_script(host, plan, shaped)


def _links(topology: Topology, number: int, host: DeclaredHost, pid: int | str, mtu: str = "") -> Script:
    """Return the commands in the fabric for one host's links, without their shaping."""
    ip, commands = [], []
    for index, nic in enumerate(host.nics):
        far_end = port(number, index)
        ip += [
            f"link add name {far_end}{mtu} type veth peer name {nic.name}{mtu} netns {pid}",
            f"link set dev {far_end} alias {host.name}",
            f"link set dev {far_end} master rack{topology.racks.index(host.rack)}",
            f"link set dev {far_end} up",
        ]
        commands.append(offload_command(far_end))
    return Script(tuple(ip), tuple(commands))


def _host_script(host: DeclaredHost, plan: AddressPlan, shaped: Sequence[Shaped]) -> Script:
    ip = []
    for index, nic in enumerate(host.nics):
        ip += [
            f"addr add {plan.data_ip(host.name, index)}/{plan.network(index).prefixlen} dev {nic.name}",
            f"link set dev {nic.name} up",
        ]
    own = [each for each in shaped if each.host == host.name]
    ip += [frames_line(each.device) for each in own if sends_frames(each.shape)]
    return Script(ip=tuple(ip), commands=tuple(offload_command(nic.name) for nic in host.nics), tc=_tc(own))
