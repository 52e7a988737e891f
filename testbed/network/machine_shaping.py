"""Shaping of a NIC of a machine that exists: only its own end is in reach. Pure.

What the NIC sends passes an HTB at its root, as in a container. What it receives is redirected to an IFB, a device of
the testbed's own, and passes an HTB there. SSH has a class of its own in both: a full NIC never delays the connection
over which the testbed commands the machine.

    eth1 root     1:10 data at the declared rate      1:20 SSH (packets from the server's port)
    eth1 ingress  ──> tbi-…  root     1:10 data       1:20 SSH (packets to the server's port)
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from testbed.network.shape import QUANTUM_BYTES, Shape, tc_lines

SSH_BPS = 20_000_000
"""The rate of SSH, in addition to the declared rate of the NIC."""
_SSH_BURST_BYTES = 64 * 1024
_SSH_CLASS = "1:20"
INGRESS_PREFIX = "tbi-"
INGRESS = "qdisc ingress ffff:"


def ingress_device(device: str) -> str:
    """Return the name of the device that shapes what `device` receives (names have at most 15 characters)."""
    return INGRESS_PREFIX + hashlib.sha256(device.encode()).hexdigest()[:10]


def shaping_lines(device: str, sent: Shape, received: Shape, ssh_port: int) -> tuple[str, ...]:
    """Return the lines for `tc -batch -` that shape a NIC both ways. `ingress_device(device)` must exist and be up.

    The redirection comes last: until then nothing that the NIC receives is touched.
    """
    entry = ingress_device(device)
    return (
        *tc_lines(entry, received),
        *ssh_lines(entry, ssh_port),
        *tc_lines(device, sent),
        *ssh_lines(device, ssh_port),
        f"qdisc add dev {device} handle ffff: ingress",
        f"filter add dev {device} parent ffff: protocol all prio 1 u32 match u32 0 0 "
        f"action mirred egress redirect dev {entry}",
    )


def ssh_lines(device: str, ssh_port: int) -> tuple[str, ...]:
    """Return the lines that give SSH its class on a shaped device: packets from the port, or on an IFB to the port."""
    end = "dport" if device.startswith(INGRESS_PREFIX) else "sport"
    return (
        f"class replace dev {device} parent 1: classid {_SSH_CLASS} htb rate {SSH_BPS}bit ceil {SSH_BPS}bit "
        f"burst {_SSH_BURST_BYTES}b cburst {_SSH_BURST_BYTES}b quantum {QUANTUM_BYTES}",
        f"filter replace dev {device} parent 1: protocol ip prio 1 handle 800::800 u32 "
        f"match ip protocol 6 0xff match ip {end} {ssh_port} 0xffff flowid {_SSH_CLASS}",
    )


def filter_show_command(device: str) -> tuple[str, ...]:
    """Return the command that lists the filters of what a device receives."""
    return ("tc", "filter", "show", "dev", device, "parent", "ffff:")


def without_own(device: str, shape: Shape, filters: str) -> Shape:
    """Return the shape without the testbed's own additions; a missing addition is added as a foreign text.

    `filters` is the output of `filter_show_command`: without the redirection nothing that the NIC receives is shaped.
    """
    expected, foreign = [f"class htb {_SSH_CLASS}"], list(shape.foreign)
    if not device.startswith(INGRESS_PREFIX):
        expected.append(INGRESS)
        if f"Redirect to device {ingress_device(device)}" not in filters:
            foreign.append(f"a device that does not redirect what it receives to {ingress_device(device)}")
    for each in expected:
        if each in foreign:
            foreign.remove(each)
        else:
            foreign.append(f"a device without `{each}`")
    return replace(shape, foreign=tuple(foreign))


def foreign_shaping(qdiscs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the disciplines that somebody set on a device, from `tc -j qdisc show dev …` (decoded), as texts.

    The kernel gives its default disciplines the handle 0. Every other discipline was set, and would be lost.
    """
    return [
        f"qdisc {each.get('kind')} {each.get('handle')}{' root' if each.get('root') else ''}"
        for each in qdiscs
        if str(each.get("handle", "0:")) != "0:"
    ]
