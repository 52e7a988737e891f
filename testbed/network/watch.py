"""A watch of the kernel's traffic control: every change of a qdisc, class or filter in a testbed's namespaces.

The kernel announces each change to the sockets that subscribed in that namespace, also a change that is undone at
once. A look at the sockets takes a microsecond, and nothing is read while nothing changes.
On machines that exist, the monitors of `tc` and `ip` announce the changes over SSH (`MonitorWatch`).
"""

import errno
import re
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from testbed.hosts import Host, Process
from testbed.network.apply import NetworkError
from testbed.network.namespaces import subscribe
from testbed.network.root_agent import Subscription
from testbed.network.root_container import RemoteSubscription

_NEW_LINK = 16
_TRAFFIC_CONTROL = frozenset({36, 37, 40, 41, 44, 45})
"""RTM_NEWQDISC, RTM_DELQDISC, and the same of classes and filters."""
_IFF_UP = 1
_HEADER = struct.Struct("=IHHII")
What = Literal["shaping", "down"]


@dataclass(frozen=True, slots=True, order=True)
class DeviceChange:
    """A device of a place (a host, or the fabric: empty) whose shaping was changed, or that was taken down."""

    place: str
    device: str
    what: What


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
        for announcements in self._places.values():
            announcements.close()

    def changes(self) -> set[DeviceChange]:
        """Return the changes since the last call. When the kernel lost some, every device of the place counts."""
        found: set[DeviceChange] = set()
        for place, announcements in self._places.items():
            devices = announcements.devices
            try:
                while True:
                    found |= {
                        DeviceChange(place, devices[index], what)
                        for index, what in announced(announcements.receive())
                        if index in devices
                    }
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise NetworkError(f"{place or 'the fabric'}: its announcements cannot be read: {error}") from error
                found |= {DeviceChange(place, device, "shaping") for device in devices.values()}
        return found


def announced(message: bytes) -> Iterator[tuple[int, What]]:
    """Yield the devices (by index) that a datagram of rtnetlink says were changed or taken down. Pure."""
    at = 0
    while at + _HEADER.size <= len(message):
        length, kind, _flags, _sequence, _port = _HEADER.unpack_from(message, at)
        body = at + _HEADER.size
        if kind in _TRAFFIC_CONTROL:  # struct tcmsg: family, padding, index
            yield struct.unpack_from("=Bxxxi", message, body)[1], "shaping"
        elif kind == _NEW_LINK:  # struct ifinfomsg: family, padding, type, index, flags
            _family, _type, index, flags = struct.unpack_from("=BxHiI", message, body)
            if not flags & _IFF_UP:
                yield index, "down"
        at += max(_HEADER.size, (length + 3) & ~3)


# The monitors end with the connection: their shell waits for the end of its input.
COMMAND = (
    "tc monitor & a=$!; ip -o monitor link & b=$!; trap 'kill $a $b 2>/dev/null' EXIT TERM HUP; "
    "echo ready; cat > /dev/null"
)
READY_S = 10.0
_SHAPING = re.compile(r"\b(?:qdisc|class|filter)\b.*? dev (\S+)")
_LINK = re.compile(r"^\d+: ([^:@\s]+)[^:]*: <([^>]*)>")


def announced_by_monitor(host: str, line: str) -> DeviceChange | None:
    """Return the change that a line of the monitors announces; None for any other line. Pure."""
    if found := _SHAPING.search(line):
        return DeviceChange(host, found[1], "shaping")
    if (found := _LINK.search(line)) and "UP" not in found[2].split(","):
        return DeviceChange(host, found[1], "down")
    return None


class MonitorWatch:
    """A watch of machines that exist. `devices` are the testbed's devices by host; it ignores all others.

    From the construction on no change is missed. When a monitor ends early, every device of its host counts as changed.
    Raise `TestbedError` when a monitor does not start.
    """

    def __init__(self, hosts: Mapping[str, Host], devices: Mapping[str, Sequence[str]]) -> None:
        self._devices = devices
        self._pending: set[DeviceChange] = set()
        self._closed = False
        self._lock = threading.Lock()
        self._processes: list[Process] = []
        ready = {name: threading.Event() for name in hosts}
        try:
            for name, host in hosts.items():
                process = host.spawn(COMMAND)
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
                begun.set()
                change = announced_by_monitor(name, line)
                if change is not None and change.device in self._devices[name]:
                    with self._lock:
                        self._pending.add(change)
        finally:
            with self._lock:
                if not self._closed:
                    self._pending |= {DeviceChange(name, device, "shaping") for device in self._devices[name]}

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
