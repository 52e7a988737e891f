import socket
import subprocess
import sys

import pytest

from testbed.errors import TestbedError
from testbed.hosts.host import CommandResult
from testbed.probes.machine import LoadReading
from testbed.runner import canary
from testbed.runner import canary as module
from testbed.runner.canary import cpu_s, ends, ideal_bytes_per_s, memory_s, transfer
from testbed.topology.find import find


class LocalProcess:
    def __init__(self, words):
        self.popen = subprocess.Popen([sys.executable, *words[1:]], stdout=subprocess.PIPE, text=True)

    def lines(self):
        yield from self.popen.stdout

    def stop(self):
        self.popen.kill()
        self.popen.wait()
        self.popen.stdout.close()


class LocalHost:
    """This machine, for the loopback."""

    name = "here"

    def run(self, words, timeout_s):
        done = subprocess.run(
            [sys.executable, *words[1:]], capture_output=True, text=True, timeout=timeout_s, check=True
        )
        return CommandResult("", done.returncode, done.stdout, done.stderr, 0.0)

    def spawn(self, words):
        return LocalProcess(words)


@pytest.fixture(autouse=True)
def free_port(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setattr(module, "PORT", port)


def test_a_fixed_number_of_bytes_arrives_and_is_timed_by_the_receiver():
    found = transfer(LocalHost(), LocalHost(), "127.0.0.1", at_most_bytes=30_000_000, at_most_s=10)
    assert 29_000_000 < found.bytes < 30_000_000  # without the first bytes, which start the clock
    assert 0 < found.seconds < 10
    assert found.bytes_per_s == found.bytes / found.seconds


def test_a_transfer_ends_with_its_time():
    found = transfer(LocalHost(), LocalHost(), "127.0.0.1", at_most_bytes=10**15, at_most_s=0.3)
    assert 0.1 < found.seconds < 3


def test_a_receiver_that_does_not_come_up_is_told():
    with socket.create_server(("127.0.0.1", module.PORT)), pytest.raises(TestbedError, match="no server listens"):
        transfer(LocalHost(), LocalHost(), "127.0.0.1", at_most_bytes=1, at_most_s=1)


def test_a_transfer_of_nothing_is_no_measurement():
    with pytest.raises(TestbedError, match="nothing arrived"):
        transfer(LocalHost(), LocalHost(), "127.0.0.1", at_most_bytes=0, at_most_s=1)


def test_the_network_is_looked_at_between_brokers_of_one_rack_if_there_are_such():
    testbed = type("T", (), {"topology": find("six-brokers"), "name": "six"})()
    first, second = ends(testbed)
    assert first is not second
    racks = [broker.rack for broker in testbed.topology.brokers]
    assert (first.rack == second.rack) == (racks.count(first.rack) > 1)
    assert ideal_bytes_per_s(first, second) == pytest.approx(first.nic.tx_bps / 8 * 1448 / 1514)


def test_the_memory_canary_writes_what_may_be_written_and_no_longer_than_it_may(monkeypatch):
    monkeypatch.setattr(canary, "MEMORY_BYTES", 64 * canary.MIB)
    assert 0.001 < memory_s() < 60
    free = LoadReading(0, 0, 0, {"memory.available": 8.0 * canary.MIB})
    monkeypatch.setattr(LoadReading, "here", lambda: free)
    instants = iter([0.0, 1.0, 3.0, 4.0, 5.0, 6.0])
    monkeypatch.setattr(canary.time, "perf_counter", lambda: next(instants))
    assert memory_s() == 4.0 / 2 * 1024


def test_the_cpu_canary_is_the_median_of_its_rounds(monkeypatch):
    monkeypatch.setattr(canary, "CPU_BLOCKS", 1)
    monkeypatch.setattr(canary, "CPU_ROUNDS", 5)
    instants = iter([0.0, 1.0, 10.0, 12.0, 20.0, 23.0, 30.0, 39.0, 40.0, 42.5])
    monkeypatch.setattr(canary.time, "perf_counter", lambda: next(instants))
    assert cpu_s() == 2.5
