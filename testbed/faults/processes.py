"""Kafka's processes under faults: the state that the active faults require, and the changes to reach it."""

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from testbed.errors import TestbedError
from testbed.faults import clocks
from testbed.faults.fault import Fault
from testbed.faults.journal import active
from testbed.faults.parameters import kafka_host
from testbed.hosts import Daemon
from testbed.kafka.node import PID_FILE
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology
from testbed.wait import wait_for

START_S, STOP_S = 5.0, 60.0
CONTINUED_S = 60.0
_PULSES_PID, _PULSES_LOG = "/run/kafka-pulses.pid", "/var/log/kafka/pulses.log"


class Hold(IntEnum):
    """The state in which a fault holds a process; of several the greatest counts."""

    RUNNING = 0
    PAUSED = 1
    DOWN = 2


class ProcessFault(Fault):
    """A fault of Kafka's process on one host. A kind adds `apply` and `verify`."""

    hinders: ClassVar[bool] = True
    holds: ClassVar[Hold] = Hold.RUNNING
    host: str

    @property
    def offset_us(self) -> int:
        """Return by how much Kafka's wall clock is off, in µs; negative: behind."""
        return 0

    @property
    def pulse_us(self) -> tuple[int, int] | None:
        """Return how long Kafka stops in each period, and the period, in µs; None without stops."""
        return None

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        kafka_host(topology, self.host)

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`: starts or continues Kafka. `Faults` waits until it is unfenced."""
        settle(testbed, self.host)


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
    """Return the process of `host`. Raise `TestbedError` when it does not run, or is paused."""
    seen = look(testbed.node(host))
    if seen is None:
        raise TestbedError(f"Kafka on {host} does not run{_because(testbed, host)}")
    if seen.paused:
        raise TestbedError(f"Kafka on {host} is paused{_because(testbed, host)}")
    return seen


def _faults(testbed: Testbed, host: str) -> list[ProcessFault]:
    found = active(testbed.name, ProcessFault)  # type: ignore[type-abstract]
    return [fault for fault in found if fault.host == host]


def _because(testbed: Testbed, host: str) -> str:
    found = [fault.kind for fault in _faults(testbed, host) if fault.holds]
    return f": it has {' and '.join(found)} already" if found else f"; `testbed logs {testbed.name} {host}` may say why"


def settle(testbed: Testbed, host: str) -> None:
    """Start, pause or continue Kafka on `host` as the topology and the active faults require."""
    node, faults = testbed.node(host), _faults(testbed, host)
    held = max((fault.holds for fault in faults), default=Hold.RUNNING)
    longest = max((fault.pulse_us for fault in faults if fault.pulse_us), default=None)
    if held is not Hold.RUNNING:
        kafka_pulses(node, None).stop()
    if held is Hold.DOWN:
        return
    seen = look(node)
    if seen is None:
        start(kafka(testbed, host))
    if held is Hold.PAUSED and not (seen and seen.paused):
        node.signal("STOP")
    elif held is Hold.RUNNING:
        settle_pulses(node, kafka_pulses(node, longest), longest)


def offset_us(testbed: Testbed, host: str) -> int:
    """Return by how much the wall clock of Kafka on a host must be off, in µs: the sum of the active faults."""
    return sum(fault.offset_us for fault in _faults(testbed, host))


def kafka(testbed: Testbed, host: str) -> Daemon:
    """Return Kafka on a host, to be started with the clock that the active faults require."""
    offset = offset_us(testbed, host)
    return testbed.node(host).prefixed(clocks.variables(offset)) if offset else testbed.node(host)


def restart(testbed: Testbed, host: str) -> None:
    """Stop Kafka, and start it as the active faults require, unless one holds it down."""
    node = testbed.node(host)
    seen = look(node)
    if seen is not None and seen.paused:
        node.kill()  # a frozen process does not handle a request to end
    elif seen is not None:
        node.stop(timeout_s=STOP_S)
    settle(testbed, host)


def kafka_pulses(node: Daemon, pulse_us: tuple[int, int] | None) -> Daemon:
    """Return the daemon that stops and continues Kafka."""
    return pulses(node, PID_FILE, _PULSES_PID, _PULSES_LOG, pulse_us)


def pulses(server: Daemon, pid_of: str, pid_file: str, log: str, pulse_us: tuple[int, int] | None) -> Daemon:
    """Return the daemon that stops and continues a server's process for as long as the process exists.

    `pid_of` is the file with the server's process number. After each stop it logs the process's state: T, stopped.
    """
    pause_us, every_us = pulse_us or (0, 0)
    script = (
        f"p=$(cat {pid_of}); while kill -STOP $p; do sleep 0.01; sed 's/.*) //' /proc/$p/stat | cut -c1; "
        f"sleep {pause_us / 1e6}; kill -CONT $p || exit 0; sleep {(every_us - pause_us) / 1e6}; done"
    )
    return Daemon(server.host, "pulses", ["sh", "-c", script], pid_file=pid_file, log=log)


def settle_pulses(server: Daemon, stopper: Daemon, pulse_us: tuple[int, int] | None) -> None:
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
    wait_for(
        daemon.pid,
        lambda pid: pid is not None,
        timeout_s=START_S,
        interval_s=0.05,
        what=f"{daemon.what}'s process on {daemon.host.name}",
    )
