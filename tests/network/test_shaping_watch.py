"""The kernel announces every change of traffic control, also one that is undone at once. Needs root, no engine."""

import shutil
import struct
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from testbed.network import shaping_watch
from testbed.network.announcements import GROUPS
from testbed.network.apply import NetworkError
from testbed.network.shaping_watch import DeviceChange, MonitorWatch, TrafficControlWatch, announced
from testbed.wait import wait_until
from tests.network.namespaces import network_namespaces

SHAPED = "class replace dev v0 parent 1: classid 1:10 htb rate {} ceil {} quantum 1514"
needs_kernel = pytest.mark.skipif(sys.platform != "linux" or not shutil.which("tc"), reason="needs Linux and iproute2")


@pytest.fixture
def namespace():
    """A process in a network namespace of its own, with a shaped link v0–v1; yields its number and a function."""
    with network_namespaces("b2") as pids:

        def run(*lines):
            for line in lines:
                command = ["nsenter", f"--net=/proc/{pids['b2']}/ns/net", "--", *line.split()]
                subprocess.run(command, check=True, capture_output=True)

        run("ip link add name v0 type veth peer name v1", "ip link set dev v0 up", "ip link set dev v1 up")
        run("tc qdisc replace dev v0 root handle 1: htb default 10", "tc " + SHAPED.format("400mbit", "400mbit"))
        yield pids["b2"], run


@pytest.mark.containers
@needs_kernel
def test_a_change_that_is_undone_at_once_is_announced(namespace):
    pid, run = namespace
    with closing(TrafficControlWatch({"b2": pid})) as watch:
        assert watch.changes() == set()
        run("tc " + SHAPED.format("60mbit", "60mbit"), "tc " + SHAPED.format("400mbit", "400mbit"))
        assert watch.changes() == {DeviceChange("b2", "v0", "shaping")}
        assert watch.changes() == set()
        run("ip link set dev v1 down", "ip link set dev v1 up")
        # Every announcement of a link says its MTU, changed or not: both ends are announced.
        same = {DeviceChange("b2", device, "mtu=1500") for device in ("v0", "v1")}
        seen = set()

        def both_ends():
            seen.update(watch.changes())
            return same <= seen

        # The kernel announces the other end's carrier by deferred work, on a busy machine a moment later.
        wait_until(both_ends, 5, 0.01, "the announcements of both ends")
        assert seen == {DeviceChange("b2", "v1", "down"), *same}
        run("tc qdisc add dev v1 clsact")  # a filter that drops frames needs it
        assert watch.changes() == {DeviceChange("b2", "v1", "shaping")}


@pytest.mark.containers
@needs_kernel
def test_when_the_kernel_lost_announcements_every_device_counts(namespace):
    pid, _run = namespace
    with closing(TrafficControlWatch({"": pid})) as watch:
        batch = "\n".join([SHAPED.format("60mbit", "60mbit")] * 5000)
        enter = ["nsenter", f"--net=/proc/{pid}/ns/net", "--", "tc", "-batch", "-"]
        subprocess.run(enter, input=batch, text=True, check=True, capture_output=True)
        assert watch.changes() >= {DeviceChange("", device, "shaping") for device in ("v0", "v1", "lo")}


def test_a_process_that_has_ended_cannot_be_watched():
    with pytest.raises(NetworkError, match="of b1 cannot be watched"):
        TrafficControlWatch({"b1": 2**22 + 1})


def test_a_datagram_without_a_change_says_nothing():
    assert list(announced(b"")) == []


def message(kind, body, **numbers):
    """A message of rtnetlink with attributes of 32 bits, after a text that is longer than its length says."""
    attributes = struct.pack("=HH4s", 7, 3, b"lo\0")  # of three bytes; the next one begins at the fourth
    attributes += b"".join(struct.pack("=HHI", 8, ATTRIBUTES[name], value) for name, value in numbers.items())
    return struct.pack("=IHHII", 16 + len(body) + len(attributes), kind, 0, 0, 0) + body + attributes


ATTRIBUTES = {"mtu": 4, "event": 44}


def link(index, flags):
    return struct.pack("=BxHiII", 0, 1, index, flags, 0)


def test_what_the_kernel_announces_of_a_link():
    up, down = link(4, 0x1043), link(4, 0x1002)
    datagram = message(16, up, mtu=900) + message(16, up, mtu=1500, event=2) + message(16, down, mtu=1500)
    assert list(announced(datagram)) == [
        (4, "mtu=900"),
        (4, "offload"),
        (4, "mtu=1500"),
        (4, "down"),
        (4, "mtu=1500"),
    ]
    assert list(announced(message(17, up, mtu=1500))) == [(4, "down")], "a port left its bridge"
    assert list(announced(message(20, struct.pack("=4Bi", 2, 24, 0, 0, 7)))) == [(7, "address")]
    assert list(announced(message(24, bytes([2, 32, 0, 0, 254, 3, 0, 6]) + bytes(4)))) == [(0, "routes")]
    assert list(announced(message(24, bytes([2, 24, 0, 0, 254, 2, 253, 1]) + bytes(4)))) == [], "that of an address"


@pytest.mark.containers
@needs_kernel
def test_other_changes_of_links_and_of_the_firewall_are_announced(namespace):
    pid, run = namespace
    with closing(TrafficControlWatch({"b2": pid})) as watch:
        run("ip link set dev v0 mtu 900", "ip addr add 10.9.0.1/24 dev v1", "ethtool -K v1 gso off tso off")
        found = {(each.device, each.what) for each in watch.changes()}
        assert {("v0", "mtu=900"), ("v1", "address"), ("v1", "offload")} <= found
        run("ip route add blackhole 10.9.0.7/32", "ip route del blackhole 10.9.0.7/32")
        assert watch.changes() == {DeviceChange("b2", "routes", "routes")}
        run("iptables -A INPUT -p tcp --dport 9 -j DROP", "iptables -D INPUT -p tcp --dport 9 -j DROP")
        assert watch.changes() == {DeviceChange("b2", "rules", "rules")}
        assert watch.changes() == set()


class Monitor:
    """The monitors of one machine: the lines they print, and whether they go on afterwards."""

    def __init__(self, *lines, goes_on=True):
        self._lines, self._end, self.stopped = lines, threading.Event(), False
        if not goes_on:
            self._end.set()

    def spawn(self, _command):
        return self

    def lines(self):
        yield from self._lines
        self._end.wait(5)

    def stop(self):
        self.stopped = True
        self._end.set()


DEVICES = {"b1": ["eth1", "tbi-1"], "b2": ["eth1"]}


class Local:
    """This machine as a host: the watch's own program runs here, in the network namespace of the test."""

    def spawn(self, command):
        self._process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True)
        return self

    def lines(self):
        yield from self._process.stdout

    def stop(self):
        self._process.stdin.close()

    def kill(self):
        self._process.kill()

    def ended(self):
        return self._process.wait(timeout=10)

    def subscriptions(self):
        """Return the groups of all announcements that the kernel has for sockets of the program."""
        held = {str(each.readlink()) for each in Path(f"/proc/{self._process.pid}/fd").iterdir()}
        rows = [line.split() for line in Path("/proc/net/netlink").read_text().splitlines()[1:]]
        return [int(row[3], 16) for row in rows if f"socket:[{row[9]}]" in held]


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_machine_counts_as_watched_once_the_kernel_has_the_subscription():
    host = Local()
    with closing(MonitorWatch({"b1": host}, {"b1": ["lo"]})):
        assert host.subscriptions() == [GROUPS]
    assert host.ended() == 0, "the program ends with its connection"


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_when_the_program_is_killed_every_device_of_its_machine_counts():
    host = Local()
    with closing(MonitorWatch({"b1": host}, {"b1": ["lo"]})) as watched:
        host.kill()
        host.ended()
        seen = set()
        wait_until(lambda: bool(seen.update(watched.changes()) or seen), 5, 0.01, "the changes")
        assert seen == {DeviceChange("b1", "lo", "shaping")}


def test_a_change_that_is_announced_does_not_stand_for_readiness(monkeypatch):
    monkeypatch.setattr(shaping_watch, "READY_S", 0.05)
    with pytest.raises(NetworkError, match="^b1: traffic control cannot be watched"):
        MonitorWatch({"b1": Monitor("shaping eth1")}, DEVICES)


def test_a_machine_whose_monitors_do_not_start_is_not_taken_for_watched(monkeypatch):
    monkeypatch.setattr(shaping_watch, "READY_S", 0.05)
    hosts = {"b1": Monitor("ready"), "b2": Monitor()}
    with pytest.raises(NetworkError, match="^b2: traffic control cannot be watched"):
        MonitorWatch(hosts, DEVICES)
    assert hosts["b1"].stopped and hosts["b2"].stopped


def test_when_a_monitor_ends_early_every_device_of_its_machine_counts():
    hosts = {"b1": Monitor("ready", goes_on=False), "b2": Monitor("ready")}
    watched = MonitorWatch(hosts, DEVICES)
    seen = set()
    wait_until(lambda: bool(seen.update(watched.changes()) or seen), 5, 0.01, "the changes")
    assert seen == {DeviceChange("b1", device, "shaping") for device in DEVICES["b1"]}
    watched.close()
    assert watched.changes() == set()
