"""Every ready topology comes up, is reached everywhere, carries what it declares, on the paths that it declares."""

import json

import pytest

from results.contract.network import FRAME_BYTES
from testbed.network.measure import HIGHEST, LOWEST
from testbed.network.namespaces import NamespaceShell
from testbed.network.shape import payload_bytes_per_s
from testbed.provision.containers import Engine
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.topology.find import find, ready
from testbed.topology.model import Topology
from testbed.wait import wait_for
from tests.containers.conftest import carried, links_off

pytestmark = pytest.mark.containers

CONNECT = """
import socket, sys
for place in sys.argv[1:]:
    host, port = place.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=3).close()
    except OSError as error:
        print(place, error)
"""
PINGS, PING_BYTES = 300, 1400


# The larger ones take as long as all others together; an object store is brought up by its own tests each time. Two and
# four brokers are declared as three are, and many other tests bring two up.
NIGHTLY = (
    "two-brokers",
    "four-brokers",
    "six-brokers",
    "eight-brokers",
    "ten-brokers",
    "s3",
    "s3-three-brokers",
    "two-brokers-client",
    "two-brokers-s3",
)
assert set(NIGHTLY) <= set(ready())
SUPPLIED = [name for name in ready() if find(name).automq is not None]
"""They need an AutoMQ that a user supplies: test_automq_real.py brings one up where there is one."""
EACH = [
    pytest.param(name, marks=pytest.mark.nightly) if name in NIGHTLY else name
    for name in ready()
    if name not in SUPPLIED
]


@pytest.fixture(scope="module", params=EACH)
def up(request, own_state):
    """Each ready topology in turn, up; three brokers are up for other tests, too."""
    if request.param == "three-brokers":
        yield request.getfixturevalue("three")
        return
    name = f"ci-{request.param}"
    testbed = Testbed.up(find(request.param), name=name, progress=print)
    yield testbed
    testbed.close()
    engine = Engine()
    remove(engine, name)
    engine.close()


def listeners(testbed: Testbed) -> list[str]:
    """Every address at which a node of the topology should be listening, as its own properties say."""
    found = []
    for host in testbed.topology.hosts:
        if host.node_id is not None:
            text = testbed.hosts[host.name].run("grep ^listeners= /etc/testbed/kafka/server.properties").stdout
            found += [each.partition("://")[2] for each in text.strip().partition("=")[2].split(",")]
    return found


def sent_bytes(testbed: Testbed) -> dict[str, int]:
    """What each device of the fabric has sent so far."""
    fabric, _pids = testbed.pids()
    links = json.loads(NamespaceShell("fabric", fabric).run(["ip", "-s", "-j", "link", "show"]).stdout)
    return {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in links}


def test_every_listener_is_reached_from_every_host(up):
    places = listeners(up)
    assert len(places) >= 2 * len(up.topology.brokers) + len(up.topology.controllers)
    for name, host in up.hosts.items():
        assert host.run(["python3", "-c", CONNECT, *places]).stdout == "", name
    with up.admin() as admin:
        assert {broker.id for broker in admin.cluster().brokers} == {host.node_id for host in up.topology.brokers}


def test_shaping_and_rates_are_as_declared(up):
    assert up.shaping_differences() == []
    assert links_off(up) == {}


def pairs(topology: Topology) -> list[tuple[str, str]]:
    """One pair of hosts for each way from a rack to itself or to another."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for source in topology.hosts:
        for target in topology.hosts:
            if source is not target:
                found.setdefault((source.rack, target.rack), (source.name, target.name))
    return list(found.values())


def test_racks_meet_in_the_core_and_nowhere_else(up):
    """What is sent to another rack is seen on both uplinks; what stays in a rack is seen on none."""
    sent = PINGS * PING_BYTES
    for source, target in pairs(up.topology):
        before = sent_bytes(up)
        ping = ["ping", "-q", "-f", "-c", str(PINGS), "-s", str(PING_BYTES), str(up.plan.data_ip(target))]
        up.hosts[source].run(ping)
        after = sent_bytes(up)
        grown = {device for device in after if after[device] - before[device] >= sent}
        leaves, enters = (up.topology.racks.index(up.topology.host(name).rack) for name in (source, target))
        # The answers take the same way back.
        expected = set() if leaves == enters else {f"{end}{rack}" for end in ("up", "dn") for rack in (leaves, enters)}
        assert {device for device in grown if device[:2] in ("up", "dn")} == expected, (source, target)


def test_a_shaped_uplink_binds_and_the_nics_do_not(up):
    if not up.topology.uplinks:
        return  # nothing is declared that could bind

    def measured():
        uplinks = up.uplinks()
        print([(each.place, each.direction, round(each.ratio, 4)) for each in uplinks])
        assert len(uplinks) == 2 * len(up.topology.uplinks)
        for each in uplinks:
            link = up.topology.uplinks[each.place.removeprefix("rack ")]
            burst = link.tx_burst_bytes if each.direction == "transmit" else link.rx_burst_bytes
            # Several flows at once: a full bucket passes, and the frame that empties it passes whole; not a byte more.
            more = 8 * (burst + FRAME_BYTES) / (each.declared_bps * each.seconds)
            assert each.ratio <= 1 + each.unsure_s / each.seconds + more, each
        return uplinks

    # A machine whose CPU is taken away reads low for some seconds; what is too slow reads low every time.
    enough = f"{LOWEST} of what is declared to pass"
    wait_for(measured, lambda uplinks: all(each.ratio >= LOWEST for each in uplinks), 60, 0.05, enough)
    first = up.topology.hosts[0]
    beside = next(host for host in up.topology.hosts if host.rack == first.rack and host is not first)
    beyond = next(host for host in up.topology.hosts if host.rack != first.rack)
    for target, rate_bps in ((beside, first.nic.tx_bps), (beyond, up.topology.uplinks[first.rack].tx_bps)):
        rate = wait_for(
            lambda target=target: carried(up, first.name, target.name),
            lambda rate, rate_bps=rate_bps: rate >= LOWEST * payload_bytes_per_s(rate_bps),
            20,
            0.05,
            enough,
        )
        print(f"{first.name} to {target.name}: {rate / payload_bytes_per_s(rate_bps):.3f} of {rate_bps}")
        assert rate <= HIGHEST * payload_bytes_per_s(rate_bps)
