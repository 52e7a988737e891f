"""A testbed's fabric in the kernel: create it, read it back, and compare it with the topology.

Needs root on the engine's machine.
"""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.errors import TestbedError
from testbed.hosts.host import NamespaceShell
from testbed.network.addresses import AddressPlan
from testbed.network.fabric import CORE, DRIVER, Script, Shaped, driver_device, port, shaped_devices, wire, wire_host
from testbed.network.shape import Shape, class_show_command, compare, parse_shape, qdisc_show_command
from testbed.topology.model import Topology


class NetworkError(TestbedError):
    """`ip`, `tc` or `ethtool` refused a line."""


def _in_namespace(pid: int | None, command: Sequence[str]) -> list[str]:
    if pid is None:
        return list(command)
    return ["nsenter", f"--net=/proc/{pid}/ns/net", "--", *command]


def _run(pid: int | None, command: Sequence[str], *, lines: Sequence[str] = ()) -> str:
    try:
        done = subprocess.run(
            _in_namespace(pid, command),
            input="\n".join(lines) + "\n" if lines else "",
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except FileNotFoundError as error:
        raise NetworkError(f"{error.filename} is not installed: run `testbed doctor --fix`") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-1000:]
        told = "".join(f"\n    {line}" for line in lines)
        raise NetworkError(f"`{' '.join(command)}` ended with status {done.returncode}: {said}{told}")
    return done.stdout


def apply(script: Script, pid: int | None = None) -> None:
    """Run a script in the namespace of process `pid`, or in the machine's own. Raise `NetworkError` on failure."""
    if script.ip:
        _run(pid, ["ip", "-batch", "-"], lines=script.ip)
    if script.commands:
        # One shell instead of one process per device; with `-e` the first failure ends the script.
        _run(pid, ["sh", "-e", "-s"], lines=[" ".join(command) + " >/dev/null" for command in script.commands])
    if script.tc:
        _run(pid, ["tc", "-batch", "-"], lines=script.tc)


def read_shape(device: str, pid: int | None = None) -> Shape | None:
    """Return the kernel's present shaping of a device; None when the device is not shaped."""
    qdiscs: list[Any] = json.loads(_run(pid, qdisc_show_command(device)) or "[]")
    return parse_shape(qdiscs, _run(pid, class_show_command(device)))


def machine_networks() -> list[str]:
    """Return every IPv4 network the machine has a route to, in CIDR notation (without the default route)."""
    routes: list[dict[str, Any]] = json.loads(_run(None, ["ip", "-j", "-4", "route", "show", "table", "all"]) or "[]")
    found = []
    for route in routes:
        destination = str(route.get("dst", "default"))
        if destination != "default" and route.get("type", "unicast") in ("unicast", "local"):
            found.append(destination if "/" in destination else destination + "/32")
    return found


def devices_with_alias(prefix: str) -> dict[str, str]:
    """Return the devices of the machine's own namespace whose alias begins with `prefix`: name → alias."""
    links: list[dict[str, Any]] = json.loads(_run(None, ["ip", "-j", "link", "show"]) or "[]")
    return {
        str(link["ifname"]): str(link["ifalias"]) for link in links if str(link.get("ifalias", "")).startswith(prefix)
    }


FABRIC, MACHINE = "", "<machine>"
"""Stands for a host's name; no host can have these names."""


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """One end of a link, or a switch: its description `what`, its `device`, and its host (or one of the two above)."""

    what: str
    host: str
    device: str


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """A link end that is down or missing."""

    end: LinkEnd
    state: str

    def __str__(self) -> str:
        where = {FABRIC: "in the fabric", MACHINE: "on this machine"}.get(self.end.host, f"on {self.end.host}")
        return f"{self.end.what} is {self.state} ({self.end.device} {where})"


def link_ends(testbed: str, topology: Topology) -> tuple[LinkEnd, ...]:
    """Return every end of every link of a testbed of this name, and its switches. Pure."""
    found = [LinkEnd("the core", FABRIC, CORE)]
    found += [LinkEnd("this machine's link", *at) for at in ((FABRIC, DRIVER), (MACHINE, driver_device(testbed)))]
    for number, rack in enumerate(topology.racks):
        found.append(LinkEnd(f"the switch of rack {rack}", FABRIC, f"rack{number}"))
        found += [LinkEnd(f"rack {rack}'s uplink", FABRIC, device) for device in (f"up{number}", f"dn{number}")]
    for number, host in topology.numbered:
        for index, nic in enumerate(host.nics):
            found.append(LinkEnd(f"{host.name} {nic.name}", host.name, nic.name))
            found.append(LinkEnd(f"the switch's end of {host.name} {nic.name}", FABRIC, port(number, index)))
    return tuple(found)


def compare_links(
    testbed: str, topology: Topology, links: Mapping[str, Sequence[Mapping[str, Any]]]
) -> tuple[BrokenLink, ...]:
    """Return the ends that are down or missing. Pure.

    `links` has the output of `ip -j link show` on each host, in the fabric and on the machine. Other places are not
    judged. A link that is up but has no carrier is down at its other end.
    """
    found = []
    for end in link_ends(testbed, topology):
        if end.host in links:
            there = [link for link in links[end.host] if link["ifname"] == end.device]
            if not there:
                found.append(BrokenLink(end, "gone"))
            elif "UP" not in there[0]["flags"]:
                found.append(BrokenLink(end, "down"))
    return tuple(found)


def broken_links(testbed: str, topology: Topology, pids: Mapping[str, int]) -> tuple[BrokenLink, ...]:
    """Return the link ends that are down or missing in the kernel. Needs root. Raise `TestbedError` on failure.

    `pids` has a process of each running host, and of the fabric (under its name here, ``FABRIC``).
    """
    links = {}
    for place, pid in {**pids, MACHINE: os.getpid()}.items():
        links[place] = json.loads(NamespaceShell(place or "the fabric", pid).run(["ip", "-j", "link", "show"]).stdout)
    return compare_links(testbed, topology, links)


def make_fabric(
    name: str, topology: Topology, plan: AddressPlan, fabric_pid: int, host_pids: Mapping[str, int]
) -> None:
    """Make bridges, links, addresses and shaping, then compare. Raise `TestbedError` on any difference."""
    wiring = wire(name, topology, plan, host_pids, os.getpid())
    apply(wiring.fabric, fabric_pid)
    for host, script in wiring.hosts.items():
        apply(script, host_pids[host])
    apply(wiring.machine)
    _require_shaping(link_differences(shaped_devices(topology), fabric_pid, host_pids))


def add_links(topology: Topology, plan: AddressPlan, name: str, fabric_pid: int, host_pid: int) -> None:
    """Make one host's links in a fabric that exists, with addresses and shaping, then compare; see `make_fabric`."""
    in_fabric, on_host = wire_host(topology, plan, name, host_pid)
    apply(in_fabric, fabric_pid)
    apply(on_host, host_pid)
    own = [each for each in shaped_devices(topology) if each.place == name]
    _require_shaping(link_differences(own, fabric_pid, {name: host_pid}))


def _require_shaping(found: Sequence[tuple[Shaped, str]]) -> None:
    if found:
        problems = [f"{each.what}: {difference}" for each, difference in found]
        raise TestbedError("the kernel did not take the declared shaping:\n  " + "\n  ".join(problems))


def shaping_differences(topology: Topology, fabric_pid: int | None, host_pids: Mapping[str, int]) -> list[str]:
    """Return the differences between declared and actual shaping as texts; empty when there are none.

    A host that does not run (None, or not in `host_pids`) differs.
    """
    found = link_differences(shaped_devices(topology), fabric_pid, host_pids)
    return [f"{each.what}: {difference}" for each, difference in found]


def link_differences(
    devices: Iterable[Shaped], fabric_pid: int | None, host_pids: Mapping[str, int]
) -> list[tuple[Shaped, str]]:
    """Return each difference between the declared and the actual shaping of these devices, with its device."""
    found = []
    for each in devices:
        pid = fabric_pid if each.host is None else host_pids.get(each.host)
        if pid is None:
            found.append((each, f"{each.host or 'the fabric'} does not run"))
        else:
            found += [(each, difference) for difference in compare(each.shape, read_shape(each.device, pid))]
    return found
