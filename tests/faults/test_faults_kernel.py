"""Faults of the network on a real kernel: a testbed's fabric between namespaces. Needs root, no engine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.faults import Faults, network, parse_fault
from testbed.faults.devices import Devices
from testbed.network.apply import add_links, make_fabric, remove_links, shaping_differences
from testbed.network.fabric import driver_device
from testbed.network.namespaces import NamespaceShell
from testbed.network.shape import MOST_SEGMENTS
from testbed.topology import loads
from testbed.wait import wait_until
from tests.faults.fakes import FakeTestbed

pytestmark = pytest.mark.containers
NAME = "faults-lab"
TOPOLOGY = loads(
    """
name: lab
racks: {r1: {uplink: {rate: 200mbit}}, r2: {}}
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both, rack: r1}
  b2: {role: broker, rack: r2}
  b3: {role: broker, rack: r1}
"""
)
KNOCK = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), timeout=0.5)
except ConnectionRefusedError:
    print("there")
except OSError:
    pass
"""


class Host(NamespaceShell):
    """Answers a `ping` although the machine may have none: nobody listens, and the refusal comes back."""

    def run(self, command, **how):
        if command[0] != "ping":
            return super().run(command, **how)
        result = super().run([sys.executable, "-c", KNOCK, command[-1]])
        return type(result)(result.command, 0 if result.stdout else 1, "", "", result.seconds)


class Lab(FakeTestbed):
    """A testbed whose network is real."""

    def __init__(self, pids):
        super().__init__(TOPOLOGY, NAME)
        self._pids = pids
        self.hosts = {host.name: Host(host.name, pids[host.name]) for host in TOPOLOGY.hosts}

    def places(self):
        return self._pids

    def pids(self):
        return self._pids[""], {name: pid for name, pid in self._pids.items() if name}

    def reached(self, source):
        others = [host.name for host in TOPOLOGY.hosts if host.name != source]
        return {host for host in others if network.arrives(self, source, self.plan.data_ip(host))}

    def as_declared(self):
        shell = NamespaceShell("fabric", self._pids[""])
        links = json.loads(shell.run(["ip", "-j", "link", "show"]).stdout)
        assert [link["ifname"] for link in links if "UP" not in link["flags"]] == []
        assert "clsact" not in shell.run(["tc", "qdisc", "show"]).stdout
        assert "htb" not in shell.run(["tc", "qdisc", "show", "dev", "up1"]).stdout
        assert shaping_differences(TOPOLOGY, self.places()) == []
        return True


@pytest.fixture(scope="module")
def pids():
    processes = {
        name: subprocess.Popen(["unshare", "--net", "sleep", "600"]) for name in ("", *(h.name for h in TOPOLOGY.hosts))
    }
    here = Path("/proc/self/ns/net").readlink()
    for process in processes.values():
        namespace = Path(f"/proc/{process.pid}/ns/net")
        wait_until(lambda at=namespace: at.readlink() != here, 5, 0.01, "the namespace")
    yield {name: process.pid for name, process in processes.items()}
    for process in processes.values():
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def wired(pids):
    from testbed.network.addresses import AddressPlan

    plan = AddressPlan(249, tuple(host.name for host in TOPOLOGY.hosts))
    make_fabric(NAME, TOPOLOGY, plan, pids)
    yield plan
    subprocess.run(["ip", "link", "del", driver_device(NAME)], check=False)


def frames_at_once():
    """Return how many frames a connection of this machine hands to the fabric in one packet."""
    command = ["ip", "-d", "-j", "link", "show", "dev", driver_device(NAME)]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[0]["gso_max_segs"]


@pytest.fixture
def lab(pids, wired, monkeypatch):
    monkeypatch.setattr(network, "Devices", Devices)
    monkeypatch.setattr(FakeTestbed, "wait_serving", lambda _testbed, timeout_s: None)
    lab = Lab(pids)
    lab.plan = wired
    assert lab.as_declared()
    return lab


def test_a_cut_both_ways_and_one_way(lab):
    faults = Faults(lab)
    with faults.injected(parse_fault("nic-cut hosts=b1 peers=b2")):
        assert (lab.reached("b1"), lab.reached("b3")) == ({"b3"}, {"b1", "b2"})
        assert any("clsact" in difference for difference in shaping_differences(TOPOLOGY, lab.places()))
        with faults.injected(parse_fault("nic-cut hosts=b1 peers=b3 direction=receive")):
            assert lab.reached("b1") == set()
        assert lab.reached("b1") == {"b3"}
    assert lab.reached("b1") == {"b2", "b3"}
    assert lab.as_declared()


def test_a_nic_and_an_uplink_without_a_link(lab):
    faults = Faults(lab)
    first = faults.add(parse_fault("nic-down host=b3"))
    second = faults.add(parse_fault("uplink-cut rack=r2"))
    assert "NO-CARRIER" in lab.hosts["b3"].run(["ip", "link", "show", "data0"]).stdout
    assert lab.reached("b1") == set()
    faults.clear(first)
    assert lab.reached("b1") == {"b3"}
    faults.clear(second)
    assert lab.reached("b1") == {"b2", "b3"}
    assert lab.as_declared()


def test_rates_are_the_lowest_and_then_the_declared_ones(lab):
    faults = Faults(lab)
    faults.add(parse_fault("nic-cut hosts=b1"))
    first = faults.add(parse_fault("nic-rate host=b1 rate=8kbit"))
    faults.add(parse_fault("nic-rate host=b1 rate=50mbit direction=receive"))
    faults.add(parse_fault("uplink-rate rack=r1 rate=50mbit"))
    faults.add(parse_fault("uplink-rate rack=r2 rate=50mbit"))
    told = "\n".join(shaping_differences(TOPOLOGY, lab.places()))
    assert "b1 data0 transmit: rate is 8kbit; declared is 400mbit" in told
    assert "rack r1 uplink receive: rate is 50mbit; declared is 200mbit" in told
    assert frames_at_once() == 1  # what the driver sends meets the short queue of the uplink
    faults.clear(first)
    told = "\n".join(shaping_differences(TOPOLOGY, lab.places()))
    assert "b1 data0 transmit: rate" not in told
    assert "b1 data0 receive: rate is 50mbit; declared is 400mbit" in told
    faults.clear()
    assert lab.as_declared()
    assert frames_at_once() == MOST_SEGMENTS


def test_what_somebody_did_to_the_same_device_meanwhile_is_undone(lab):
    faults = Faults(lab)
    faults.add(parse_fault("nic-rate host=b1 rate=50mbit"))
    lab.hosts["b1"].run(["tc", "qdisc", "del", "dev", "data0", "root"])
    lab.hosts["b1"].run(["tc", "qdisc", "add", "dev", "data0", "root", "pfifo", "limit", "5"])
    faults.clear()
    assert lab.as_declared()


def test_a_host_that_leaves_and_joins_again_has_the_faults_of_the_network(lab, pids):
    faults = Faults(lab)
    faults.add(parse_fault("nic-cut hosts=b1 peers=b3"))
    faults.add(parse_fault("nic-rate host=b3 rate=50mbit"))
    try:
        remove_links("b3", pids[""])
        add_links(TOPOLOGY, lab.plan, "b3", pids[""], pids["b3"])
        missing = "\n".join(network.differences(lab, None))
        assert "fabric port2 has no filter" in missing and "b3 data0: rate is 400mbit; declared is 50mbit" in missing
        faults.host_joined("b3")
        assert network.differences(lab, None) == []
    finally:
        for host in lab.hosts.values():  # the NIC has another hardware address now
            host.run(["ip", "neigh", "flush", "all"])
    faults.clear()
    assert lab.reached("b1") == {"b2", "b3"}
    assert lab.as_declared()
