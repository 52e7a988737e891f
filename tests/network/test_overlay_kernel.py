"""The fabrics of two machines on a real kernel, in private network namespaces: one for each machine's own network, one
for each fabric and host. Needs root, no engine."""

import subprocess
import sys

import pytest

from testbed.network.addresses import AddressPlan
from testbed.network.apply import apply, shaping_differences
from testbed.network.fabric import Script, wire
from testbed.network.overlay import Overlay
from testbed.network.shape import payload_bytes_per_s
from testbed.network.underlay import interface_to
from testbed.topology import loads
from tests.network.namespaces import network_namespaces
from tests.network.test_fabric_kernel import Fabric

pytestmark = pytest.mark.containers

TOPOLOGY = loads("""
name: t
machines: {here: {engine: local}, there: {engine: "ssh://there"}}
kafka: {version: 4.3.1}
defaults: {nic: {rate: 50mbit}}
hosts:
  b1: {role: both, machine: here}
  b2: {role: broker, machine: there}
  b3: {role: broker, machine: there, nic: {rate: 20mbit}}
""")
OVERLAY = Overlay({"": "198.18.248.1", "there": "198.18.248.2"}, 1450)
PLACES = ("own", "own@there", "", "@there", "b1", "b2", "b3")


@pytest.fixture(scope="module")
def fabric():
    plan = AddressPlan(248, tuple(host.name for host in TOPOLOGY.hosts))
    with network_namespaces(*PLACES) as pids:
        made = Fabric(TOPOLOGY, plan, pids)
        made.set_up()
        link = f"link add name eth1 type veth peer name eth1 netns {pids['own@there']}"
        for place, address, ip in (
            ("own", OVERLAY.addresses[""], (link,)),
            ("own@there", OVERLAY.addresses["there"], ()),
        ):
            up = ("link set dev lo up", f"addr add {address}/24 dev eth1", "link set dev eth1 up")
            apply(Script(ip=(*ip, *up)), pids[place])
        wiring = wire("overlay-test", TOPOLOGY, plan, pids, pids["own"], OVERLAY)
        for machine, script in wiring.underlay.items():
            apply(script, pids[f"own@{machine}" if machine else "own"])
        for machine, script in wiring.fabrics.items():
            apply(script, pids[f"@{machine}" if machine else ""])
        for host, script in wiring.hosts.items():
            apply(script, pids[host])
        apply(wiring.machine, pids["own"])
        yield made


ECHO = """
import socket, struct, sys
target, size = sys.argv[1], int(sys.argv[2])
icmp = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
icmp.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO: a packet that is too large is an error
icmp.settimeout(2)
body = bytes(size)
head = struct.pack("!BBHHH", 8, 0, 0, 77, 1)
total = sum(struct.unpack(f"!{len(head + body) // 2}H", (head + body)[: len(head + body) // 2 * 2]))
total = (total & 0xFFFF) + (total >> 16)
icmp.sendto(struct.pack("!BBHHH", 8, 0, ~total & 0xFFFF, 77, 1) + body, (target, 0))
while True:
    reply = icmp.recv(65535)
    if reply[20] == 0 and reply[24:28] == struct.pack("!HH", 77, 1) and len(reply) == 28 + size:
        break
"""
"""One echo request, and its answer within 2 s. A machine need not have `ping`."""


def ping(fabric, source, target, size):
    words = [sys.executable, "-c", ECHO, str(fabric.plan.data_ip(target)), str(size)]
    done = subprocess.run(fabric.command(source, *words), capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0 and "Message too long" not in done.stderr:
        pytest.fail(done.stderr)
    return done.returncode == 0


def test_shaping_is_read_back_on_both_machines(fabric):
    assert shaping_differences(TOPOLOGY, fabric.pids) == []


def test_a_packet_of_full_size_passes_whole_and_a_larger_one_does_not_leave(fabric):
    assert ping(fabric, "b1", "b2", OVERLAY.mtu - 28)
    assert ping(fabric, "b2", "b1", OVERLAY.mtu - 28)
    assert not ping(fabric, "b1", "b2", OVERLAY.mtu - 27)


def test_the_driver_reaches_hosts_on_both_machines(fabric):
    for host in fabric.plan.hosts:
        fabric.reach("own", str(fabric.plan.data_ip(host)))


def test_the_devices_between_the_machines_are_in_the_fabrics_alone(fabric):
    for place in ("own", "own@there"):
        assert "vxlan0" not in fabric.run(place, "ip", "-br", "link")
    for place in ("", "@there"):
        assert "mtu 1450" in fabric.run(place, "ip", "link", "show", "dev", "vxlan0")


def test_the_mtu_of_the_network_between_the_machines_is_read(fabric):
    class Own:
        def run(self, words):
            done = subprocess.run(fabric.command("own", *words), capture_output=True, text=True, check=True)
            return done

    found = interface_to(Own(), OVERLAY.addresses["there"])
    assert (found.address, found.mtu) == (OVERLAY.addresses[""], 1500)


@pytest.mark.parametrize(("source", "target", "rate_bps"), [("b1", "b2", 50e6), ("b2", "b1", 50e6), ("b1", "b3", 20e6)])
def test_the_slower_nic_binds_across_machines(fabric, source, target, rate_bps):
    fabric.require_rate(source, target, 0, payload_bytes_per_s(rate_bps, OVERLAY.mtu))
