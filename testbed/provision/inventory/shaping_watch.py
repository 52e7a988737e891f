"""A watch of the traffic control of machines that exist, by the monitors of `tc` and `ip` on each of them."""

import re
import threading
from collections.abc import Mapping, Sequence

from testbed.hosts import Host, Process
from testbed.network.watch import DeviceChange

# The monitors end with the connection: their shell waits for the end of its input.
COMMAND = (
    "tc monitor & a=$!; ip -o monitor link & b=$!; trap 'kill $a $b 2>/dev/null' EXIT TERM HUP; "
    "echo ready; cat > /dev/null"
)
_SHAPING = re.compile(r"\b(?:qdisc|class|filter)\b.*? dev (\S+)")
_LINK = re.compile(r"^\d+: ([^:@\s]+)[^:]*: <([^>]*)>")


def announced(host: str, line: str) -> DeviceChange | None:
    """Return the change that a line of the monitors announces; None for any other line. Pure."""
    if found := _SHAPING.search(line):
        return DeviceChange(host, found[1], "shaping")
    if (found := _LINK.search(line)) and "UP" not in found[2].split(","):
        return DeviceChange(host, found[1], "down")
    return None


class MonitorWatch:
    """See `ShapingWatch`. `devices` are the testbed's devices by host; other ones of a machine are not its matter."""

    def __init__(self, hosts: Mapping[str, Host], devices: Mapping[str, Sequence[str]]) -> None:
        self._devices = devices
        self._pending: set[DeviceChange] = set()
        self._lock = threading.Lock()
        self._processes: list[Process] = []
        ready = [threading.Event() for _host in hosts]
        for (name, host), begun in zip(hosts.items(), ready, strict=True):
            process = host.spawn(COMMAND)
            self._processes.append(process)
            threading.Thread(target=self._read, args=(name, process, begun), daemon=True).start()
        for begun in ready:
            begun.wait(10.0)

    def _read(self, name: str, process: Process, begun: threading.Event) -> None:
        for line in process.lines():
            begun.set()
            change = announced(name, line)
            if change is not None and change.device in self._devices[name]:
                with self._lock:
                    self._pending.add(change)

    def changes(self) -> set[DeviceChange]:
        """Return the changes since the last call."""
        with self._lock:
            found, self._pending = self._pending, set()
        return found

    def close(self) -> None:
        """End the monitors."""
        for process in self._processes:
            process.stop()
