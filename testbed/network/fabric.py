"""The fabric: the bridges and links of a testbed, as the lines that make them. Pure.

All bridges of a testbed stand in the network namespace of one container, the *fabric*. So they are labelled and
found like any container, the machine's own firewall and forwarding rules do not see the testbed's traffic,
and removing the container removes every bridge and link at once, whatever state they were left in.

    core ── up0/dn0 ── rack0 ── port0 (the far end is the first host's `data0`), port1 …
      └──── up1/dn1 ── rack1 ── port2 …
      └──── driver (the machine itself, unshaped)

Devices are numbered, because names of devices have at most 15 characters; each carries its name as alias.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from testbed.network.addresses import AddressPlan
from testbed.network.shape import offload_command, tc_lines
from testbed.topology.model import Topology

CORE = "core"


@dataclass(frozen=True, slots=True)
class Script:
    """What is run in one network namespace, in this order."""

    ip: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    tc: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wiring:
    """Everything that is made: one script for the fabric, one for each host, one for the machine itself."""

    fabric: Script
    hosts: Mapping[str, Script]
    machine: Script


def driver_device(testbed: str) -> str:
    """The name of the machine's own link into the testbed (names of devices have at most 15 characters)."""
    return "tb-" + hashlib.sha256(testbed.encode()).hexdigest()[:10]


def _bridge(name: str) -> list[str]:
    # No spanning tree and no delay: there are no loops, and a port must forward from its first packet on.
    return [
        f"link add name {name} type bridge forward_delay 0 stp_state 0",
        f"link set dev {name} up",
    ]


def wire(
    testbed: str, topology: Topology, plan: AddressPlan, pids: Mapping[str, int | str], machine_pid: int | str
) -> Wiring:
    """Render the whole fabric of `topology`.

    `pids` gives a process of each host (the far end of its link goes into that process's namespace),
    `machine_pid` one of the machine's own namespace.
    """
    prefix = plan.data.prefixlen
    ip = ["link set dev lo up", *_bridge(CORE), f"addr add {plan.fabric}/{prefix} dev {CORE}"]
    commands: list[tuple[str, ...]] = []
    tc: list[str] = []
    for number, rack in enumerate(topology.racks):
        bridge, up, down = f"rack{number}", f"up{number}", f"dn{number}"
        ip += [
            *_bridge(bridge),
            f"link set dev {bridge} alias {rack}",
            f"link add name {up} type veth peer name {down}",
            f"link set dev {up} master {bridge}",
            f"link set dev {down} master {CORE}",
            f"link set dev {up} up",
            f"link set dev {down} up",
        ]
        commands += [offload_command(up), offload_command(down)]
    hosts: dict[str, Script] = {}
    for number, host in enumerate(topology.hosts):
        port, nic = f"port{number}", host.nic
        ip += [
            f"link add name {port} type veth peer name {nic.name} netns {pids[host.name]}",
            f"link set dev {port} alias {host.name}",
            f"link set dev {port} master rack{topology.racks.index(host.rack)}",
            f"link set dev {port} up",
        ]
        commands.append(offload_command(port))
        # What the switch's end sends is what the host receives.
        tc += tc_lines(port, nic.rx_bps, nic.rx_burst_bytes)
        hosts[host.name] = Script(
            ip=(
                f"addr add {plan.data_ip(host.name)}/{prefix} dev {nic.name}",
                f"link set dev {nic.name} up",
            ),
            commands=(offload_command(nic.name),),
            tc=tc_lines(nic.name, nic.tx_bps, nic.tx_burst_bytes),
        )
    device = driver_device(testbed)
    ip += [
        f"link add name driver type veth peer name {device} netns {machine_pid}",
        f"link set dev driver master {CORE}",
        "link set dev driver up",
    ]
    machine = Script(
        ip=(
            f"link set dev {device} alias testbed={testbed}",
            f"addr add {plan.driver}/{prefix} dev {device}",
            f"link set dev {device} up",
        )
    )
    return Wiring(Script(tuple(ip), tuple(commands), tuple(tc)), hosts, machine)
