"""The network under faults: its required state from the topology and the active faults, and the changes to reach it.

A fault changes the required state, not the network itself. So faults compose, and the declared shape with its
impairments stays below them. A heal does the same as an apply: it computes the state and changes the differences.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import IPv4Address
from typing import ClassVar

from testbed.errors import TestbedError, UsageError
from testbed.faults.devices import Device, Devices, Program, program
from testbed.faults.fault import Fault, parameter
from testbed.faults.journal import active
from testbed.faults.parameters import known_rack, name, no_uplink
from testbed.network.addresses import AddressPlan
from testbed.network.fabric import fabric_devices, port, shaped_devices
from testbed.network.shape import Shape, compare, sends_frames
from testbed.provision.testbed import Testbed
from testbed.topology.links import Nic
from testbed.topology.model import Topology

PING_S = 1
EVERY_NIC = "all"


@dataclass(frozen=True)
class NetworkFault(Fault):
    """A fault of the network: each kind overrides one of the first three methods."""

    hinders: ClassVar[bool] = True
    keeps_quota: ClassVar[bool] = True

    def reshaped(self, topology: Topology) -> Topology:
        """Return the topology with the rates under this fault."""
        return topology

    def down(self, topology: Topology) -> frozenset[str]:
        """Return the fabric's devices that this fault takes down."""
        del topology
        return frozenset()

    def lost(self, topology: Topology, plan: AddressPlan) -> Mapping[str, frozenset[IPv4Address]]:
        """Return, by device of the fabric where frames enter, the addresses whose frames are lost."""
        del topology, plan
        return {}

    def probe(self, testbed: Testbed) -> str | None:
        """Send a packet that must not arrive; return None if it did not, otherwise what was observed."""
        del testbed
        return None

    def settle(self, testbed: Testbed) -> None:
        """See `Fault.settle`."""
        settle(testbed, self)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: the kernel read back, then a packet that must not arrive."""
        found = differences(testbed, self)
        return "; ".join(found) if found else self.probe(testbed)


@dataclass(frozen=True)
class UplinkFault(NetworkFault):
    """A fault of a rack's uplink."""

    rack: str = parameter("the rack", name)

    @classmethod
    def absent_from(cls, topology: Topology) -> str:
        """See `Fault.absent_from`."""
        return no_uplink(topology)

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        known_rack(topology, self.rack)
        _racks_end, cores_end = uplink(topology, self.rack)
        if not topology.exists and cores_end not in fabric_devices(topology):
            raise UsageError(f"rack {self.rack} has hosts on several machines: it has no single uplink")


@dataclass(frozen=True, slots=True)
class Network:
    """The required state of a network; any other device is unshaped, up and loses no frames."""

    shapes: Mapping[Device, Shape]
    down: frozenset[str]
    lost: Mapping[str, frozenset[IPv4Address]]


def network(topology: Topology, plan: AddressPlan, faults: Iterable[NetworkFault]) -> Network:
    """Return the declared network under `faults`, in any order. Pure."""
    reshaped, down, lost = topology, frozenset[str](), dict[str, frozenset[IPv4Address]]()
    for fault in faults:
        reshaped = fault.reshaped(reshaped)
        down |= fault.down(topology)
        for device, addresses in fault.lost(topology, plan).items():
            lost[device] = lost.get(device, frozenset()) | addresses
    return Network(shapes(reshaped), down, lost)


def shapes(topology: Topology) -> dict[Device, Shape]:
    """Return the shape of every device that the topology shapes."""
    return {Device(each.where, each.device): each.shape for each in shaped_devices(topology)}


@dataclass(frozen=True, slots=True)
class Part:
    """The devices that one fault concerns; `settle` compares them, and changes them where they differ."""

    shaped: frozenset[Device]
    links: frozenset[str]
    filtered: frozenset[str]


def part_of(topology: Topology, plan: AddressPlan, fault: NetworkFault | None) -> Part:
    """Return the devices that a fault concerns; None: all devices. Pure."""
    declared = shapes(topology)
    if fault is not None:
        left = shapes(fault.reshaped(topology))
        changed = (device for device, shape in left.items() if declared.get(device) != shape)
        return Part(frozenset(changed), fault.down(topology), frozenset(fault.lost(topology, plan)))
    if topology.exists:
        return Part(frozenset(declared), frozenset(), frozenset())
    ports = frozenset(each for host in topology.hosts for each in ports_of(topology, host.name))
    at = fabric_devices(topology)
    uplinks = frozenset(name for name in at if name.startswith(("up", "dn")))
    return Part(frozenset(declared) | {Device(at[name], name) for name in uplinks}, ports | uplinks, ports)


def require_on_machines(fault: Fault, testbed: Testbed) -> None:
    """Raise `UsageError` for a fault in the testbed's own switch, which machines that exist do not have."""
    if testbed.topology.exists and isinstance(fault, NetworkFault):
        part = part_of(testbed.topology, testbed.plan, fault)
        if part.links or part.filtered:
            raise UsageError(
                f"{fault.kind} acts in the testbed's own switch, and between machines that exist there is none; "
                "allowed there: nic-rate, nic-impair, and the faults of processes and quotas"
            )


def settle(testbed: Testbed, fault: NetworkFault | None = None) -> None:
    """Bring the devices that `fault` concerns (None: all) into the required state, and read them back.

    Raise `TestbedError` when the kernel reports another state afterwards.
    """
    devices = Devices(testbed)
    part = part_of(testbed.topology, testbed.plan, fault)
    if _entries(testbed.topology) & {device.name for device in part.shaped}:
        devices.hand_frames(single=any(map(sends_frames, _wanted(testbed).shapes.values())))
    for _lines, change in _changes(testbed, fault, devices):
        change()
    if found := [line for lines, _change in _changes(testbed, fault, devices) for line in lines]:
        raise TestbedError("the kernel has other settings than the active faults require:\n  " + "\n  ".join(found))


def differences(testbed: Testbed, fault: NetworkFault | None) -> list[str]:
    """Return one line for each difference from the required state on devices that `fault` concerns."""
    return [line for lines, _change in _changes(testbed, fault, Devices(testbed)) for line in lines]


def active_faults(testbed: Testbed) -> list[NetworkFault]:
    """Return the active faults of the network, oldest first, without those of hosts that have left."""
    return [fault for fault in active(testbed.name, NetworkFault) if not fault.has_left(testbed.topology)]


def _wanted(testbed: Testbed) -> Network:
    return network(testbed.topology, testbed.plan, active_faults(testbed))


def _entries(topology: Topology) -> set[str]:
    """Return the devices that send into a rack: the only shaped ones that the driver's own packets meet whole."""
    return set() if topology.exists else {uplink(topology, rack)[1] for rack in topology.racks}


def _changes(
    testbed: Testbed, fault: NetworkFault | None, devices: Devices
) -> list[tuple[list[str], Callable[[], None]]]:
    """Return the differences of each device that is not as required, and the change that mends it."""
    want = _wanted(testbed)
    part = part_of(testbed.topology, testbed.plan, fault)
    found: list[tuple[list[str], Callable[[], None]]] = []
    for device in sorted(part.shaped):
        shape = want.shapes.get(device)
        if lines := _shape_differences(device, shape, devices.shape(device)):
            found.append((lines, partial(devices.set_shape, device, shape)))
    are_down = devices.links_down() if part.links else set()
    for link in sorted(part.links):
        if (link in are_down) != (link in want.down):
            line = f"fabric {link} is {'down' if link in are_down else 'up'}"
            found.append(([line], partial(devices.set_link, link, up=link in are_down)))
    filters = devices.filters() if part.filtered else {}
    for link in sorted(part.filtered):
        lost = want.lost.get(link, frozenset())
        if lines := _lost_differences(link, lost, filters):
            found.append((lines, partial(devices.set_lost, link, lost)))
    return found


def _shape_differences(device: Device, want: Shape | None, have: Shape | None) -> list[str]:
    if want is None:
        return [f"{device} is shaped; declared is no rate"] if have is not None else []
    return [f"{device}: {difference}" for difference in compare(want, have)]


def _lost_differences(link: str, want: frozenset[IPv4Address], have: Mapping[str, Sequence[Program]]) -> list[str]:
    if have.get(link) == ([program(want)] if want else None):
        return []
    if not want:
        return [f"fabric {link} still has a filter"]
    return [f"fabric {link} has {'another' if link in have else 'no'} filter; {len(want)} addresses must be lost there"]


# ---- the parts of a topology in the fabric


def nics_of(topology: Topology, host: str, nic: str) -> list[tuple[int, Nic]]:
    """Return a host's NICs of this name (`all`: every one) with their numbers."""
    nics = enumerate(topology.host(host).nics)
    return [(number, each) for number, each in nics if nic in (EVERY_NIC, each.name)]


def with_nics(topology: Topology, host: str, nic: str, change: Callable[[Nic], Nic]) -> Topology:
    """Return the topology with a host's NICs of this name (`all`: every one) as `change` returns them. Pure."""
    chosen = {number for number, _nic in nics_of(topology, host, nic)}
    first, *more = (change(each) if n in chosen else each for n, each in enumerate(topology.host(host).nics))
    hosts = (replace(h, nic=first, more_nics=tuple(more)) if h.name == host else h for h in topology.hosts)
    return replace(topology, hosts=tuple(hosts))


def ports_of(topology: Topology, host: str, nic: str = EVERY_NIC) -> list[str]:
    """Return the devices at the switch's side of a host's links."""
    number = topology.by_number.index(host)
    return [port(number, index) for index, _nic in nics_of(topology, host, nic)]


def uplink(topology: Topology, rack: str) -> tuple[str, str]:
    """Return the devices at the rack's and at the core's side of a rack's uplink."""
    number = topology.racks.index(rack)
    return f"up{number}", f"dn{number}"


def arrives(testbed: Testbed, source: str, address: IPv4Address) -> bool:
    """Return whether a host gets an answer to one echo request to `address`. Raise `TestbedError`."""
    command = ["ping", "-n", "-q", "-c", "1", "-W", str(PING_S), str(address)]
    result = testbed.hosts[source].run(command, timeout_s=PING_S + 10, check=False)
    if result.exit_status not in (0, 1):
        raise TestbedError(f"{source}: `{result.command}` could not be sent: {result.stderr.strip()}")
    return result.exit_status == 0
