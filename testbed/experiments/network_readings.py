"""Readings of a testbed's network over a run: its shaping before, at each change, and after; its NICs once more."""

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from results.contract.manifest import NicMeasurement
from results.contract.network import LinkDifference, NetworkRecord, ShapingReading, When
from results.contract.schema import Sample
from testbed.errors import TestbedError
from testbed.faults.catalogue.objectstore_errors import ObjectstoreErrors
from testbed.faults.devices import Device
from testbed.faults.journal import FaultJournal
from testbed.faults.network import NetworkFault, part_of
from testbed.network.announcements import ADDRESS, DOWN, MTU, OFFLOAD, ROUTES
from testbed.network.apply import FABRIC, link_differences
from testbed.network.fabric import Shaped, fabric_devices, port, shaped_devices
from testbed.network.measure import settled, wait_idle
from testbed.network.shaping_watch import RULES, DeviceChange
from testbed.owner import Owner
from testbed.probes.brokers import nic_measurements
from testbed.provision.testbed import Testbed
from testbed.topology.host import DeclaredHost

LOOK_S = 1.0
PUT_BACK = "its shaping was changed and put back"
TAKEN_DOWN = "it was taken down"
CHANGED = "its traffic control was changed"
"""Of a device that the topology does not shape: nothing says what it should be."""
WORDS = {
    DOWN: TAKEN_DOWN,
    ADDRESS: "an address was added or removed",
    OFFLOAD: "its offload was changed",
    RULES: "a rule of the firewall was changed",
    ROUTES: "a route was added or removed",
}
"""What a change is that no reading of the shaping shows."""


class NetworkReadings(AbstractContextManager["NetworkReadings"]):
    """The readings of one run. From the construction on every change is noticed, also one that is undone at once.

    A change by a fault of this process is none: its devices are compared before and after the run only.
    """

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed
        self._since = _now()
        self._places = testbed.places()
        self._devices = {(each.where, each.device): each for each in shaped_devices(testbed.topology)}
        self._declared = {host.name: host for host in testbed.topology.hosts}
        self._watch = testbed.watch_shaping()
        self._pending: set[DeviceChange] = set()
        try:
            self._readings = [self._read("before", self._devices.values())]
        except BaseException:
            self._watch.close()
            raise

    def __exit__(self, *_error: object) -> None:
        self._watch.close()

    def look(self) -> Iterable[Sample]:
        """Read the devices that were changed since the last call; return no samples, for `Recorder.poll`."""
        mtu = self._testbed.state.mtu
        self._pending |= {each for each in self._watch.changes() if not usual(each, self._devices, mtu)}
        if self._pending:
            removed = self._removed()
            own, gone = self._of_own_faults() | self._ports_of(removed), {host.name for host in removed}
            changed = {
                each for each in self._pending if Device(each.place, each.device) not in own and each.place not in gone
            }
            if changed:
                self._readings.append(self._changed(changed))
            self._pending.clear()
        return ()

    def record(self) -> NetworkRecord:
        """Read all shaping after the run, and return all readings."""
        self.look()
        self._places = self._testbed.places()
        self._readings.append(self._read("after", shaped_devices(self._testbed.topology)))
        return NetworkRecord(tuple(self._readings))

    def _removed(self) -> list[DeclaredHost]:
        """Return the hosts that have left the testbed, or are about to."""
        there, changing = {host.name for host in self._testbed.topology.hosts}, self._testbed.state.changing
        return [host for name, host in self._declared.items() if name not in there or name in changing]

    def _ports_of(self, hosts: Iterable[DeclaredHost]) -> set[Device]:
        """Return the switch's ends of the links of these hosts."""
        numbers = self._testbed.topology.by_number
        return {
            Device(FABRIC, port(numbers.index(host.name), index)) for host in hosts for index in range(len(host.nics))
        }

    def _changed(self, changed: Collection[DeviceChange]) -> ShapingReading:
        shaped = {(each.place, each.device): self._devices.get((each.place, each.device)) for each in changed}
        reading = self._read("during", [each for each in shaped.values() if each is not None])
        return ShapingReading(reading.at, "during", change_differences(changed, shaped, reading.differences))

    def _read(self, when: When, devices: Iterable[Shaped]) -> ShapingReading:
        """Return a reading. A device that cannot be read, such as one that is gone, differs. Before the run raise."""
        found: list[LinkDifference] = []
        for each in devices:
            try:
                texts = [text for _device, text in link_differences([each], self._places)]
            except TestbedError as error:
                if when == "before":
                    raise
                texts = [f"its shaping could not be read: {' '.join(str(error).split())}"]
            found += [LinkDifference(each.place, each.link, each.direction, text) for text in texts]
        return ShapingReading(_now(), when, tuple(found))

    def _of_own_faults(self) -> set[Device]:
        """Return the devices, and the firewalls, that this process's faults have concerned since the run began."""
        topology, plan, me = self._testbed.topology, self._testbed.plan, Owner.this_process()
        found: set[Device] = set()
        for entry in FaultJournal(self._testbed.name).history():
            if entry.owner != me or entry.since < self._since:
                continue
            if isinstance(entry.fault, ObjectstoreErrors):
                found.add(Device(entry.fault.host, RULES))
            if isinstance(entry.fault, NetworkFault):
                part = part_of(topology, plan, entry.fault)
                at = fabric_devices(topology)
                found |= part.shaped | {Device(at.get(name, FABRIC), name) for name in part.links | part.filtered}
        return found


def usual(change: DeviceChange, shaped: Collection[tuple[str, str]], mtu: int) -> bool:
    """Return whether a change is none: a device has its MTU, or MTU or offload of an unshaped one changed. Pure.

    The engine's NICs have an MTU of their own. A bridge takes over MTU and offload of its ports, also of a new one.
    """
    if change.what != OFFLOAD and not change.what.startswith(MTU):
        return False
    return (change.place, change.device) not in shaped or change.what == f"{MTU}{mtu}"


def change_differences(
    changed: Collection[DeviceChange],
    shaped: dict[tuple[str, str], Shaped | None],
    differences: Collection[LinkDifference],
) -> tuple[LinkDifference, ...]:
    """Return what a reading after these changes found: the differences, and the changes that left none. Pure."""
    found, reported = list(differences), {each.link for each in differences}
    for change in sorted(changed):
        device, text = shaped[change.place, change.device], _words(change)
        if device is None:
            found.append(LinkDifference(change.place or "fabric", change.device, None, text or CHANGED))
        elif text or (device.place, device.link, device.direction) not in reported:
            found.append(LinkDifference(device.place, device.link, device.direction, text or PUT_BACK))
    return tuple(found)


def _words(change: DeviceChange) -> str:
    """Return what a change is that no reading of the shaping shows; empty for a change of the shaping."""
    mtu = change.what.removeprefix(MTU)
    return WORDS.get(change.what, "") if mtu == change.what else f"its MTU was {mtu}"


def measure_again(testbed: Testbed) -> tuple[NicMeasurement, ...]:
    """Measure every NIC after a run, once nothing else uses them. Raise `TestbedError` when that is never so."""
    wait_idle(testbed.topology, testbed.places())
    return nic_measurements(testbed.topology, settled(testbed.nics))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
