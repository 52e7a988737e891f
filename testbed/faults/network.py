"""The network under faults: what it must be, given the topology and the active faults, and making it so.

A fault does not change the network, it changes what the network must be. So faults compose, the declared shape
with its delay and loss stays beneath them, and healing one is the same as putting it in: compute, compare, change
what differs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, ClassVar

from testbed.errors import TestbedError
from testbed.faults.devices import Device, Devices, Program, program
from testbed.faults.fault import Fault
from testbed.faults.journal import active
from testbed.network.addresses import AddressPlan
from testbed.network.fabric import port, shaped_devices
from testbed.network.shape import Shape, compare
from testbed.topology.links import Nic
from testbed.topology.model import Topology

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed

PING_S = 1
EVERY_NIC = "all"


class NetworkFault(Fault):
    """A fault of the network: a kind says what of it is otherwise, in one of the first three methods."""

    hinders: ClassVar[bool] = True

    def reshaped(self, topology: Topology) -> Topology:
        """The topology with the rates that it leaves."""
        return topology

    def down(self, topology: Topology) -> frozenset[str]:
        """The fabric's devices that it takes down."""
        del topology
        return frozenset()

    def lost(self, topology: Topology, plan: AddressPlan) -> Mapping[str, frozenset[IPv4Address]]:
        """By the fabric's device: for which addresses frames are lost that enter there."""
        del topology, plan
        return {}

    def probe(self, testbed: "Testbed") -> str | None:
        """Send a packet that must not arrive: None when it did not, otherwise what was seen."""
        del testbed
        return None

    def apply(self, testbed: "Testbed") -> None:
        """See `Fault.apply`."""
        settle(testbed, self)

    def verify(self, testbed: "Testbed") -> str | None:
        """See `Fault.verify`: the kernel read back, then a packet that must not arrive."""
        found = differences(testbed, self)
        return "; ".join(found) if found else self.probe(testbed)

    def heal(self, testbed: "Testbed") -> None:
        """See `Fault.heal`."""
        settle(testbed, self)


@dataclass(frozen=True, slots=True)
class Network:
    """What a testbed's network must be; a device that is in none of these is unshaped, up and loses nothing."""

    shapes: Mapping[Device, Shape]
    down: frozenset[str]
    lost: Mapping[str, frozenset[IPv4Address]]


def network(topology: Topology, plan: AddressPlan, faults: Iterable[NetworkFault]) -> Network:
    """The declared network with `faults` in it, in whatever order. Pure."""
    reshaped, down, lost = topology, frozenset[str](), dict[str, frozenset[IPv4Address]]()
    for fault in faults:
        reshaped = fault.reshaped(reshaped)
        down |= fault.down(topology)
        for device, addresses in fault.lost(topology, plan).items():
            lost[device] = lost.get(device, frozenset()) | addresses
    return Network(shapes(reshaped), down, lost)


def shapes(topology: Topology) -> dict[Device, Shape]:
    """Every device that the topology shapes."""
    return {Device(each.host or "", each.device): each.shape for each in shaped_devices(topology)}


@dataclass(frozen=True, slots=True)
class Part:
    """The parts of a network that are looked at, and changed where they must be otherwise."""

    shaped: frozenset[Device]
    links: frozenset[str]
    filtered: frozenset[str]


def part_of(topology: Topology, plan: AddressPlan, fault: NetworkFault | None) -> Part:
    """What a fault concerns; None: all there is. Pure."""
    declared = shapes(topology)
    if fault is not None:
        left = shapes(fault.reshaped(topology))
        changed = (device for device, shape in left.items() if declared.get(device) != shape)
        return Part(frozenset(changed), fault.down(topology), frozenset(fault.lost(topology, plan)))
    ports = frozenset(each for host in topology.hosts for each in ports_of(topology, host.name))
    uplinks = frozenset(each for rack in topology.racks for each in uplink(topology, rack))
    return Part(frozenset(declared) | {Device("", name) for name in uplinks}, ports | uplinks, ports)


def settle(testbed: "Testbed", fault: NetworkFault | None = None) -> None:
    """Make what `fault` concerns (None: everything) what it must be, and read it back.

    Raises `TestbedError` when the kernel has something else afterwards.
    """
    want, part = _wanted(testbed), part_of(testbed.topology, testbed.plan, fault)
    devices = Devices(testbed)
    for device in sorted(part.shaped):
        shape = want.shapes.get(device)
        if _shape_differences(device, shape, devices.shape(device)):
            devices.set_shape(device, shape)
    if part.links:
        are_down = devices.links_down()
        for name in sorted(part.links):
            if (name in are_down) != (name in want.down):
                devices.set_link(name, up=name not in want.down)
    if part.filtered:
        filters = devices.filters()
        for name in sorted(part.filtered):
            if _lost_differences(name, want.lost.get(name, frozenset()), filters):
                devices.set_lost(name, want.lost.get(name, frozenset()))
    found = differences(testbed, fault, devices)
    if found:
        raise TestbedError("the kernel did not take it:\n  " + "\n  ".join(found))


def differences(testbed: "Testbed", fault: NetworkFault | None, devices: Devices | None = None) -> list[str]:
    """Where what `fault` concerns is not what it must be, in words."""
    want, part = _wanted(testbed), part_of(testbed.topology, testbed.plan, fault)
    devices = devices or Devices(testbed)
    found = [
        line
        for device in sorted(part.shaped)
        for line in _shape_differences(device, want.shapes.get(device), devices.shape(device))
    ]
    are_down = devices.links_down() if part.links else set()
    found += [
        f"fabric {name} is {'down' if name in are_down else 'up'}"
        for name in sorted(part.links)
        if (name in are_down) != (name in want.down)
    ]
    filters = devices.filters() if part.filtered else {}
    for name in sorted(part.filtered):
        found += _lost_differences(name, want.lost.get(name, frozenset()), filters)
    return found


def _wanted(testbed: "Testbed") -> Network:
    faults = active(testbed.name, NetworkFault)  # type: ignore[type-abstract]
    return network(testbed.topology, testbed.plan, faults)


def _shape_differences(device: Device, want: Shape | None, have: Shape | None) -> list[str]:
    if want is None:
        return [f"{device} is shaped; declared is no rate"] if have is not None else []
    return [f"{device}: {difference}" for difference in compare(want, have)]


def _lost_differences(name: str, want: frozenset[IPv4Address], have: Mapping[str, Sequence[Program]]) -> list[str]:
    if have.get(name) == ([program(want)] if want else None):
        return []
    if not want:
        return [f"fabric {name} still has a filter"]
    return [f"fabric {name} has {'another' if name in have else 'no'} filter; {len(want)} addresses must be lost there"]


# ---- the parts of a topology in the fabric


def nics_of(topology: Topology, host: str, nic: str) -> list[tuple[int, Nic]]:
    """A host's NICs of this name (`all`: every one) with their numbers."""
    nics = enumerate(topology.host(host).nics)
    return [(number, each) for number, each in nics if nic in (EVERY_NIC, each.name)]


def ports_of(topology: Topology, host: str, nic: str = EVERY_NIC) -> list[str]:
    """The switch's ends of a host's links."""
    number = [each.name for each in topology.hosts].index(host)
    return [port(number, index) for index, _nic in nics_of(topology, host, nic)]


def uplink(topology: Topology, rack: str) -> tuple[str, str]:
    """The rack's and the core's end of a rack's uplink."""
    number = topology.racks.index(rack)
    return f"up{number}", f"dn{number}"


def arrives(testbed: "Testbed", source: str, address: IPv4Address) -> bool:
    """Whether one echo request from a host gets to `address` and its answer back. Raises `TestbedError`."""
    command = ["ping", "-n", "-q", "-c", "1", "-W", str(PING_S), str(address)]
    result = testbed.hosts[source].run(command, timeout_s=PING_S + 10, check=False)
    if result.exit_status not in (0, 1):
        raise TestbedError(f"{source}: `{result.command}` could not be sent: {result.stderr.strip()}")
    return result.exit_status == 0
