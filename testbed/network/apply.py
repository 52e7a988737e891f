"""A testbed's fabric in the kernel: create it, read it back, and compare it with the topology.

Changes need root on the engine's machine, or a root container.
"""

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from testbed.errors import TestbedError
from testbed.hosts.host import CommandFailed, Shell
from testbed.network.addresses import AddressPlan
from testbed.network.fabric import (
    CORE,
    DRIVER,
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
from testbed.network.namespaces import NamespaceShell, machine_pid, run_as_root
from testbed.network.overlay import DEVICE as VXLAN
from testbed.network.overlay import Overlay, fabric_place, in_words, machines_of
from testbed.network.shape import Shape, class_show_command, compare, parse_shape, qdisc_show_command
from testbed.software.distribution import which
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
    if isinstance(place, NamespaceShell):
        return place.pid
    raise TypeError(f"{place.name} is no container")


def _run(place: Place | None, command: Sequence[str], *, lines: Sequence[str] = ()) -> str:
    stdin = "".join(f"{line}\n" for line in lines).encode()
    if place is not None and not isinstance(place, int):
        return _run_in(place, command, lines, stdin)
    with _explained(command):
        return _output(run_as_root(command, pid=place, stdin=stdin, timeout_s=COMMAND_S), command, lines)


def _read(command: Sequence[str]) -> Any:
    """Return the JSON that a command prints in the machine's own namespace, where every user may read."""
    with _explained(command):
        # Some distributions have `ip` in a folder that is not in a user's PATH.
        words = [which(command[0]) or command[0], *command[1:]]
        done = subprocess.run(words, capture_output=True, timeout=COMMAND_S, check=False)
        return json.loads(_output(done, command) or "[]")


@contextmanager
def _explained(command: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NetworkError(f"{error.filename} is not installed: run `testbed doctor --fix`") from error
    except subprocess.TimeoutExpired as error:
        raise NetworkError(f"`{' '.join(command)}` was not done after {error.timeout:g} s") from error


def _output(done: subprocess.CompletedProcess[bytes], command: Sequence[str], lines: Sequence[str] = ()) -> str:
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace")[-1000:]
        quoted = "".join(f"\n    {line}" for line in lines)
        raise NetworkError(f"`{' '.join(command)}` ended with status {done.returncode}: {said}{quoted}")
    return done.stdout.decode()


def _run_in(shell: Shell, command: Sequence[str], lines: Sequence[str], stdin: bytes) -> str:
    try:
        return shell.run(command, timeout_s=COMMAND_S, stdin=stdin).stdout
    except CommandFailed as error:
        raise NetworkError(str(error) + "".join(f"\n    {line}" for line in lines)) from error


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
    found = []
    for route in routes:
        destination = str(route.get("dst", "default"))
        if destination != "default" and route.get("type", "unicast") in ("unicast", "local"):
            found.append(destination if "/" in destination else destination + "/32")
    return found


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


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """A link end that is down or missing."""

    end: LinkEnd
    state: str

    def __str__(self) -> str:
        where = {MACHINE: "on this machine"}.get(self.end.host, f"on {self.end.host}")
        if self.end.host == FABRIC or self.end.host.startswith("@"):
            where = f"in {in_words(self.end.host)}"
        return f"{self.end.what} is {self.state} ({self.end.device} {where})"


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


def broken_links(testbed: str, topology: Topology, pids: Mapping[str, Place]) -> tuple[BrokenLink, ...]:
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
    fabric_pid: Place,
    host_pids: Mapping[str, Place],
    overlay: Overlay | None = None,
    machines: Mapping[str, Shell] | None = None,
) -> None:
    """Make bridges, links, addresses and shaping, then compare. Raise `TestbedError` on any difference.

    With `overlay` the fabrics of several machines are joined; `machines` has a shell as root on each other machine.
    """
    pids = {place: pid_of(pid) for place, pid in {**host_pids, FABRIC: fabric_pid}.items()}
    wiring = wire(name, topology, plan, pids, machine_pid(), overlay)
    for machine, script in wiring.underlay.items():
        _make_underlay(script, (machines or {}).get(machine))
    for machine, script in wiring.fabrics.items():
        apply(script, host_pids[fabric_place(machine)] if machine else fabric_pid)
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


def shaping_differences(topology: Topology, fabric_pid: Place | None, host_pids: Mapping[str, Place]) -> list[str]:
    """Return the differences between declared and actual shaping as texts; empty when there are none.

    A host that does not run (None, or not in `host_pids`) differs.
    """
    found = link_differences(shaped_devices(topology), fabric_pid, host_pids)
    return [f"{each.what}: {difference}" for each, difference in found]


def link_differences(
    devices: Iterable[Shaped], fabric_pid: Place | None, host_pids: Mapping[str, Place]
) -> list[tuple[Shaped, str]]:
    """Return each difference between the declared and the actual shaping of these devices, with its device."""
    found = []
    for each in devices:
        pid = host_pids.get(each.where) if each.where else fabric_pid
        if pid is None:
            found.append((each, f"{in_words(each.where)} does not run"))
        else:
            found += [(each, difference) for difference in compare(each.shape, read_shape(each.device, pid))]
    return found
