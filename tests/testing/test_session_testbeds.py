"""One testbed for each topology and process, restored or replaced between tests."""

import os
from types import SimpleNamespace

import docker
import pytest

from testbed.errors import TestbedError, UsageError
from testbed.testing import session_testbeds
from testbed.testing.session_testbeds import SessionTestbeds
from testbed.testing.shaped_kafka import ShapedHost, ShapedKafka
from testbed.topology import loads
from testbed.topology.find import find


class FakeTestbed:
    def __init__(self, topology, name, ephemeral):
        self.topology_name, self.name, self.ephemeral, self.done = topology, name, ephemeral, []
        self.topology, self.state = find("two-brokers"), SimpleNamespace(kafka={"b1": "4.3.1"})
        self.bootstrap = ("198.19.0.11:9092", "198.19.0.12:9092")
        self.faults = SimpleNamespace(clear=lambda: self.done.append("heal"))
        self.differences, self.dead, self.stuck, self.made_here = [], False, False, True

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        if self.made_here:
            self.down()
        self.close()

    def reconfigure(self, overlay, *, defects):
        self.done.append(f"reconfigure {overlay} {defects}")

    def shaping_differences(self):
        return self.differences

    def start_kafka(self):
        self.done.append("start")
        if self.dead:
            raise TestbedError("b1 is dead")

    def down(self):
        self.done.append("down")
        if self.stuck:
            raise TestbedError(f"{self.name} does not go")

    def close(self):
        self.done.append("close")


@pytest.fixture(autouse=True)
def no_engine(monkeypatch):
    monkeypatch.setattr(session_testbeds, "remove_dead_sessions", lambda: None)


@pytest.fixture
def testbeds():
    return SessionTestbeds("gw1", FakeTestbed)


def test_a_topology_has_one_testbed_and_faults_of_a_test_are_healed(testbeds):
    one, two = testbeds.get("two-brokers"), testbeds.get("three-brokers")
    assert (one.topology_name, two.topology_name) == ("two-brokers", "three-brokers")
    assert testbeds.get("two-brokers") is one
    assert one.done == ["heal", "reconfigure {} {}", "start"]
    assert one.ephemeral
    assert one.name != two.name
    assert "-gw1-" in one.name
    assert len(one.name) <= 32


@pytest.mark.parametrize(
    "damage",
    [
        {"differences": ["b1: rate"]},
        {"dead": True},
        {"topology": find("three-brokers")},  # a test has added a broker
        {"state": SimpleNamespace(kafka={"b1": "9.9.9"})},  # a test has upgraded one
    ],
)
def test_a_testbed_that_cannot_be_restored_is_replaced(testbeds, damage):
    one = testbeds.get("two-brokers")
    vars(one).update(damage)
    other = testbeds.get("two-brokers")
    assert other is not one
    assert other.name != one.name
    assert one.done[-2:] == ["down", "close"]


def test_the_end_removes_every_testbed_also_after_an_error(testbeds):
    one, two = testbeds.get("two-brokers"), testbeds.get("three-brokers")
    one.stuck = True
    with pytest.raises(TestbedError, match="does not go"):
        testbeds.close()
    assert one.done[-1] == two.done[-1] == "close"


def test_a_topology_that_cannot_be_provisioned_is_tried_again():
    names = []

    def refuse(topology, name, ephemeral):
        names.append(name)
        raise TestbedError("no engine")

    testbeds = SessionTestbeds("main", refuse)
    for _ in range(2):
        with pytest.raises(TestbedError, match="no engine"):
            testbeds.get("two-brokers")
    testbeds.close()
    assert len(set(names)) == 2


def test_shaped_kafka_around_a_running_testbed_leaves_it_up():
    testbed = FakeTestbed("two-brokers", "one", False)
    with ShapedKafka.of(testbed) as kafka:
        assert kafka.get_bootstrap_server() == kafka.bootstrap_servers == "198.19.0.11:9092,198.19.0.12:9092"
        with pytest.raises(UsageError, match="has no broker 9; its brokers are 1, 2"):
            kafka.broker(9)
        with pytest.raises(UsageError, match="has no host b9; its hosts are b1, b2"):
            kafka.host("b9")
    assert testbed.done == []
    with pytest.raises(UsageError, match="does not run"):
        kafka.bootstrap_servers  # noqa: B018


def test_shaped_kafka_removes_what_it_made_once(monkeypatch):
    made = []

    def up(topology, name, ephemeral):
        made.append(FakeTestbed(topology, name, ephemeral))
        return made[0]

    monkeypatch.setattr("testbed.testing.shaped_kafka.UserTestbed", SimpleNamespace(up=up))
    with pytest.raises(ValueError), ShapedKafka("two-brokers") as kafka:
        raise ValueError
    kafka.stop()
    assert [each.done for each in made] == [["down", "close"]]
    assert made[0].ephemeral


def test_shaped_kafka_of_the_name_of_a_testbed_that_was_up_leaves_it_up(monkeypatch):
    testbed = FakeTestbed("two-brokers", "mine", False)
    testbed.made_here = False
    monkeypatch.setattr("testbed.testing.shaped_kafka.UserTestbed", SimpleNamespace(up=lambda *_a, **_n: testbed))
    with ShapedKafka("two-brokers", name="mine") as kafka:
        assert kafka.testbed is testbed
    assert testbed.done == ["close"]


def with_container(topology):
    containers = lambda _name: [SimpleNamespace(id="c1", host="b1")]  # noqa: E731
    return SimpleNamespace(name="t", topology=topology, engine=SimpleNamespace(containers=containers))


@pytest.mark.parametrize("address", [None, "unix:///run/podman/podman.sock"])
def test_a_host_is_on_the_testbeds_engine_whatever_engine_testcontainers_prefers(monkeypatch, address):
    """A docker context or ~/.testcontainers.properties names another one; testcontainers sets DOCKER_HOST to it."""
    monkeypatch.setattr(
        "testcontainers.core.docker_client.get_docker_host", lambda: "unix:///run/user/1000/docker.sock"
    )
    monkeypatch.delenv("DOCKER_AUTH_CONFIG", raising=False)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    if address is not None:
        monkeypatch.setenv("DOCKER_HOST", address)
    asked = []

    def from_env(**given):
        asked.append(given["environment"]["DOCKER_HOST"])
        container = SimpleNamespace(attrs={"Config": {"Image": "node"}})
        return SimpleNamespace(api=SimpleNamespace(headers={}), containers=SimpleNamespace(get=lambda _id: container))

    monkeypatch.setattr(docker, "from_env", from_env)
    assert ShapedHost(with_container(find("two-brokers")), "b1").image == "node"
    assert asked == [address or "unix:///var/run/docker.sock"]
    assert os.environ.get("DOCKER_HOST") == address


ELSEWHERE = """
name: elsewhere
{more}
kafka: {{version: 4.3.1}}
defaults: {{nic: {{rate: 100mbit{device}}}}}
hosts: {{b1: {{role: both{where}}}}}
"""


@pytest.mark.parametrize(
    "text",
    [
        ELSEWHERE.format(
            more="provision: inventory", device=", device: eth1", where=", nic: {address: 10.0.0.5}, ssh: {user: root}"
        ),
        ELSEWHERE.format(more='machines: {m2: {engine: "ssh://root@10.0.0.5"}}', device="", where=", machine: m2"),
    ],
    ids=("a machine that exists", "another machine's engine"),
)
def test_a_host_that_is_no_container_of_this_machine_is_refused(text):
    with pytest.raises(UsageError, match=r"b1 is no container of this machine's engine; `testbed.hosts\['b1'\]` runs"):
        ShapedHost(with_container(loads(text)), "b1")
