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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from testbed.network.addresses import AddressPlan
from testbed.network.shape import Shape, frames_line, offload_command, sends_frames, tc_lines_for
from testbed.topology.host import DeclaredHost
from testbed.topology.model import Topology

CORE = "core"
DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class Script:
    """The commands for one network namespace, in order."""

    ip: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    tc: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wiring:
    """The scripts for a whole fabric: one for the fabric, one for each host, one for the machine."""

    fabric: Script
    hosts: Mapping[str, Script]
    machine: Script


def driver_device(testbed: str) -> str:
    """Return the name of the machine's own link into the testbed (names of devices have at most 15 characters)."""
    return "tb-" + hashlib.sha256(testbed.encode()).hexdigest()[:10]


@dataclass(frozen=True, slots=True)
class Shaped:
    """A device that sends at a declared rate, and its place: a host, or the fabric (None).

    It carries the link named `place` (a host or `rack r1`) and `link` in one direction.
    """

    place: str
    link: str
    direction: Literal["transmit", "receive"]
    host: str | None
    device: str
    shape: Shape

    @property
    def what(self) -> str:
        """Return the link and its direction as text: `b2 data0 receive`."""
        return f"{self.place} {self.link} {self.direction}"


def port(host: int, nic: int) -> str:
    """Return the name of the switch's end of a host's link, by the numbers of host and NIC."""
    return f"port{host}" + (f"n{nic}" if nic else "")


def shaped_devices(topology: Topology) -> tuple[Shaped, ...]:
    """Return every device whose shaping the topology declares."""
    found = []
    for number, host in topology.numbered:
        for index, nic in enumerate(host.nics):
            tx, rx = nic.sides
            # The host receives the traffic that the switch's end sends.
            found += [
                Shaped(host.name, nic.name, "transmit", host.name, nic.name, Shape.of(tx)),
                Shaped(host.name, nic.name, "receive", None, port(number, index), Shape.of(rx)),
            ]
    for rack, uplink in topology.uplinks.items():
        number = topology.racks.index(rack)
        tx, rx = uplink.sides
        found += [
            Shaped(f"rack {rack}", "uplink", "transmit", None, f"up{number}", Shape.of(tx)),
            Shaped(f"rack {rack}", "uplink", "receive", None, f"dn{number}", Shape.of(rx)),
        ]
    return tuple(found)


def _bridge(name: str) -> list[str]:
    # No spanning tree and no delay: there are no loops, and a port must forward from its first packet on.
    return [
        f"link add name {name} type bridge forward_delay 0 stp_state 0",
        f"link set dev {name} up",
    ]


def wire(
    testbed: str, topology: Topology, plan: AddressPlan, pids: Mapping[str, int | str], machine_pid: int | str
) -> Wiring:
    """Render the whole fabric of `topology` and return its scripts.

    `pids` has a process of each host: the far end of the host's link moves into that process's namespace.
    `machine_pid` is a process of the machine's own namespace.
    """
    prefix = plan.network().prefixlen
    ip = ["link set dev lo up", *_bridge(CORE), f"addr add {plan.fabric}/{prefix} dev {CORE}"]
    # The switches' own traffic, which measures a link, must be single frames as well.
    commands = [offload_command(CORE)]
    shaped = shaped_devices(topology)
    for number, rack in enumerate(topology.racks):
        bridge, up, down = f"rack{number}", f"up{number}", f"dn{number}"
        ip += [
            *_bridge(bridge),
            f"link set dev {bridge} alias {rack}",
            # /32: no route leads here; the users of this address bind to the bridge.
            f"addr add {plan.fabric_in_rack(number)}/32 dev {bridge}",
            f"link add name {up} type veth peer name {down}",
            f"link set dev {up} master {bridge}",
            f"link set dev {down} master {CORE}",
            f"link set dev {up} up",
            f"link set dev {down} up",
        ]
        commands += [offload_command(device) for device in (bridge, up, down)]
    hosts: dict[str, Script] = {}
    for number, host in topology.numbered:
        links = _links(topology, number, host, pids[host.name])
        ip += links.ip
        commands += links.commands
        hosts[host.name] = _host_script(host, plan, shaped)
    device = driver_device(testbed)
    ip += [
        f"link add name {DRIVER} type veth peer name {device} netns {machine_pid}",
        f"link set dev {DRIVER} master {CORE}",
        f"link set dev {DRIVER} up",
    ]
    machine = Script(
        ip=(
            f"link set dev {device} alias testbed={testbed}",
            f"addr add {plan.driver}/{prefix} dev {device}",
            f"link set dev {device} up",
            # Each of its packets must reach a short queue of the fabric as a single frame.
            *([frames_line(device)] if any(sends_frames(each.shape) for each in shaped) else []),
        )
    )
    tc = [line for each in shaped if each.host is None for line in tc_lines_for(each.device, each.shape)]
    return Wiring(Script(tuple(ip), tuple(commands), tuple(tc)), hosts, machine)


def wire_host(topology: Topology, plan: AddressPlan, name: str, pid: int | str) -> tuple[Script, Script]:
    """Render the links of one host of a fabric that exists; return the fabric's script and the host's.

    `pid` is a process of the host.
    """
    ((number, host),) = ((number, host) for number, host in topology.numbered if host.name == name)
    shaped = shaped_devices(topology)
    links = _links(topology, number, host, pid)
    ends = {port(number, index) for index in range(len(host.nics))}
    tc = tuple(line for each in shaped if each.device in ends for line in tc_lines_for(each.device, each.shape))
    return Script(links.ip, links.commands, tc), _host_script(host, plan, shaped)


def _links(topology: Topology, number: int, host: DeclaredHost, pid: int | str) -> Script:
    """Return the commands in the fabric for one host's links, without their shaping."""
    ip, commands = [], []
    for index, nic in enumerate(host.nics):
        far_end = port(number, index)
        ip += [
            f"link add name {far_end} type veth peer name {nic.name} netns {pid}",
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
    return Script(
        ip=tuple(ip),
        commands=tuple(offload_command(nic.name) for nic in host.nics),
        tc=tuple(line for each in own for line in tc_lines_for(each.device, each.shape)),
    )
