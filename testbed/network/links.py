"""Which links of a testbed there must be, and which of them are down or gone. Pure but for `fallen`."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.hosts.namespace import NamespaceShell
from testbed.network.fabric import CORE, DRIVER, driver_device, port
from testbed.topology.model import Topology

FABRIC, MACHINE = "", "<machine>"
"""In place of a host's name; no host can have these."""


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link, or a switch: `what` in words, the `device`, and the host it is on (or the two above)."""

    what: str
    host: str
    device: str


@dataclass(frozen=True, slots=True)
class Fallen:
    """An end that was taken down, or is not there."""

    end: End
    state: str

    def __str__(self) -> str:
        where = {FABRIC: "in the fabric", MACHINE: "on this machine"}.get(self.end.host, f"on {self.end.host}")
        return f"{self.end.what} is {self.state} ({self.end.device} {where})"


def ends(testbed: str, topology: Topology) -> tuple[End, ...]:
    """Every end of every link of a testbed of this name, and its switches. Pure."""
    found = [End("the core", FABRIC, CORE)]
    found += [End("this machine's link", *at) for at in ((FABRIC, DRIVER), (MACHINE, driver_device(testbed)))]
    for number, rack in enumerate(topology.racks):
        found.append(End(f"the switch of rack {rack}", FABRIC, f"rack{number}"))
        found += [End(f"rack {rack}'s uplink", FABRIC, device) for device in (f"up{number}", f"dn{number}")]
    for number, host in enumerate(topology.hosts):
        for index, nic in enumerate(host.nics):
            found.append(End(f"{host.name} {nic.name}", host.name, nic.name))
            found.append(End(f"the switch's end of {host.name} {nic.name}", FABRIC, port(number, index)))
    return tuple(found)


def compare_links(
    testbed: str, topology: Topology, links: Mapping[str, Sequence[Mapping[str, Any]]]
) -> tuple[Fallen, ...]:
    """Which ends are down or gone, given what `ip -j link show` says on each host, in the fabric, on the machine. Pure.

    Of what is not among `links` nothing is said. A link that is up but has no carrier is down at its other end.
    """
    found = []
    for end in ends(testbed, topology):
        if end.host in links:
            there = [link for link in links[end.host] if link["ifname"] == end.device]
            if not there:
                found.append(Fallen(end, "gone"))
            elif "UP" not in there[0]["flags"]:
                found.append(Fallen(end, "down"))
    return tuple(found)


def fallen(testbed: str, topology: Topology, pids: Mapping[str, int]) -> tuple[Fallen, ...]:
    """Which ends of links are down or gone, as the kernel has them. Needs root; raises `TestbedError`.

    `pids` has a process of each host that runs, and of the fabric (under its name here, ``FABRIC``).
    """
    links = {}
    for place, pid in {**pids, MACHINE: os.getpid()}.items():
        links[place] = json.loads(NamespaceShell(place or "the fabric", pid).run(["ip", "-j", "link", "show"]).stdout)
    return compare_links(testbed, topology, links)
