"""A testbed's fabric in the kernel: create it, read it back, and compare it with the topology.

Changes need root on the engine's machine, or a root container.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.errors import TestbedError
from testbed.hosts.host import Shell
from testbed.network.addresses import AddressPlan
from testbed.network.fabric import (
    CORE,
    DRIVER,
    PORT,
    Script,
    Shaped,
    driver_device,
    port,
    shaped_devices,
    switches,
    wire,
    wire_host,
)
from testbed.network.machine_shaping import INGRESS, filter_show_command, ingress_device, without_own
from testbed.network.namespaces import MachineShell, NamespaceShell, machine_pid, run_program
from testbed.network.overlay import DEVICE as VXLAN
from testbed.network.overlay import Overlay, fabric_place, in_words, machines_of
from testbed.network.shape import Shape, class_show_command, compare, parse_shape, qdisc_show_command
from testbed.topology.model import Topology
from testbed.wait import WaitTimeout, wait_for


class NetworkError(TestbedError):
    """`ip`, `tc` or `ethtool` refused a line."""


COMMAND_S = 30.0
Place = int | Shell
"""A network namespace: that of a process on this machine, or that of a shell on another machine."""


def shell_of(name: str, place: Place) -> Shell:
    """Return a shell in a place; `name` is for errors."""
    return NamespaceShell(name or "the fabric", place) if isinstance(place, int) else place


def pid_of(place: Place) -> int:
    """Return the process number of a container's place, as its machine counts."""
    if isinstance(place, int):
        return place
    assert isinstance(place, NamespaceShell)  # machines that exist have no fabric
    return place.pid


def _run(place: Place | None, command: Sequence[str], *, lines: Sequence[str] = ()) -> str:
    """Run a command as root in a place, or in the machine's own namespace, with `lines` as its input."""
    shell = place or MachineShell()
    if isinstance(shell, int):  # a container of this machine, in which the machine's programs are used
        shell = NamespaceShell(f"the network of process {shell}", shell, namespaces=("net",))
    try:
        return shell.run(command, timeout_s=COMMAND_S, stdin="".join(f"{line}\n" for line in lines).encode()).stdout
    except TestbedError as error:
        raise NetworkError(str(error) + "".join(f"\n    {line}" for line in lines)) from error


def _read(command: Sequence[str]) -> Any:
    """Return the JSON that a command prints in the machine's own namespace, where every user may read."""
    return json.loads(run_program(command) or "[]")


def apply(script: Script, pid: Place | None = None) -> None:
    """Run a script in a place, or in the machine's own namespace. Raise `NetworkError` on failure."""
    if script.ip:
        # The lines may name processes, whose numbers are those of the place's machine.
        links = pid.network_only() if isinstance(pid, NamespaceShell) else pid
        _run(links, ["ip", "-batch", "-"], lines=script.ip)
    if script.commands:
        # One shell instead of one process per device; with `-e` the first failure ends the script.
        _run(pid, ["sh", "-e", "-s"], lines=[" ".join(command) + " >/dev/null" for command in script.commands])
    if script.tc:
        _run(pid, ["tc", "-batch", "-"], lines=script.tc)


def read_shape(device: str, pid: Place | None = None) -> Shape | None:
    """Return the kernel's present shaping of a device; None when the device is not shaped.

    On a machine that exists, the class for SSH and the redirection of frames that enter are expected, not foreign.
    """
    qdiscs: list[Any] = json.loads(_run(pid, qdisc_show_command(device)) or "[]")
    found = parse_shape(qdiscs, _run(pid, class_show_command(device)))
    if found is None or pid is None or isinstance(pid, int | NamespaceShell):
        return found
    filters = _run(pid, filter_show_command(device)) if INGRESS in found.foreign else ""
    return without_own(device, found, filters)


def machine_networks(machine: Shell | None = None) -> list[str]:
    """Return every IPv4 network a machine has a route to, in CIDR notation (without the default route)."""
    command = ["ip", "-j", "-4", "route", "show", "table", "all"]
    routes: list[dict[str, Any]] = _read(command) if machine is None else json.loads(_run(machine, command) or "[]")
    kinds = ("unicast", "local")
    found = [str(route.get("dst", "default")) for route in routes if route.get("type", "unicast") in kinds]
    return [each if "/" in each else f"{each}/32" for each in found if each != "default"]


def devices_with_alias(prefix: str) -> dict[str, str]:
    """Return the devices of the machine's own namespace whose alias begins with `prefix`: name → alias."""
    links: list[dict[str, Any]] = _read(["ip", "-j", "link", "show"])
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


def link_ends(testbed: str, topology: Topology) -> tuple[LinkEnd, ...]:
    """Return every end of every link of a testbed of this name, and its switches. Pure."""
    if topology.exists:
        nics = [(host.name, nic.name) for host in topology.hosts for nic in host.nics]
        ends = [LinkEnd(f"{host} {nic}", host, nic) for host, nic in nics]
        return (*ends, *(LinkEnd(f"the device of what {h} {n} receives", h, ingress_device(n)) for h, n in nics))
    fabrics = [fabric_place(machine) for machine in machines_of(topology)]
    found = [LinkEnd("the core", fabric, CORE) for fabric in fabrics]
    if topology.remote_machines:
        found += [LinkEnd("the link to the other machines", fabric, VXLAN) for fabric in fabrics]
    found += [LinkEnd("this machine's link", *at) for at in ((FABRIC, DRIVER), (MACHINE, driver_device(testbed)))]
    for switch in switches(topology):
        rack, fabric = switch.rack, fabric_place(switch.machine)
        found.append(LinkEnd(f"the switch of rack {rack}", fabric, switch.bridge))
        found += [LinkEnd(f"rack {rack}'s uplink", fabric, device) for device in (switch.up, switch.down)]
    for number, host in topology.numbered:
        fabric = fabric_place(topology.remote_machine_of(host))
        for index, nic in enumerate(host.nics):
            found.append(LinkEnd(f"{host.name} {nic.name}", host.name, nic.name))
            found.append(LinkEnd(f"the switch's end of {host.name} {nic.name}", fabric, port(number, index)))
    return tuple(found)


def compare_links(
    testbed: str, topology: Topology, links: Mapping[str, Sequence[Mapping[str, Any]]]
) -> tuple[str, ...]:
    """Return the ends that are down or missing, each as text with its place. Pure.

    `links` has the output of `ip -j link show` on each host, in the fabric and on the machine. Other places are not
    judged. A link that is up but has no carrier is down at its other end.
    """
    found = []
    for end in link_ends(testbed, topology):
        if end.host not in links:
            continue
        flags = next((link["flags"] for link in links[end.host] if link["ifname"] == end.device), None)
        if flags is None or "UP" not in flags:
            state = "gone" if flags is None else "down"
            in_fabric = end.host == FABRIC or end.host.startswith("@")
            where = "on this machine" if end.host == MACHINE else f"{'in' if in_fabric else 'on'} {in_words(end.host)}"
            found.append(f"{end.what} is {state} ({end.device} {where})")
    return tuple(found)


def broken_links(testbed: str, topology: Topology, pids: Mapping[str, Place]) -> tuple[str, ...]:
    """Return the link ends that are down or missing in the kernel. Needs root. Raise `TestbedError` on failure.

    `pids` has a process of each running host, and of the fabric (under its name here, ``FABRIC``).
    """
    links = {MACHINE: _read(["ip", "-j", "link", "show"])}
    for place, pid in pids.items():
        links[place] = json.loads(shell_of(place, pid).run(["ip", "-j", "link", "show"]).stdout)
    return compare_links(testbed, topology, links)


def make_fabric(
    name: str,
    topology: Topology,
    plan: AddressPlan,
    places: Mapping[str, Place],
    overlay: Overlay | None = None,
    machines: Mapping[str, Shell] | None = None,
) -> None:
    """Make bridges, links, addresses and shaping, then compare. Raise `TestbedError` on any difference.

    `places` has a place for each host and each fabric. With `overlay` the fabrics of several machines are joined;
    `machines` has a shell as root on each other machine.
    """
    pids = {place: pid_of(pid) for place, pid in places.items()}
    wiring = wire(name, topology, plan, pids, machine_pid(), overlay)
    for machine, script in wiring.underlay.items():
        _make_underlay(script, (machines or {}).get(machine))
    for machine, script in wiring.fabrics.items():
        apply(script, places[fabric_place(machine)])
    for host, script in wiring.hosts.items():
        apply(script, places[host])
    apply(wiring.machine)
    require_shaping(shaped_devices(topology), places)


def add_links(topology: Topology, plan: AddressPlan, name: str, fabric_pid: int, host_pid: int) -> None:
    """Make one host's links in a fabric that exists, with addresses and shaping, then compare; see `make_fabric`."""
    in_fabric, on_host = wire_host(topology, plan, name, host_pid)
    apply(in_fabric, fabric_pid)
    apply(on_host, host_pid)
    own = [each for each in shaped_devices(topology) if each.place == name]
    require_shaping(own, {FABRIC: fabric_pid, name: host_pid})


def remove_links(name: str, fabric: Place) -> None:
    """Remove one host's links from a fabric, at both ends. Without effect where there are none.

    They go with the host's container only when nothing else uses its network, such as a watch of its shaping.
    """
    links = json.loads(_run(fabric, ["ip", "-j", "link", "show"]) or "[]")
    # A rack may have the name of a host, and its switch has it as alias.
    ends = [link["ifname"] for link in links if link.get("ifalias") == name and link["ifname"].startswith(PORT)]
    apply(Script(tuple(f"link del dev {end}" for end in ends)), fabric)


def require_shaping(devices: Iterable[Shaped], places: Mapping[str, Place]) -> None:
    """Raise `TestbedError` when the actual shaping of these devices differs from the declared shaping."""
    if problems := [f"{each.what}: {difference}" for each, difference in link_differences(devices, places)]:
        raise TestbedError("the kernel has other shaping than the topology declares:\n  " + "\n  ".join(problems))


def _make_underlay(script: Script, machine: Shell | None) -> None:
    """Make a machine's VXLAN device. The one of a testbed that was just removed may take some 100 ms to go."""

    def attempt() -> NetworkError | None:
        try:
            apply(script, machine)
        except NetworkError as error:
            if "File exists" not in str(error):
                raise
            return error
        return None

    try:
        wait_for(attempt, lambda error: error is None, 5.0, 0.1, "the identifier of the VXLAN device to be free")
    except WaitTimeout as error:
        raise NetworkError(str(error)) from error


def shaping_differences(topology: Topology, places: Mapping[str, Place]) -> list[str]:
    """Return the differences between declared and actual shaping as texts; empty when there are none.

    A host or a fabric that does not run (it is not in `places`) differs.
    """
    found = link_differences(shaped_devices(topology), places)
    return [f"{each.what}: {difference}" for each, difference in found]


def link_differences(devices: Iterable[Shaped], places: Mapping[str, Place]) -> list[tuple[Shaped, str]]:
    """Return each difference between the declared and the actual shaping of these devices, with its device."""
    found = []
    for each in devices:
        if each.where in places:
            actual = read_shape(each.device, places[each.where])
            found += [(each, difference) for difference in compare(each.shape, actual)]
        else:
            found.append((each, f"{in_words(each.where)} does not run"))
    return found
