"""Several machines in a topology: where each host is placed, what is refused, and what a document tells."""

from dataclasses import replace

import pytest

from testbed.provision.plan_text import describe
from testbed.topology import TopologyError, load_document, loads

TEXT = """
name: spread
machines:
  here: {engine: local}
  there: {engine: "ssh://root@10.0.0.5:2222", key: id, address: 10.1.0.5,
          host_key: "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"}
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: broker}
  b2: {role: broker}
  c1: {role: controller}
"""
THREE = TEXT.replace("  there: {", '  more: {engine: "ssh://h3"}\n  there: {')


def places(text):
    return {host.name: host.machine for host in loads(text).hosts}


def test_hosts_are_spread_evenly_and_a_controller_is_apart_from_brokers_where_there_is_a_machine_for_it():
    assert places(TEXT) == {"b1": "here", "b2": "there", "c1": "here"}
    assert places(THREE) == {"b1": "here", "b2": "more", "c1": "there"}


def test_of_two_machines_with_as_many_hosts_a_controller_takes_the_one_with_fewer_brokers():
    text = TEXT + "  b3: {role: broker}\n  c2: {role: controller}\n  c3: {role: controller}\n"
    found = places(text)
    assert {name for name, machine in found.items() if machine == "here"} == {"b1", "b3", "c3"}
    assert {name for name, machine in found.items() if machine == "there"} == {"b2", "c1", "c2"}


def test_a_declared_machine_counts_before_the_spreading():
    assert places(TEXT.replace("b1: {role: broker}", "b1: {role: broker, machine: there}")) == {
        "b1": "there",
        "b2": "here",
        "c1": "here",
    }


def test_a_rack_with_a_shaped_uplink_stays_on_one_machine():
    racks = "racks: {r1: {uplink: {rate: 1gbit}}, r2: {}}\n"
    text = racks + TEXT.replace("role: broker", "role: broker, rack: r1").replace("controller", "controller, rack: r2")
    assert places(text) == {"b1": "here", "b2": "here", "c1": "there"}
    with pytest.raises(TopologyError, match="b1 of rack r1 is on here, and the rack has one shaped uplink"):
        loads(
            text.replace("b1: {role: broker,", "b1: {role: broker, machine: here,").replace(
                "b2: {role: broker,", "b2: {role: broker, machine: there,"
            )
        )


def test_a_document_has_the_machines_and_the_places_and_gives_the_same_topology():
    topology = loads(TEXT)
    document = topology.to_document()
    assert document["machines"]["here"] == {"engine": "local"}
    assert document["machines"]["there"]["address"] == "10.1.0.5"
    assert document["hosts"]["b2"]["machine"] == "there"
    assert load_document(document) == topology
    one = loads(TEXT[: TEXT.index("machines:")] + TEXT[TEXT.index("kafka:") :])
    assert "machines" not in one.to_document()
    assert "machine" not in one.to_document()["hosts"]["b1"]


@pytest.mark.parametrize(
    ("there", "instead", "told"),
    [
        (
            "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
            "SHA256:x",
            "machines.there.host_key: SHA256:x is no host key",
        ),
        (
            "b1: {role: broker}",
            "b1: {role: broker, machine: her}",
            "hosts.b1.machine: there is no machine her; allowed: here or there; did you mean here?",
        ),
        (
            "engine: local",
            "engine: remote",
            "machines.here.engine: remote is no engine; allowed: local, or ssh://user@host:port",
        ),
        ("engine: local", "engine: tcp://10.0.0.9:2375", "tcp://10.0.0.9:2375 is no engine"),
        ("engine: local", "engine: ssh://root@10.0.0.5:2222", "there.engine: 10.0.0.5:2222 is here already"),
        ("2222", "70000", "has no such port; allowed: 1 to 65535"),
        ("10.1.0.5", "somewhere", "machines.there.address: somewhere is no IPv4 address"),
        (
            "b2: {role: broker}",
            "b2: {role: broker, disk: {size: 1GB}}",
            "hosts.b2.disk: a disk of a size cannot be made on another machine (there)",
        ),
        ("kafka:", "mtu: 9000\nkafka:", "9000 is no MTU of NICs; allowed: 1280 to 1500 bytes"),
    ],
)
def test_a_mistake_is_refused_with_its_place(there, instead, told):
    with pytest.raises(TopologyError) as refused:
        loads(TEXT.replace(there, instead, 1), "t.yaml")
    assert told in str(refused.value)
    assert "t.yaml:" in str(refused.value)


def test_without_machines_neither_a_machine_nor_an_mtu_is_allowed():
    bare = TEXT[: TEXT.index("machines:")] + TEXT[TEXT.index("kafka:") :]
    with pytest.raises(TopologyError, match="there is no machine x; allowed: machines at the top"):
        loads(bare.replace("b1: {role: broker}", "b1: {role: broker, machine: x}"))
    with pytest.raises(TopologyError, match="the NICs of one machine have 1500"):
        loads("mtu: 1450\n" + bare)
    topology = loads(TEXT)
    with pytest.raises(TopologyError, match="hosts.b1.machine: there is no machine"):
        replace(topology, hosts=(replace(topology.hosts[0], machine=None), *topology.hosts[1:]))


def test_the_plan_tells_placement_links_and_what_is_declared_on_each_path():
    lines = describe(loads(TEXT)).splitlines()
    assert "  b2: broker in r1 on there, node 2, Kafka 4.3.1, management 198.18.0.12" in lines
    assert "  here (local): b1, c1" in lines
    assert "  this machine → there: 400mbit, declared by b2 data0" in lines
    assert any("type vxlan" in line and "local 10.1.0.5 dstport 4789" in line for line in lines)
    assert "in the network namespace of the fabric on there" in lines
