"""Kafka's processes under faults: the state that the active faults require, and the changes to reach it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import ClassVar, Self

from testbed.errors import TestbedError
from testbed.faults import clocks
from testbed.faults.fault import HostFault
from testbed.faults.journal import active_on
from testbed.faults.parameters import kafka_host
from testbed.hosts import Daemon
from testbed.kafka.node import PID_FILE
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology
from testbed.wait import wait_for

START_S, STOP_S = 5.0, 60.0
CONTINUED_S = 60.0


class Hold(IntEnum):
    """The state in which a fault holds a process; of several the greatest counts."""

    RUNNING = 0
    PAUSED = 1
    DOWN = 2


@dataclass(frozen=True)
class ServerFault(HostFault):
    """A fault of a server on one host. Brokers may be fenced without Kafka, and without the object store."""

    hinders: ClassVar[bool] = True
    holds: ClassVar[Hold] = Hold.RUNNING

    @property
    def pulse_us(self) -> tuple[int, int] | None:
        """Return how long the server stops in each period, and the period, in µs; None without stops."""
        return None


@dataclass(frozen=True)
class ProcessFault(ServerFault):
    """A fault of Kafka's process on one host."""

    @property
    def offset_us(self) -> int:
        """Return by how much Kafka's wall clock is off, in µs; negative: behind."""
        return 0

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        kafka_host(topology, self.host)

    def prepare(self, testbed: Testbed) -> Self:
        """See `Fault.prepare`: Kafka runs, and is not paused."""
        require_running(testbed, self.host)
        return self

    def settle(self, testbed: Testbed) -> None:
        """See `Fault.settle`: starts, pauses or continues Kafka. `Faults` waits until it is unfenced."""
        settle(testbed, self.host)


@dataclass(frozen=True)
class SignalFault(ProcessFault):
    """A fault that ends Kafka's process by a signal, and keeps it down."""

    holds: ClassVar[Hold] = Hold.DOWN
    signal: ClassVar[str]

    def apply(self, testbed: Testbed) -> None:
        """See `Fault.apply`."""
        testbed.node(self.host).signal(self.signal)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`."""
        seen = look(testbed.node(self.host))
        return str(seen) if seen else None


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process as the kernel reports it: its number on its host, and the letter of its state (T: stopped)."""

    pid: int
    state: str

    @property
    def paused(self) -> bool:
        """Return whether the process is stopped by SIGSTOP."""
        return self.state in ("T", "t")

    def __str__(self) -> str:
        return f"process {self.pid} is there, in state {self.state}"


def look(daemon: Daemon) -> ProcessState | None:
    """Return a server's process on its host; None without one (or with an unreaped one only)."""
    pid = daemon.pid()
    if pid is None:
        return None
    stat = daemon.host.run(["cat", f"/proc/{pid}/stat"], check=False).stdout
    # The second field, the command in parentheses, may itself contain blanks and parentheses.
    _, _, rest = stat.rpartition(")")
    state = rest.split()[0] if rest.split() else "X"
    return None if state in ("Z", "X") else ProcessState(pid, state)


def require_running(testbed: Testbed, host: str) -> ProcessState:
    """Return the process of `host`. Raise `TestbedError` when it does not run, or is paused and not just stalled."""
    node = testbed.node(host)
    seen = look(node)
    if seen is None:
        raise TestbedError(f"Kafka on {host} does not run{because(testbed, host, ProcessFault)}")
    if seen.paused and not _stalled(node):
        raise TestbedError(f"Kafka on {host} is paused{because(testbed, host, ProcessFault)}")
    return seen


def _stalled(node: Daemon) -> bool:
    """Return whether Kafka is stopped and continued again and again: a stop that is seen now ends by itself."""
    return pulses(node, PID_FILE, None).pid() is not None


def because(testbed: Testbed, host: str, kind: type[ServerFault]) -> str:
    """Return the end of a sentence about a server that does not run: the faults that hold it, or where to look."""
    found = [fault.kind for fault in active_on(testbed, host, kind) if fault.holds]
    return f": it has {' and '.join(found)} already" if found else f"; `testbed logs {testbed.name} {host}` may say why"


def settle(testbed: Testbed, host: str) -> None:
    """Start, pause or continue Kafka on `host` as the topology and the active faults require."""
    faults = active_on(testbed, host, ProcessFault)
    settle_server(testbed.node(host), PID_FILE, faults, partial(start_kafka, testbed, host))


def settle_server(server: Daemon, pid_file: str, faults: Sequence[ServerFault], begin: Callable[[], None]) -> None:
    """Start (by `begin`), pause or continue a server as these faults require; one that must be down stays as it is."""
    held = max((fault.holds for fault in faults), default=Hold.RUNNING)
    longest = max((fault.pulse_us for fault in faults if fault.pulse_us), default=None)
    if held is not Hold.RUNNING:
        pulses(server, pid_file, None).stop()
    if held is Hold.DOWN:
        return
    seen = look(server)
    if seen is None:
        begin()
    if held is Hold.PAUSED and not (seen and seen.paused):
        server.signal("STOP")
    elif held is Hold.RUNNING:
        _settle_pulses(server, pulses(server, pid_file, longest), longest)


def offset_us(testbed: Testbed, host: str) -> int:
    """Return by how much the wall clock of Kafka on a host must be off, in µs: the sum of the active faults."""
    return sum(fault.offset_us for fault in active_on(testbed, host, ProcessFault))


def restart(testbed: Testbed, host: str) -> None:
    """Stop Kafka, and start it as the active faults require, unless one holds it down."""
    stop_kafka(testbed, host)
    settle(testbed, host)


def stop_kafka(testbed: Testbed, host: str) -> None:
    """Stop Kafka, if its process exists."""
    node = testbed.node(host)
    seen = look(node)
    if seen is not None and seen.paused and not _stalled(node):
        node.kill()  # a frozen process does not handle a request to end
    elif seen is not None:
        node.stop(timeout_s=STOP_S)


def start_kafka(testbed: Testbed, host: str) -> None:
    """Start Kafka with the clock that the active faults require."""
    node, offset = testbed.node(host), offset_us(testbed, host)
    start(node.prefixed(clocks.variables(offset)) if offset else node)


def pulses(server: Daemon, pid_file: str, pulse_us: tuple[int, int] | None) -> Daemon:
    """Return the daemon that stops and continues a server's process for as long as the process exists.

    `pid_file` has the server's process number. After each stop the daemon logs the process's state: T, stopped.
    """
    pause_us, every_us = pulse_us or (0, 0)
    own_pid_file, folder = pid_file.replace(".pid", "-pulses.pid"), server.log.rpartition("/")[0]
    script = (
        f"p=$(cat {pid_file}); while kill -STOP $p; do sleep 0.01; sed 's/.*) //' /proc/$p/stat | cut -c1; "
        f"sleep {pause_us / 1e6}; kill -CONT $p || exit 0; sleep {(every_us - pause_us) / 1e6}; done"
    )
    return Daemon(server.host, "pulses", ["sh", "-c", script], pid_file=own_pid_file, log=f"{folder}/pulses.log")


def _settle_pulses(server: Daemon, stopper: Daemon, pulse_us: tuple[int, int] | None) -> None:
    """Start `stopper` with these pulses; None: end it, and continue the server."""
    stopper.stop()
    if pulse_us is not None:
        server.host.run(["rm", "-f", stopper.log])
        start(stopper)
        return
    seen = look(server)
    if seen is not None and seen.paused:
        server.signal("CONT")
        wait_for(
            lambda: look(server),
            lambda found: found is not None and not found.paused,
            timeout_s=CONTINUED_S,
            interval_s=0.05,
            what=f"{server.what} on {server.host.name} to go on",
        )


def start(daemon: Daemon) -> None:
    """Start a server, and check that its process exists."""
    daemon.start()
    wait_for(daemon.pid, lambda pid: pid is not None, START_S, 0.05, f"{daemon.what}'s process on {daemon.host.name}")
