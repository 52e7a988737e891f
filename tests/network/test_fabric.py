from ipaddress import IPv4Network

import pytest

from testbed.kafka.node import server_properties
from testbed.network.addresses import SLOTS, AddressPlan, free_slot
from testbed.network.fabric import driver_device, shaped_devices, wire
from testbed.network.overlay import HERE
from testbed.network.shape import tc_lines
from testbed.topology import loads

TWO_RACKS = """
name: t
kafka: {version: 4.3.1}
racks: [left, right]
hosts:
  b1: {role: both, rack: left, nic: {tx_rate: 100mbit, rx_rate: 200mbit}}
  b2: {role: broker, rack: right, nic: {rate: 400mbit}}
"""


def rendered(text=TWO_RACKS):
    topology = loads(text)
    plan = AddressPlan(3, ("b1", "b2"))
    return topology, plan, wire("mine", topology, plan, {"b1": 11, "b2": 22}, 99)


def test_each_host_has_an_address_in_both_networks():
    plan = AddressPlan(3, ("b1", "b2"))
    assert (str(plan.management_ip("b2")), str(plan.data_ip("b2"))) == ("198.18.3.12", "198.19.3.12")
    assert str(plan.driver) == "198.19.3.1"


def test_a_slot_must_be_free_of_testbeds_and_of_the_machines_routes():
    routes = [IPv4Network("198.18.0.0/24"), IPv4Network("198.19.1.77/32"), IPv4Network("192.0.2.0/24")]
    assert free_slot({2}, routes) == 3


def test_no_slot_left_says_what_to_do():
    held = r"^no address slot of 198.18.0.0/15 is free: testbeds hold 250 of 250 \(`testbed ls`, `testbed down NAME`\)$"
    with pytest.raises(LookupError, match=held):
        free_slot(SLOTS, [])
    with pytest.raises(LookupError, match=r"hold 0 of 250 .*, and this machine has routes to 192\.0\.0\.0/4$"):
        free_slot([], [IPv4Network("192.0.0.0/4"), IPv4Network("64.0.0.0/2")])


def test_a_vpn_that_sets_its_default_route_as_two_halves_takes_no_addresses():
    assert free_slot([], [IPv4Network(each) for each in ("0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1")]) == 0


def test_the_hosts_end_sends_at_tx_and_the_switchs_end_at_rx():
    _topology, _plan, wiring = rendered()
    assert any("dev data0" in line and "rate 100000000bit" in line for line in wiring.hosts["b1"].tc)
    assert any("dev port0" in line and "rate 200000000bit" in line for line in wiring.fabrics[HERE].tc)


def test_a_hosts_link_ends_in_its_namespace_and_in_its_rack():
    _topology, _plan, wiring = rendered()
    assert "link add name port1 type veth peer name data0 netns 22" in wiring.fabrics[HERE].ip
    assert "link set dev port1 master rack1" in wiring.fabrics[HERE].ip


def test_segmentation_offload_is_off_on_every_link_so_that_counters_see_frames():
    _topology, _plan, wiring = rendered()
    switched_off = {command[2] for command in wiring.fabrics[HERE].commands}
    assert {"port0", "port1", "up0", "dn0", "up1", "dn1"} <= switched_off
    assert all(script.commands[0][2] == "data0" for script in wiring.hosts.values())


def test_what_a_short_queue_would_drop_whole_is_sent_as_frames():
    """A queue of 30 ms holds less than four times 64 KiB below 70 mbit."""
    slow = loads(TWO_RACKS.replace("tx_rate: 100mbit", "tx_rate: 60mbit"))
    wiring = wire("mine", slow, AddressPlan(3, ("b1", "b2")), {"b1": 11, "b2": 22}, 99)
    line = "link set dev {} gso_max_segs 1"
    assert line.format("data0") in wiring.hosts["b1"].ip
    assert line.format("data0") not in wiring.hosts["b2"].ip
    assert line.format(driver_device("mine")) in wiring.machine.ip
    _topology, _plan, fast = rendered()
    assert not [text for script in (fast.machine, *fast.hosts.values()) for text in script.ip if "gso" in text]


def test_the_machines_own_link_carries_the_testbeds_label():
    _topology, _plan, wiring = rendered()
    assert f"link set dev {driver_device('mine')} alias testbed=mine" in wiring.machine.ip


def test_devices_of_two_testbeds_never_share_a_name():
    assert driver_device("one") != driver_device("two")
    assert len(driver_device("x" * 32)) <= 15


def test_addresses_run_out_before_they_overlap():
    with pytest.raises(ValueError, match="do not fit"):
        AddressPlan(0, tuple(f"h{n}" for n in range(101)))


NARROW = """
name: t
kafka: {version: 4.3.1}
racks: {left: {}, right: {uplink: {tx_rate: 50mbit, rx_rate: 60mbit, delay: 5ms, rx_loss: 1%}}}
defaults: {nics: {data0: {rate: 400mbit}, repl0: {tx_rate: 100mbit, rx_rate: 200mbit, use: replication}}}
hosts:
  b1: {role: both, rack: left}
  b2: {role: broker, rack: right}
"""


def test_an_uplink_is_shaped_at_both_ends_and_only_where_it_is_declared():
    _topology, _plan, wiring = rendered(NARROW)
    by_device = {}
    for line in wiring.fabrics[HERE].tc:
        by_device.setdefault(line.split(" dev ")[1].split()[0], []).append(line)
    assert "up0" not in by_device and "dn0" not in by_device
    assert any("rate 50000000bit" in line for line in by_device["up1"])
    assert any("delay 5000us" in line for line in by_device["up1"])
    assert any("rate 60000000bit" in line for line in by_device["dn1"])
    assert any("loss 1%" in line for line in by_device["dn1"])


def test_everything_that_is_shaped_is_read_back():
    topology, _plan, wiring = rendered(NARROW)
    scripts = {None: wiring.fabrics[HERE], **wiring.hosts}
    rendered_lines = sorted(line for script in scripts.values() for line in script.tc)
    wanted = sorted(line for each in shaped_devices(topology) for line in tc_lines(each.device, each.shape))
    assert rendered_lines == wanted
    assert "rack right uplink receive" in [each.what for each in shaped_devices(topology)]


def test_each_nic_of_a_host_has_a_port_and_a_network_of_its_own():
    _topology, plan, wiring = rendered(NARROW)
    assert "link add name port1n1 type veth peer name repl0 netns 22" in wiring.fabrics[HERE].ip
    assert "link set dev port1n1 master rack1" in wiring.fabrics[HERE].ip
    assert "addr add 198.19.3.12/25 dev data0" in wiring.hosts["b2"].ip
    assert "addr add 198.19.3.130/26 dev repl0" in wiring.hosts["b2"].ip
    networks = [plan.network(nic) for nic in range(3)]
    assert not any(one.overlaps(other) for one in networks for other in networks if one is not other)
    assert all(network.subnet_of(plan.data) for network in networks)


def test_no_two_things_have_one_address():
    plan = AddressPlan(3, tuple(f"h{n}" for n in range(60)))
    found = [plan.driver, plan.fabric, *(plan.fabric_in_rack(n) for n in range(16))]
    found += [plan.data_ip(host, nic) for host in plan.hosts for nic in range(3)]
    assert len(set(found)) == len(found)
    edges = {plan.network(nic)[end] for nic in range(3) for end in (0, -1)}
    assert edges.isdisjoint(found)


def test_further_nics_run_out_of_addresses_with_words():
    plan = AddressPlan(3, tuple(f"h{n}" for n in range(100)))
    with pytest.raises(ValueError, match="only the first 62 can have several NICs"):
        plan.data_ip("h99", 1)


def test_followers_fetch_on_the_nic_for_replication():
    topology, plan, _wiring = rendered(NARROW)
    properties = server_properties(topology, topology.host("b2"), plan)
    listeners = "CLIENT://198.19.3.12:9092,REPLICATION://198.19.3.130:9093,DRIVER://198.18.3.12:9096"
    assert properties["listeners"] == listeners
    assert properties["advertised.listeners"] == properties["listeners"]
