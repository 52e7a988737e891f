"""A watch of the kernel's traffic control: every change of a qdisc, class or filter in a testbed's namespaces.

It also reports changes of links, of their MTU, offload and addresses, and of the rules of firewalls.

The kernel announces each change to the sockets that subscribed in that namespace, also a change that is undone at
once. A look at the sockets takes a microsecond, and nothing is read while nothing changes.
On machines that exist, a program with such a socket prints the changes over SSH (`MonitorWatch`).
"""

import errno
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from testbed.hosts import Host, Process
from testbed.network import announcements
from testbed.network.announcements import DOWN, NO_DEVICE, READY, ROUTES, SHAPING, announced
from testbed.network.apply import NetworkError
from testbed.network.namespaces import subscribe
from testbed.network.root_agent import Subscription
from testbed.network.root_container import RemoteSubscription

_WHAT = (SHAPING, DOWN)
"""What counts on machines that exist: addresses are renewed there, and firewalls have rules of other programs."""
RULES = "rules"
"""What was changed, and the name of the device that stands for the firewall of a place."""


@dataclass(frozen=True, slots=True, order=True)
class DeviceChange:
    """A device of a place (a host, or the fabric: empty) that was changed or taken down."""

    place: str
    device: str
    what: str
    """`SHAPING`, `DOWN`, `ADDRESS`, `OFFLOAD`, `RULES`, `ROUTES`, or `MTU` with the MTU that the device has."""


class TrafficControlWatch:
    """A watch of the namespaces of these processes: place → process number.

    From the construction on no change is missed. Raise `NetworkError` when a namespace cannot be entered.
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._places: dict[str, Subscription | RemoteSubscription] = {}
        try:
            for place, pid in pids.items():
                # A thread of its own enters the namespace; the socket stays there, and the thread ends.
                with ThreadPoolExecutor(max_workers=1) as pool:
                    self._places[place] = pool.submit(subscribe, pid).result()
        except OSError as error:
            self.close()
            raise NetworkError(
                f"the network namespace of {place or 'the fabric'} cannot be watched: {error}"
            ) from error

    def close(self) -> None:
        """Close all sockets."""
        for subscription in self._places.values():
            subscription.close()

    def changes(self) -> set[DeviceChange]:
        """Return the changes since the last call. When the kernel lost some, every device of the place counts."""
        found: set[DeviceChange] = set()
        for place, subscription in self._places.items():
            devices = {NO_DEVICE: ROUTES, **subscription.devices}
            if subscription.rules_changed():
                found.add(DeviceChange(place, RULES, RULES))
            try:
                while True:
                    found |= {
                        DeviceChange(place, devices[index], what)
                        for index, what in announced(subscription.receive())
                        if index in devices
                    }
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise NetworkError(f"{place or 'the fabric'}: its announcements cannot be read: {error}") from error
                found |= {DeviceChange(place, device, SHAPING) for device in subscription.devices.values()}
        return found


READY_S = 10.0


def change_of_line(host: str, line: str) -> DeviceChange | None:
    """Return the change that a line of `announcements` on a host says; None for any other line. Pure."""
    what, _, device = line.strip().partition(" ")
    return DeviceChange(host, device, what) if what in _WHAT and device else None


class MonitorWatch:
    """A watch of machines that exist. `devices` are the testbed's devices by host; it ignores all others.

    From the construction on no change is missed: each monitor has said that the kernel has its subscription. When a
    monitor ends early, every device of its host counts as changed. Raise `TestbedError` when a monitor does not start.
    """

    def __init__(self, hosts: Mapping[str, Host], devices: Mapping[str, Sequence[str]]) -> None:
        self._devices = devices
        self._pending: set[DeviceChange] = set()
        self._closed = False
        self._lock = threading.Lock()
        self._processes: list[Process] = []
        ready = {name: threading.Event() for name in hosts}
        source = Path(announcements.__file__).read_text()
        try:
            for name, host in hosts.items():
                process = host.spawn(["python3", "-c", source])
                self._processes.append(process)
                threading.Thread(target=self._read, args=(name, process, ready[name]), daemon=True).start()
            silent = [name for name, begun in ready.items() if not begun.wait(READY_S)]
            if silent:
                raise NetworkError(
                    f"{', '.join(silent)}: traffic control cannot be watched, the monitors did not start"
                )
        except BaseException:
            self.close()
            raise

    def _read(self, name: str, process: Process, begun: threading.Event) -> None:
        try:
            for line in process.lines():
                if line.strip() == READY:
                    begun.set()
                change = change_of_line(name, line)
                if change is not None and change.device in self._devices[name]:
                    with self._lock:
                        self._pending.add(change)
        finally:
            with self._lock:
                if not self._closed:
                    self._pending |= {DeviceChange(name, device, SHAPING) for device in self._devices[name]}

    def changes(self) -> set[DeviceChange]:
        """Return the changes since the last call."""
        with self._lock:
            found, self._pending = self._pending, set()
        return found

    def close(self) -> None:
        """End the monitors."""
        with self._lock:
            self._closed = True
        for process in self._processes:
            process.stop()


ShapingWatch = TrafficControlWatch | MonitorWatch
"""A watch of the traffic control of a testbed's places: `changes` since the last call, and `close`."""
