"""The addresses of a testbed's hosts, as a function of the testbed's slot number.

All addresses are out of 198.18.0.0/15, which RFC 2544 sets aside for benchmarking, so that a testbed
never hides a network the machine needs. Slot n has 198.18.n.0/24 for management and 198.19.n.0/24 for data:

    .0/25    the first NIC of every host (.11 on), the driver (.1), the fabric's core (.2 on), its racks (.111 on)
    .128/26  the second NIC of hosts that have one
    .192/26  the third

NICs of one number meet in one network, so that the address alone says which NIC a connection uses.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

RANGE = IPv4Network("198.18.0.0/15")
SLOTS = range(0, 250)  # 198.18.255.0/24 is the engine's own bridge
_SLOT_PREFIX = 24
_DEFAULT_PREFIX = 1
"""A VPN sets a default route as two halves, 0.0.0.0/1 and 128.0.0.0/1, which the testbed's own routes precede."""
_MANAGEMENT = int(IPv4Address("198.18.0.0"))
_DATA = int(IPv4Address("198.19.0.0"))
_FIRST_HOST, _LAST_HOST = 11, 110
_DRIVER, _FABRIC, _FIRST_RACK = 1, 2, 111
_FIRST_OF_MORE, _LAST_OF_MORE = 1, 62
_NETWORKS = ((0, 25), (128, 26), (192, 26))
"""By NIC number: the begin of its network in the data network, and the length of the prefix."""


@dataclass(frozen=True, slots=True)
class AddressPlan:
    """The two networks of a testbed and the address of everything in them."""

    slot: int
    hosts: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.slot not in SLOTS:
            raise ValueError(f"slot {self.slot} is not in {SLOTS.start}..{SLOTS.stop - 1}")
        if len(self.hosts) > _LAST_HOST - _FIRST_HOST + 1:
            raise ValueError(f"{len(self.hosts)} hosts do not fit into one /25")

    @property
    def management(self) -> IPv4Network:
        """Return the network for commands; one bridge of the container engine."""
        return IPv4Network((_MANAGEMENT + 256 * self.slot, _SLOT_PREFIX))

    @property
    def data(self) -> IPv4Network:
        """Return the network for Kafka's traffic; the testbed's own bridges."""
        return IPv4Network((_DATA + 256 * self.slot, _SLOT_PREFIX))

    def network(self, nic: int = 0) -> IPv4Network:
        """Return the network that connects all hosts' NICs of this number (from 0)."""
        begin, prefix = _NETWORKS[nic]
        return IPv4Network((int(self.data.network_address) + begin, prefix))

    @property
    def driver(self) -> IPv4Address:
        """Return the machine's own address on the data network; its link is not shaped."""
        return self.data[_DRIVER]

    @property
    def fabric(self) -> IPv4Address:
        """Return the address of the core switch: an unshaped peer for the measurement of an uplink."""
        return self.fabric_on(0)

    def fabric_on(self, machine: int) -> IPv4Address:
        """Return the address of the core switch on a machine, by its number: 0 is the machine of the testbed."""
        return self.data[_FABRIC + machine]

    def fabric_in_rack(self, rack: int) -> IPv4Address:
        """Return the address of a rack's switch: an unshaped peer for the measurement of a NIC."""
        return self.data[_FIRST_RACK + rack]

    def management_ip(self, host: str) -> IPv4Address | str:
        """Return a host's address on the management network."""
        return self.management[_FIRST_HOST + self.hosts.index(host)]

    def data_ip(self, host: str, nic: int = 0) -> IPv4Address:
        """Return the address of a host's NIC of this number (from 0) on the data network."""
        index = self.hosts.index(host)
        if nic == 0:
            return self.data[_FIRST_HOST + index]
        if _FIRST_OF_MORE + index > _LAST_OF_MORE:
            raise ValueError(f"{host} is host {index + 1}; only the first {_LAST_OF_MORE} can have several NICs")
        return self.network(nic)[_FIRST_OF_MORE + index]


@dataclass(frozen=True, slots=True)
class MachineAddresses(AddressPlan):
    """The addresses of machines that exist, which have them already: of SSH, and of each NIC, by host."""

    ssh: Mapping[str, str]
    nics: Mapping[str, tuple[IPv4Address, ...]]

    def __post_init__(self) -> None:
        """Check nothing: there is no slot."""

    def management_ip(self, host: str) -> IPv4Address | str:
        """Return a host's address for SSH, or its name."""
        return self.ssh[host]

    def data_ip(self, host: str, nic: int = 0) -> IPv4Address:
        """Return the address of a host's NIC of this number (from 0)."""
        return self.nics[host][nic]


def is_wide(network: IPv4Network) -> bool:
    """Return whether a route to this network takes the addresses of several slots; a default route takes none."""
    return _DEFAULT_PREFIX < network.prefixlen < _SLOT_PREFIX and network.overlaps(RANGE)


def free_slot(taken: Iterable[int], used_networks: Iterable[IPv4Network]) -> int:
    """Return the lowest slot that no testbed holds and whose networks overlap no route of the machine.

    Raise `LookupError` when no slot is free.
    """
    taken_slots, used = set(taken), [each for each in used_networks if each.prefixlen > _DEFAULT_PREFIX]
    for slot in SLOTS:
        plan = AddressPlan(slot, ())
        if slot not in taken_slots and not any(
            network.overlaps(plan.management) or network.overlaps(plan.data) for network in used
        ):
            return slot
    held = f"testbeds hold {len(taken_slots.intersection(SLOTS))} of {len(SLOTS)} (`testbed ls`, `testbed down NAME`)"
    wide = [str(network) for network in used if is_wide(network)]
    routes = f", and this machine has routes to {', '.join(wide)}" if wide else ""
    raise LookupError(f"no address slot of {RANGE} is free: {held}{routes}")
