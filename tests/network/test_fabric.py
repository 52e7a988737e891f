from ipaddress import IPv4Network

import pytest

from testbed.network.addresses import SLOTS, AddressPlan, free_slot
from testbed.network.fabric import driver_device, wire
from testbed.topology import loads

TWO_RACKS = """
name: t
kafka: {version: 4.3.1}
racks: [left, right]
hosts:
  b1: {role: both, rack: left, nic: {tx_rate: 100mbit, rx_rate: 200mbit}}
  b2: {role: broker, rack: right, nic: {rate: 400mbit}}
"""


def rendered():
    topology = loads(TWO_RACKS)
    plan = AddressPlan(3, ("b1", "b2"))
    return topology, plan, wire("mine", topology, plan, {"b1": 11, "b2": 22}, 99)


def test_each_host_has_an_address_in_both_networks():
    plan = AddressPlan(3, ("b1", "b2"))
    assert (str(plan.management_ip("b2")), str(plan.data_ip("b2"))) == ("198.18.3.12", "198.19.3.12")
    assert str(plan.driver) == "198.19.3.254"


def test_a_slot_must_be_free_of_testbeds_and_of_the_machines_routes():
    routes = [IPv4Network("198.18.0.0/24"), IPv4Network("198.19.1.77/32"), IPv4Network("192.0.2.0/24")]
    assert free_slot({2}, routes) == 3


def test_no_slot_left_says_what_to_do():
    with pytest.raises(LookupError, match="testbed ls"):
        free_slot(SLOTS, [])


def test_the_hosts_end_sends_at_tx_and_the_switchs_end_at_rx():
    _topology, _plan, wiring = rendered()
    assert any("dev data0" in line and "rate 100000000bit" in line for line in wiring.hosts["b1"].tc)
    assert any("dev port0" in line and "rate 200000000bit" in line for line in wiring.fabric.tc)


def test_a_hosts_link_ends_in_its_namespace_and_in_its_rack():
    _topology, _plan, wiring = rendered()
    assert "link add name port1 type veth peer name data0 netns 22" in wiring.fabric.ip
    assert "link set dev port1 master rack1" in wiring.fabric.ip


def test_segmentation_offload_is_off_on_every_link_so_that_counters_see_frames():
    _topology, _plan, wiring = rendered()
    switched_off = {command[2] for command in wiring.fabric.commands}
    assert {"port0", "port1", "up0", "dn0", "up1", "dn1"} <= switched_off
    assert all(script.commands[0][2] == "data0" for script in wiring.hosts.values())


def test_the_machines_own_link_carries_the_testbeds_label():
    _topology, _plan, wiring = rendered()
    assert f"link set dev {driver_device('mine')} alias testbed=mine" in wiring.machine.ip


def test_devices_of_two_testbeds_never_share_a_name():
    assert driver_device("one") != driver_device("two")
    assert len(driver_device("x" * 32)) <= 15


def test_addresses_run_out_before_they_overlap():
    with pytest.raises(ValueError, match="do not fit"):
        AddressPlan(0, tuple(f"h{n}" for n in range(231)))
