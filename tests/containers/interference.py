"""What slows a machine from outside: other work, a changed NIC, another tenant's traffic, a clock that jumps.

Each is a context that ends by itself after `LONGEST_S`, also when its test is killed.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError
from testbed.network.addresses import AddressPlan
from testbed.network.namespaces import network_of
from testbed.provision import state as states
from testbed.provision.testbed import Testbed

LONGEST_S = 600
_COMPUTE = "while True: pass"
_WRITE_MEMORY = """
import mmap
while True:
    pages = mmap.mmap(-1, 256 << 20)
    for at in range(0, len(pages), 4096):
        pages[at] = 1
    pages.close()
"""
_WRITE_DISK = """
import os, sys
with open(sys.argv[1], "wb", buffering=0) as file:
    while True:
        file.seek(0)
        for _ in range(16):
            file.write(bytes(4 << 20))
            os.fsync(file.fileno())
"""
_FLOOD = """
import socket, sys, time
sender, until = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), time.monotonic() + 3
begun, sent = time.monotonic(), 0
while time.monotonic() < until:
    sent += sender.sendto(bytes(1400), (sys.argv[1], 9))
    time.sleep(max(0.0, sent / float(sys.argv[2]) - (time.monotonic() - begun)))
"""


def _command(*words: str) -> list[str]:
    return ["timeout", "--signal=KILL", str(LONGEST_S), *words]


@contextmanager
def _processes(*commands: list[str]) -> Iterator[None]:
    started = [subprocess.Popen(command) for command in commands]
    try:
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


@contextmanager
def _repeatedly(act: Callable[[], None], every_s: float) -> Iterator[None]:
    done = threading.Event()

    def loop() -> None:
        until = time.monotonic() + LONGEST_S
        while not done.wait(every_s) and time.monotonic() < until:
            act()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@dataclass(frozen=True)
class _Running:
    """A testbed that is up: its processes' numbers and its addresses."""

    fabric: int
    hosts: Mapping[str, int]
    plan: AddressPlan


def _running() -> _Running | None:
    """Return a testbed of two brokers that is up, or None while there is none."""
    for name in states.names():
        try:
            with Testbed.attach(name) as testbed:
                fabric, hosts = testbed.pids()
                if {"b1", "b2"} <= set(hosts):
                    return _Running(fabric, hosts, testbed.plan)
        except (TestbedError, KeyError):  # it is being made, or removed
            continue
    return None


def stolen_cpu(_folder: Path) -> AbstractContextManager[None]:
    """Two processes that only compute."""
    return _processes(*[_command(sys.executable, "-c", _COMPUTE)] * 2)


def slow_memory(_folder: Path) -> AbstractContextManager[None]:
    """A process that takes unused memory from the machine, and gives it back."""
    return _processes(_command(sys.executable, "-c", _WRITE_MEMORY))


def slow_disk(folder: Path) -> AbstractContextManager[None]:
    """A process that writes 64 MB again and again, each 4 MB flushed to the disk."""
    return _processes(_command(sys.executable, "-c", _WRITE_DISK, str(folder / "other-work")))


def slow_nic(_folder: Path) -> AbstractContextManager[None]:
    """The NIC of the second broker carries three quarters of what is declared."""

    def lower() -> None:
        if found := _running():
            change = "tc class replace dev port1 parent 1: classid 1:10 htb rate 300mbit ceil 300mbit quantum 1514"
            # The testbed may be gone by now.
            subprocess.run([*network_of(found.fabric), *change.split()], check=False, capture_output=True)

    return _repeatedly(lower, 1.0)


def other_traffic(_folder: Path) -> AbstractContextManager[None]:
    """Another tenant of the first broker's host sends 12 MB/s to the second."""

    def send() -> None:
        if found := _running():
            flood = (sys.executable, "-c", _FLOOD, str(found.plan.data_ip("b2")), "12e6")
            subprocess.run([*network_of(found.hosts["b1"]), *flood], check=False, capture_output=True)

    return _repeatedly(send, 0.1)


@contextmanager
def jumping_clock(_folder: Path) -> Iterator[None]:
    """The machine's clock jumps by 5 s, forwards and back, every 7 s; at the end it is as it would have been."""
    apart = time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_BOOTTIME)
    ahead = False

    def set_clock(offset_s: float) -> None:
        now = apart + time.clock_gettime(time.CLOCK_BOOTTIME) + offset_s
        time.clock_settime(time.CLOCK_REALTIME, now)

    def jump() -> None:
        nonlocal ahead
        ahead = not ahead
        set_clock(5.0 if ahead else 0.0)

    try:
        with _repeatedly(jump, 7.0):
            yield
    finally:
        set_clock(0.0)


SLOWED = {
    "stolen-cpu": stolen_cpu,
    "slow-memory": slow_memory,
    "slow-disk": slow_disk,
    "slow-nic": slow_nic,
    "other-traffic": other_traffic,
    "jumping-clock": jumping_clock,
}
