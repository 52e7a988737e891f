"""The fabrics of several machines, and the links between them."""

import pytest

from testbed.errors import TestbedError
from testbed.network.addresses import AddressPlan
from testbed.network.apply import FABRIC, compare_links, link_ends
from testbed.network.fabric import fabric_devices, shaped_devices, switches, wire
from testbed.network.measure import transfers
from testbed.network.overlay import Overlay, path_needs, resolve_mtu
from testbed.network.shape import payload_bytes_per_s
from testbed.network.underlay import PathRate, widest
from testbed.topology import loads

TEXT = """
name: two
machines: {m1: {engine: "ssh://h1"}, m2: {engine: "ssh://h2"}}
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both, machine: m1}
  b2: {role: broker, machine: m2}
  b3: {role: broker, machine: m2, nic: {tx_rate: 100mbit, rx_rate: 50mbit}}
"""
TOPOLOGY = loads(TEXT)
PLAN = AddressPlan(3, ("b1", "b2", "b3"))
OVERLAY = Overlay({"": "10.0.0.1", "m1": "10.0.0.11", "m2": "10.0.0.12"}, 1450)
PIDS = {"": 1, "@m1": 10, "@m2": 20, "b1": 11, "b2": 22, "b3": 23}
WIRING = wire("mine", TOPOLOGY, PLAN, PIDS, 99, OVERLAY)


def test_each_machine_has_a_core_with_its_own_address_joined_by_one_vxlan_device():
    assert set(WIRING.fabrics) == set(WIRING.underlay) == {"", "m1", "m2"}
    for number, machine in enumerate(("", "m1", "m2")):
        script = WIRING.fabrics[machine]
        assert f"addr add 198.19.3.{2 + number}/25 dev core" in script.ip
        assert "link set dev vxlan0 master core" in script.ip
        peers = [command[-1] for command in script.commands if command[:3] == ("bridge", "fdb", "append")]
        assert peers == [address for name, address in OVERLAY.addresses.items() if name != machine]
    [line] = WIRING.underlay["m2"].ip
    assert line == (
        "link add name vxlan0 mtu 1450 netns 20 type vxlan id 8257539 local 10.0.0.12 dstport 4789 ttl 64 df set"
    )


def test_every_link_of_the_data_network_has_the_mtu_of_the_overlay():
    made = [line for script in WIRING.fabrics.values() for line in script.ip if "type veth" in line]
    assert made
    assert all(line.count("mtu 1450") == 2 for line in made), made


def test_a_host_and_its_shaping_are_on_its_own_machine():
    assert any("port0 " in line for line in WIRING.fabrics["m1"].ip)
    assert not any("port0" in line for line in (*WIRING.fabrics[""].ip, *WIRING.fabrics["m2"].ip))
    assert any(line.startswith("qdisc") and " port1 " in line for line in WIRING.fabrics["m2"].tc)
    assert {each.where for each in shaped_devices(TOPOLOGY)} == {"b1", "b2", "b3", "@m1", "@m2"}
    assert fabric_devices(TOPOLOGY)["port2"] == "@m2"


def test_the_switch_of_a_rack_has_one_address_on_each_machine():
    found = {(each.machine, each.rack): each.number for each in switches(TOPOLOGY)}
    assert found == {("m1", "r1"): 0, ("m2", "r1"): 1}
    addresses = [line for script in WIRING.fabrics.values() for line in script.ip if "/32" in line]
    assert addresses == ["addr add 198.19.3.111/32 dev rack0", "addr add 198.19.3.112/32 dev rack0"]
    # A rack that is on several machines has no single uplink.
    assert "up0" not in fabric_devices(TOPOLOGY)


def test_no_nic_is_measured_across_machines():
    machine = {host.name: host.machine for host in TOPOLOGY.hosts}
    for transfer in transfers(TOPOLOGY):
        ends = {machine[end] for end in (transfer.source, transfer.target) if end in machine}
        assert len(ends) == 1, transfer
    measured = {end for transfer in transfers(TOPOLOGY) for end in transfer.measures}
    assert measured == {(host, way) for host in machine for way in ("transmit", "receive")}


def test_a_link_between_machines_that_is_gone_is_named_with_its_machine():
    links = {end.host: [] for end in link_ends("mine", TOPOLOGY)}
    for end in link_ends("mine", TOPOLOGY):
        if (end.host, end.device) != ("@m2", "vxlan0"):
            links[end.host].append({"ifname": end.device, "flags": ["UP"]})
    [broken] = compare_links("mine", TOPOLOGY, links)
    assert broken == "the link to the other machines is gone (vxlan0 in the fabric on m2)"
    assert FABRIC in links


def test_the_mtu_is_what_the_narrowest_network_leaves_or_is_refused_with_the_remedy():
    assert resolve_mtu(None, {"": 1500, "m1": 9000}) == (1450, "")
    assert resolve_mtu(None, {"": 9000, "m1": 9000}) == (1500, "")
    assert resolve_mtu(1500, {"": 1550, "m1": 1600}) == (1500, "")
    mtu, why = resolve_mtu(1500, {"": 1600, "m1": 1500})
    assert mtu == 1500
    assert why == (
        "mtu: 1500 is declared, and VXLAN adds 50: the network between the machines must have an MTU of 1550; on m1 it "
        "has 1500. Raise it there, or declare mtu: 1450 or less"
    )
    too_small = resolve_mtu(None, {"": 1300, "m1": 1500})[1]
    assert too_small == (
        "NICs need 1280 or more, and VXLAN adds 50: the network between the machines must have an MTU of 1330; on "
        "this machine it has 1300. Raise it there"
    )


def test_a_path_must_carry_what_the_slower_end_declares():
    needs = {need.what: need for need in path_needs(TOPOLOGY)}
    assert needs["m1 → m2"].rate_bps == 400_000_000
    assert needs["m1 → m2"].nics == ("b1 data0",)
    assert needs["m2 → m1"].rate_bps == 400_000_000
    assert set(needs) == {"m1 → m2", "m2 → m1"}


def test_with_three_machines_all_paths_of_one_are_also_needed_at_once():
    here = TEXT.replace("machines: {", "machines: {here: {engine: local}, ") + "  b4: {role: broker, machine: here}\n"
    needs = {need.what: need.rate_bps for need in path_needs(loads(here))}
    assert needs["m1 → this machine, m2"] == 400_000_000
    assert needs["this machine, m1 → m2"] == 450_000_000
    assert len(needs) == 12


def test_a_narrow_path_names_the_nics():
    need = path_needs(TOPOLOGY)[0]
    assert PathRate(need, 399e6).as_declared
    narrow = PathRate(need, 100e6)
    assert not narrow.as_declared
    assert narrow.in_words() == "m1 → m2 carries 100mbit, and its NICs need 400mbit (b1 data0)"


def test_payload_of_smaller_frames():
    assert payload_bytes_per_s(8e6) == 1e6 * 1448 / 1514
    assert payload_bytes_per_s(8e6, 1450) == 1e6 * 1398 / 1464


def answers(*found):
    left = list(found)

    def carried():
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return carried


def test_a_measurement_of_a_path_that_fails_is_made_again():
    need = path_needs(TOPOLOGY)[0]
    assert widest(need, answers(TestbedError("no rate"), 100e6, 399e6)).carried_bps == 399e6
    assert widest(need, answers(100e6, TestbedError("no rate"), 90e6)).carried_bps == 100e6
    with pytest.raises(TestbedError, match="no rate 3"):
        widest(need, answers(*(TestbedError(f"no rate {number}") for number in (1, 2, 3))))
