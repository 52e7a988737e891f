"""The fabric on a real kernel, in private network namespaces instead of containers: paths, addresses, what binds. Needs
root, no engine."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from testbed.network.addresses import AddressPlan
from testbed.network.apply import FABRIC, add_links, apply, remove_links, shaping_differences
from testbed.network.fabric import Script, wire
from testbed.network.overlay import HERE
from testbed.network.shape import payload_bytes_per_s
from testbed.provision.containers import SYSCTLS
from testbed.topology import Topology, loads
from testbed.wait import wait_for
from tests.network.namespaces import network_namespaces

pytestmark = pytest.mark.containers

TEXT = """
name: t
kafka: {version: 4.3.1}
racks: {left: {uplink: {tx_rate: 10mbit, rx_rate: 20mbit}}, right: {}}
defaults: {nics: {data0: {rate: 50mbit}, repl0: {rate: 30mbit, use: replication}}}
hosts:
  b1: {role: both, rack: left}
  b2: {role: broker, rack: left}
  b3: {role: broker, rack: right}
  slow: {role: client, rack: right, nics: {data0: {rate: 10mbit}}}
"""
RECEIVE = """
import socket, sys, time
server = socket.create_server((sys.argv[1], 5000))
print("ready", flush=True)
peer, _ = server.accept()
peer.settimeout(5)
first = time.monotonic()
while time.monotonic() - first < 1:  # TCP looks for the rate, and what the bucket holds passes at once
    assert peer.recv(65536)
begun, got = time.monotonic(), 0
while True:
    data = peer.recv(65536)
    now = time.monotonic()
    got += len(data)
    if not data or now - begun > 1.5:
        break
print(got / (now - begun))
"""
REFUSED = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), timeout=5).close()
except ConnectionRefusedError:
    pass
"""
SEND = """
import socket, sys
peer = socket.create_connection((sys.argv[1], 5000), timeout=5)
try:
    while True:
        peer.sendall(bytes(65536))
except OSError:
    pass
"""


@dataclass
class Fabric:
    topology: Topology
    plan: AddressPlan
    pids: dict[str, int]

    def command(self, place: str, *words: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.pids[place]}/ns/net", "--", *words]

    def run(self, place: str, *words: str) -> str:
        done = subprocess.run(self.command(place, *words), capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 0, f"{words}: {done.stderr}{done.stdout}"
        return done.stdout

    def set_up(self) -> None:
        """Set in each namespace what the engine sets in each container."""
        for place in self.pids:
            self.run(place, "sysctl", "-q", "-w", *(f"{name}={value}" for name, value in SYSCTLS.items()))

    def reach(self, source: str, address: str) -> None:
        """Ask for a port that nobody listens on: the address is reached when it refuses."""
        self.run(source, "python3", "-c", REFUSED, address)

    def carried(self, source: str, target: str, nic: int) -> float:
        """Payload bytes per second that arrive, over 1.5 s, a second after the first."""
        address = str(self.plan.data_ip(target, nic))
        receive = self.command(target, "python3", "-c", RECEIVE, address)
        with subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as receiver:
            assert receiver.stdout is not None
            assert receiver.stdout.readline() == "ready\n"
            self.run(source, "python3", "-c", SEND, address)
            return float(receiver.stdout.read())

    def require_rate(self, source: str, target: str, nic: int, bytes_per_s: float) -> None:
        """Require that the path carries this rate, and no more."""
        # A machine whose CPU is taken away reads low for some seconds; a path that is slower reads low every time.
        share = wait_for(
            lambda: self.carried(source, target, nic) / bytes_per_s,
            lambda share: share >= 0.93,
            15,
            0.05,
            "0.93 of the slowest rate to pass",
        )
        print(f"{source} to {target}: {share:.4f} of the declared payload rate")
        assert share <= 1.05


@pytest.fixture(scope="module")
def fabric() -> Iterator[Fabric]:
    topology = loads(TEXT)
    plan = AddressPlan(249, tuple(host.name for host in topology.hosts))
    with network_namespaces(FABRIC, "driver", *plan.hosts) as pids:
        made = Fabric(topology, plan, pids)
        made.set_up()
        wiring = wire("fabric-test", topology, plan, pids, pids["driver"])
        apply(wiring.fabrics[HERE], pids[FABRIC])
        for host, script in wiring.hosts.items():
            apply(script, pids[host])
        apply(wiring.machine, pids["driver"])
        yield made


def test_a_host_gets_its_links_again_while_its_old_network_is_in_use() -> None:
    """The network of a container that is removed stays as long as a watch of its shaping has a socket in it."""
    topology = loads(TEXT)
    plan = AddressPlan(248, tuple(host.name for host in topology.hosts))
    with network_namespaces(FABRIC, "b2", "again") as pids:
        apply(Script(tuple(f"link add name rack{index} type bridge" for index in range(2))), pids[FABRIC])
        add_links(topology, plan, "b2", pids[FABRIC], pids["b2"])
        remove_links("b2", pids[FABRIC])
        add_links(topology, plan, "b2", pids[FABRIC], pids["again"])
        remove_links("b2", pids[FABRIC])
        remove_links("b2", pids[FABRIC])


def test_all_shaping_is_read_back_uplinks_and_further_nics_included(fabric: Fabric) -> None:
    assert shaping_differences(fabric.topology, fabric.pids) == []
    change = ["class", "change", "dev", "dn0", "classid", "1:10", "htb", "rate", "1gbit", "ceil", "1gbit"]
    fabric.run(FABRIC, "tc", *change, "burst", "16384", "cburst", "16384", "quantum", "1514")
    try:
        told = shaping_differences(fabric.topology, fabric.pids)
        assert told[:1] == ["rack left uplink receive: rate is 1gbit; declared is 20mbit"]
    finally:
        change[-3], change[-1] = "20mbit", "20mbit"
        fabric.run(FABRIC, "tc", *change, "burst", "16384", "cburst", "16384", "quantum", "1514")
    assert shaping_differences(fabric.topology, fabric.pids) == []


def test_each_address_is_answered_by_its_own_nic(fabric: Fabric) -> None:
    """Both NICs of a host stand in one rack: only the one that has an address may say so."""
    for number in (0, 1):
        fabric.run("b1", "ip", "neigh", "flush", "all")
        fabric.reach("b1", str(fabric.plan.data_ip("b2", number)))
        (line,) = fabric.run("b1", "ip", "neigh", "show", str(fabric.plan.data_ip("b2", number))).splitlines()
        device = fabric.topology.host("b2").nics[number].name
        own = fabric.run("b2", "cat", "/proc/net/dev")
        assert device in own
        address = fabric.run("b2", "ip", "-br", "link", "show", device).split()[2]
        assert line.split()[1:5] == ["dev", device, "lladdr", address]


def test_the_driver_reaches_every_host(fabric: Fabric) -> None:
    for host in fabric.plan.hosts:
        fabric.reach("driver", str(fabric.plan.data_ip(host)))


@pytest.mark.parametrize(
    ("source", "target", "nic", "rate_bps"),
    [
        ("b1", "b2", 0, 50_000_000),  # in one rack: the NICs
        ("slow", "b3", 0, 10_000_000),  # a queue that holds no more than the kernel hands over at once
        ("b1", "b3", 0, 10_000_000),  # out of the rack: its uplink, upwards
        ("b3", "b2", 0, 20_000_000),  # into it: downwards
        ("b1", "b2", 1, 30_000_000),  # the second NIC has a rate of its own
    ],
)
def test_what_is_slowest_on_the_path_binds(fabric: Fabric, source: str, target: str, nic: int, rate_bps: int) -> None:
    fabric.require_rate(source, target, nic, payload_bytes_per_s(rate_bps))
