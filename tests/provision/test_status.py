import pytest

from testbed.faults.journal import FaultEntry
from testbed.faults.parse import parse_fault
from testbed.network.addresses import AddressPlan
from testbed.owner import Owner
from testbed.provision.status import ClusterObservation, describe, remarks, rows
from testbed.topology import loads
from tests.provision.states import make

TOPOLOGY = loads(
    """
name: one
racks: {r1: {uplink: {tx_rate: 100mbit, rx_rate: 200mbit}}, r2: {}}
kafka: {version: 4.3.1}
hosts:
  b1: {role: both, rack: r1, nics: {data0: {rate: 400mbit}, repl0: {rate: 100mbit}}}
  load: {role: client, rack: r2, nic: {rate: 1gbit}}
"""
)


class FakeTestbed:
    def __init__(self, topology=TOPOLOGY, **state):
        self.name, self.topology, self.state = "one", topology, make(**state)
        self.plan = AddressPlan(0, topology.by_number)
        self.bootstrap = ("198.19.0.11:9092",)


WELL = {"kafka": {"b1": 17, "load": None}, "unfenced": frozenset({1})}


def seen(**other):
    return describe(FakeTestbed(), ClusterObservation(**{**WELL, **other}))


def test_a_broken_broker_is_told():
    found = describe(FakeTestbed(defects={"b1": ("late-isr,seconds=3",)}), ClusterObservation(**WELL))
    assert not found["ok"]
    assert remarks(found) == ["broken on purpose: late-isr seconds=3 on b1"]


def test_all_nics_and_uplinks_are_told():
    found = seen()
    assert found["ok"]
    assert found["uplinks"] == [{"rack": "r1", "transmit_bps": 100_000_000, "receive_bps": 200_000_000}]
    assert [(nic["name"], nic["address"], nic["use"]) for nic in found["hosts"][0]["nics"]] == [
        ("data0", "198.19.0.11", "data"),
        ("repl0", "198.19.0.129", "data"),
    ]
    assert rows(found) == [
        (
            "b1",
            "both",
            "r1",
            "data0 198.19.0.11 400mbit tx 400mbit rx; repl0 198.19.0.129 100mbit tx 100mbit rx",
            "4.3.1",
            "yes",
            "unfenced",
        ),
        ("load", "client", "r2", "198.19.0.12 1gbit tx 1gbit rx", "-", "-", "-"),
    ]
    assert remarks(found) == []


def entry(number, owner):
    return FaultEntry(number, parse_fault("nic-down host=b1"), owner, "now").document()


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"faults": (entry(3, None),)}, "fault 3: nic-down host=b1, since now, by hand"),
        (
            {"faults": (entry(4, Owner(1, 0, "another boot")),)},
            "fault 4: nic-down host=b1, since now, by process 1 (dead: `testbed gc` heals it)",
        ),
        ({"links": ("rack r1's uplink is down (up0 in the fabric)",)}, "rack r1's uplink is down (up0 in the fabric)"),
        ({"shaping": ("b1 data0 transmit: not shaped",)}, "shaping differs: b1 data0 transmit: not shaped"),
        ({"silent": {"load": "no SSH connection"}}, "load does not answer: no SSH connection"),
        ({"problems": ("3.json: not a fault of this testbed",)}, "3.json: not a fault of this testbed"),
    ],
)
def test_whatever_is_not_as_declared_is_told_and_not_ok(other, told):
    found = seen(**other)
    assert not found["ok"]
    assert remarks(found) == [told]


@pytest.mark.parametrize(
    ("other", "row"),
    [
        ({"kafka": {"b1": None, "load": None}}, ("no", "unfenced")),
        ({"unfenced": frozenset()}, ("yes", "fenced")),
        ({"kafka": {"load": None}, "silent": {"b1": "no SSH connection"}}, ("?", "unfenced")),
    ],
)
def test_a_node_that_is_not_there_is_not_ok(other, row):
    found = seen(**other)
    assert not found["ok"]
    assert rows(found)[0][-2:] == row


STORED = loads(
    "{name: one, kafka: {version: 4.3.1}, defaults: {nic: {rate: 400mbit}},"
    " hosts: {b1: {role: both}, s1: {role: objectstore}, s2: {role: objectstore}}}"
)


def test_the_servers_of_an_object_store_are_told():
    testbed = FakeTestbed(STORED)
    processes = {"b1": 17, "s1": 18, "s2": 19}
    well = describe(testbed, ClusterObservation(processes, {"s1": "", "s2": ""}, unfenced=frozenset({1})))
    assert well["ok"] and remarks(well) == []
    assert [row[4:] for row in rows(well)] == [
        ("4.3.1", "yes", "unfenced"),
        ("-", "yes", "ready"),
        ("-", "yes", "ready"),
    ]
    processes["s1"] = None
    ill = describe(
        testbed, ClusterObservation(processes, {"s1": "connection refused", "s2": ""}, unfenced=frozenset({1}))
    )
    assert not ill["ok"]
    assert rows(ill)[1][4:] == ("-", "no", "not ready")
    assert remarks(ill) == ["the object store's server on s1 is not ready: connection refused"]


def test_a_host_that_a_killed_command_was_adding_is_told():
    found = describe(FakeTestbed(changing={"b2": "1@1@another boot"}), ClusterObservation(**WELL))
    assert not found["ok"]
    assert remarks(found) == [
        "it has b2, which a killed command was adding or removing: `testbed down one` and `testbed up` make it again"
    ]
