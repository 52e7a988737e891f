"""What a node is given of properties that not every release knows."""

from testbed.kafka.capabilities import Capability
from testbed.kafka.node import server_properties
from testbed.network.addresses import AddressPlan
from testbed.provision.plan_text import describe
from testbed.topology.find import find

SHARE = "share.coordinator.state.topic.replication.factor"


def properties(name, able):
    topology = find(name)
    plan = AddressPlan(0, tuple(host.name for host in topology.hosts))
    return server_properties(topology, topology.host("b1"), plan, able=able)


def test_a_release_without_share_groups_is_not_given_their_properties():
    able = frozenset(Capability) - {Capability.SHARE_GROUPS, Capability.SHARED_STORAGE}
    assert [key for key in properties("two-brokers", able) if key.startswith("share.")] == []


def test_a_release_with_share_groups_keeps_their_state_on_as_many_brokers_as_there_are():
    assert properties("two-brokers", {Capability.SHARE_GROUPS})[SHARE] == "2"
    assert properties("six-brokers", {Capability.SHARE_GROUPS})[SHARE] == "3"


def test_plan_tells_what_hangs_on_the_release():
    assert f"  where its release has share-groups: {SHARE}=2" in describe(find("two-brokers")).splitlines()
