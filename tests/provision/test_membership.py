"""Hosts that join and leave: their declaration, their numbers, their links. Pure."""

import re
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from testbed.errors import KafkaStuck, TestbedError, UsageError
from testbed.network.addresses import AddressPlan
from testbed.network.fabric import shaped_devices, wire, wire_host
from testbed.owner import Owner
from testbed.provision import kafka_nodes, membership
from testbed.provision import state as states
from testbed.provision.containers import EngineGone
from testbed.provision.liveness import why_not_whole
from testbed.provision.membership import (
    add_host,
    joining,
    joining_brokers,
    kafka_of_alike,
    note_own_hosts,
    remove_host,
    require_whole_change,
)
from testbed.provision.upgrade import rolling_upgrade
from testbed.topology import TopologyError, load_document
from testbed.topology.find import find
from testbed.topology.host import Role
from tests.provision.states import make

S3 = find("s3")
PIDS = {"b1": 11, "b2": 22, "s1": 33, "b3": 44}


def test_a_broker_joins_like_the_last_one_with_a_node_id_and_a_number_of_its_own():
    (host,) = joining_brokers(S3, 1)
    assert (host.name, host.role, host.nic) == ("b3", Role.BROKER, S3.host("b2").nic)
    assert host.node_id not in {each.node_id for each in S3.hosts}
    grown = S3.with_host(host)
    assert grown.by_number == ("b1", "b2", "s1", "b3")
    assert {each.name: number for number, each in grown.numbered}["b3"] == 3


def test_a_broker_joins_with_the_build_that_the_others_run_whatever_their_path_has_now():
    """The folder may have been built again, or the testbed may have been upgraded."""
    topology, runs = S3.with_kafka_version("/src/kafka"), dict.fromkeys(("b1", "b2"), "4.3.1+0123456789ab")
    host = joining(topology, "b3", "b2")
    assert kafka_of_alike(host, topology, runs) == "4.3.1+0123456789ab"
    assert kafka_of_alike(replace(host, kafka_version="4.2.1"), topology, runs) is None


def test_a_joining_host_leaves_the_numbers_and_addresses_of_all_others():
    grown = S3.with_host(joining(S3, "b3", "b2"))
    shrunk = grown.without_host("b2")
    for topology in (grown, shrunk):
        plan = AddressPlan(3, topology.by_number)
        for name in ("b1", "s1", "b3"):
            assert plan.data_ip(name) == AddressPlan(3, grown.by_number).data_ip(name)
    assert [host.name for host in shrunk.hosts] == ["b1", "s1", "b3"]
    assert {each.device for each in shaped_devices(shrunk) if each.place == "s1"} == {"data0", "port2"}


def test_a_host_that_left_gets_its_own_place_again():
    b2 = S3.host("b2")
    again = S3.without_host("b2").with_host(b2)
    assert again.hosts == S3.hosts
    assert again.digest() == S3.digest()


def test_the_links_of_one_host_are_those_that_the_whole_fabric_has():
    grown = S3.with_host(joining(S3, "b3", "b2"))
    plan = AddressPlan(3, grown.by_number)
    whole = wire("mine", grown, plan, PIDS, 99)
    fabric, host = wire_host(grown, plan, "b3", PIDS["b3"])
    assert host == whole.hosts["b3"]
    assert set(fabric.ip) <= set(whole.fabrics[""].ip)
    assert set(fabric.commands) <= set(whole.fabrics[""].commands)
    assert set(fabric.tc) <= set(whole.fabrics[""].tc)
    without = wire("mine", S3, AddressPlan(3, S3.by_number), PIDS, 99)
    assert set(without.fabrics[""].ip) | set(fabric.ip) == set(whole.fabrics[""].ip)
    assert set(without.fabrics[""].tc) | set(fabric.tc) == set(whole.fabrics[""].tc)


@pytest.mark.parametrize(
    ("name", "like", "said"),
    [
        ("b2", "b1", "s3 has a host b2 already"),
        ("b3", "s1", "s1 is no broker of s3, only b1, b2"),
        ("b3", "b9", "b9 is no broker of s3"),
    ],
)
def test_what_cannot_join_is_refused_by_name(name, like, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        joining(S3, name, like)


def refusing(topology):
    return SimpleNamespace(name="one", topology=topology, state=None)


def test_only_a_broker_or_a_client_joins_or_leaves_and_nothing_is_made_otherwise():
    with pytest.raises(UsageError, match="only a broker or a client can join"):
        add_host(refusing(S3), replace(S3.host("s1"), name="s2"), print, print)
    for name, said in (
        ("s1", "s1 has the role objectstore"),
        ("b1", "b1 has the role both"),
        ("b9", "one has no host b9, only b1"),
    ):
        with pytest.raises(UsageError, match=re.escape(said)):
            remove_host(refusing(S3), name, print, print)


class FakeEngine:
    """An engine with these running hosts."""

    def __init__(self, *hosts):
        self._hosts = hosts

    def containers(self, _name):
        return [SimpleNamespace(host=host, id=host, running=True) for host in self._hosts]


def test_a_host_that_a_living_process_adds_need_not_run_and_one_that_a_dead_process_added_must():
    document = S3.with_host(joining(S3, "b3", "b2")).to_document()

    def state(owner):
        return SimpleNamespace(
            name="one",
            topology=document,
            changing={"b3": owner},
            owner=str(Owner.this_process()),
            ephemeral=False,
            machines={},
            machine_keys={},
        )

    engine = FakeEngine("", "b1", "b2", "s1")
    assert why_not_whole(engine, state(str(Owner.this_process()))) == ""
    assert "b3 has no running container" in why_not_whole(engine, state("1@1@another boot"))


def test_a_host_that_could_not_join_is_no_part_of_the_testbed_although_the_engine_has_stopped(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before = make("one", topology=S3.to_document(), kafka={"b1": "4.3.1", "b2": "4.3.1"})
    states.save(before)
    answers = [[]]

    def containers(_name):
        if not answers:
            raise EngineGone("the container engine stopped answering")
        return answers.pop()

    engine = SimpleNamespace(containers=containers, volumes=lambda _name: [])
    on = SimpleNamespace(name="one", topology=S3, state=before, hosts={}, plan=None, engine=engine, places=dict)

    def become(state):
        on.state, on.topology = state, load_document(dict(state.topology))

    on.become = become
    # There are no credentials, so it cannot be made; then it cannot be removed.
    why = "object store is used, cannot be read: .*; and b3 is not wholly removed: the container engine stopped"
    with pytest.raises(TestbedError, match=why):
        add_host(on, joining(S3, "b3", "b2"), print, print)
    for state in (on.state, states.load("one")):
        assert list(state.topology["hosts"]) == ["b1", "b2", "s1"]
        assert not state.changing


class Cluster:
    """A testbed of `s3` that is up; its broker b3 never serves, and a broker's shutdown may be interrupted."""

    def __init__(self, monkeypatch, stopping=None):
        self.name, self.hosts, self.plan, self.done, self.said = "one", {}, None, [], []
        kafka = dict.fromkeys(("b1", "b2"), "4.3.1")
        self.become(make("one", topology=S3.to_document(), kafka=kafka))
        states.save(self.state)
        monkeypatch.setattr(membership, "_make", lambda *_: self.done.append("made"))
        monkeypatch.setattr(membership, "_remove_container", lambda _testbed, name: self.done.append(f"{name} removed"))
        monkeypatch.setattr(membership, "_require_drained", lambda *_: None)
        monkeypatch.setattr(membership, "require_machine", lambda _topology: None)
        monkeypatch.setattr(kafka_nodes, "silent", lambda _testbed, _nodes: ["b3: not registered, or fenced"])
        self.software = SimpleNamespace(kafka=lambda _version: SimpleNamespace(start_s=0.0))
        self._stopping = stopping

    def become(self, state):
        self.state, self.topology = state, load_document(dict(state.topology))

    def record(self, state):
        self.state = state
        states.save(state)

    def admin(self):
        unregister = SimpleNamespace(unregister_broker=lambda number: self.done.append(f"{number} unregistered"))
        return nullcontext(unregister)

    def node(self, name):
        def stop():
            if self._stopping:
                raise self._stopping

        return SimpleNamespace(
            start=lambda: self.done.append(f"{name} started"),
            kill=lambda: self.done.append(f"{name} killed"),
            log_tail=lambda: "no such controller",
            stop=stop,
        )


def test_a_broker_that_never_registers_leaves_neither_container_nor_registration(tmp_path, monkeypatch):
    """It may have been registered and fenced: the cluster listed it without end. Its log went with its container."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    on = Cluster(monkeypatch)
    b3 = joining(S3, "b3", "b2")
    why = r"waited 0 s for b3 to be registered and to serve; .*the end of its log:\nno such controller"
    with pytest.raises(KafkaStuck, match=why):
        add_host(on, b3, on.said.append, print)
    assert on.said == ["provisioned", "started"]
    assert on.done == ["b3 removed", "made", "b3 started", "b3 removed", f"{b3.node_id} unregistered"]
    assert [host.name for host in on.topology.hosts] == ["b1", "b2", "s1"]
    assert not states.load("one").changing


def test_a_host_that_could_not_be_made_has_no_registration(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    on = Cluster(monkeypatch)

    def refuse(*_):
        raise TestbedError("container one-b3: the engine refused it")

    monkeypatch.setattr(membership, "_make", refuse)
    with pytest.raises(TestbedError, match="^container one-b3: the engine refused it$"):
        add_host(on, joining(S3, "b3", "b2"), on.said.append, print)
    assert on.done == ["b3 removed", "b3 removed"]


def test_ctrl_c_stays_ctrl_c_although_something_of_the_host_is_left(tmp_path, monkeypatch):
    """As an error it was a run that had ended early, and the next run of the campaign began."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    on = Cluster(monkeypatch)

    def interrupted(*_):
        def gone(*_):
            raise EngineGone("the container engine stopped answering")

        monkeypatch.setattr(membership, "_remove_container", gone)
        raise KeyboardInterrupt

    monkeypatch.setattr(membership, "_make", interrupted)
    with pytest.raises(KeyboardInterrupt):
        add_host(on, joining(S3, "b3", "b2"), print, on.said.append)
    assert on.said[-1].startswith("b3 is not wholly removed: the container engine stopped answering")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TestbedError("Kafka on b2 to end after SIGTERM")])
def test_a_broker_whose_shutdown_fails_or_is_interrupted_serves_again(tmp_path, monkeypatch, error):
    """The testbed that `--on` names had a broker less, and nothing started it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    on = Cluster(monkeypatch, stopping=error)
    with pytest.raises(type(error)):
        remove_host(on, "b2", print, print)
    assert on.done == ["b2 killed", "b2 started"]
    assert [host.name for host in on.topology.hosts] == ["b1", "b2", "s1"]
    assert not states.load("one").changing


def test_a_change_whose_command_was_killed_is_named_and_one_that_goes_on_is_not():
    assert make(changing={"b3": str(Owner.this_process())}).half_changed == ""
    killed = make(changing={"b3": "1@1@another boot"})
    assert killed.half_changed == "b3, which a killed command was adding or removing"


def test_hosts_that_a_run_has_not_put_back_are_named_once_it_is_dead(tmp_path, monkeypatch):
    """The broker of a killed `scale-out` was the testbed's own: the next run was refused for its number of brokers."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    on = Cluster(monkeypatch)
    note_own_hosts(on)
    monkeypatch.setattr(kafka_nodes, "silent", lambda _testbed, _nodes: [])
    add_host(on, joining(S3, "b3", "b2"), print, print)
    assert states.load("one").half_changed == ""
    dead = dict.fromkeys(on.state.own_hosts, "1@1@another boot")
    assert list(dead) == ["b1", "b2", "s1"]
    on.record(replace(on.state, own_hosts=dead))
    left = "b3, which a run added or removed and did not put back"
    assert states.load("one").half_changed == left
    with pytest.raises(
        TestbedError, match=f"testbed one has {left}: `testbed down one` and `testbed up` make it again"
    ):
        require_whole_change(on)
    on.hosts = dict.fromkeys(("b2", "b3"), SimpleNamespace(close=lambda: None))
    remove_host(on, "b3", print, print)
    assert states.load("one").half_changed == ""
    remove_host(on, "b2", print, print)
    assert states.load("one").half_changed == ""  # a user removed it: the killed run had nothing to put back


def test_what_another_command_changed_since_is_taken_over_before_a_host_leaves(tmp_path, monkeypatch):
    """Two commands attach; the first removes b2. The second must not write b2 into the state again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    stale = SimpleNamespace(name="one", topology=S3, state=make("one", topology=S3.to_document()))
    states.save(make("one", topology=S3.without_host("b2").to_document()))

    def become(state):
        stale.state, stale.topology = state, load_document(dict(state.topology))

    stale.become = become
    with pytest.raises(UsageError, match="one has no host b2, only b1, s1"):
        remove_host(stale, "b2", print, print)
    states.forget("one")
    with pytest.raises(TestbedError, match="testbed one was removed by another command"):
        add_host(stale, joining(S3, "b3", "b1"), print, print)


def test_an_upgrade_does_not_bring_back_a_host_that_has_left_since_it_was_attached(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    kafka = {"b1": "4.2.1", "b2": "4.2.1"}
    stale = SimpleNamespace(name="one", topology=S3, state=make("one", topology=S3.to_document(), kafka=kafka))
    states.save(make("one", topology=S3.without_host("b2").to_document(), kafka={"b1": "4.2.1"}))

    def become(state):
        stale.state, stale.topology = state, load_document(dict(state.topology))

    stale.become = become
    with pytest.raises(UsageError, match="b2 cannot be upgraded; hosts of one that run Kafka: b1"):
        rolling_upgrade(stale, "4.3.1", ["b2"])
    states.forget("one")
    with pytest.raises(TestbedError, match="testbed one was removed by another command"):
        rolling_upgrade(stale, "4.3.1")


def test_addresses_of_removed_hosts_are_not_given_out_without_end():
    """A hundred hosts of other names have joined and left: the next one would have no address."""
    topology = replace(S3, places=("b1", "b2", "s1", *(f"x{number}" for number in range(97))))
    with pytest.raises(TopologyError, match=r"hosts: 101 hosts were given an address.*allowed: 100, or the name of a"):
        topology.with_host(joining(topology, "b3", "b2"))
    assert topology.with_host(joining(topology, "x7", "b2")).by_number == topology.by_number
