"""The cluster plug-in's decisions, without testbeds."""

import json

import pytest
import zmq
from ducktape.tests.runner import Receiver

from ducktests import cluster as module
from ducktests.cluster import TestbedCluster
from ducktests.options import Options, read_options
from testbed.errors import TestbedError, UsageError
from tests.provision.states import make


class FakeTestbed:
    def __init__(self, name):
        self.name = name

    def close(self):
        pass


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(module.atexit, "register", lambda _call: None)
    return TestbedCluster()


def asked(topology, hosts):
    return module.framework.spec([topology] * hosts)


def count(spec, topology):
    return module.framework.types_of(spec).count(topology)


def test_every_ready_topology_is_offered_while_nothing_runs(cluster):
    assert count(cluster.available(), "two-brokers") == 2
    assert count(cluster.available(), "three-brokers") == 3
    assert len(cluster) == cluster.all().size() > 5
    assert cluster.used().size() == 0


def test_a_testbed_that_cannot_be_made_is_a_problem_of_its_nodes_and_ends_no_session(cluster, monkeypatch, capsys):
    def fail(_self, _topology):
        raise TestbedError("no disk\nat all")

    monkeypatch.setattr(TestbedCluster, "_standing", lambda _self, _topology: None)
    monkeypatch.setattr(TestbedCluster, "_make", fail)
    nodes = cluster.alloc(asked("two-brokers", 2))
    assert [node.problem for node in nodes] == ["no disk\nat all"] * 2
    assert capsys.readouterr().out == "testbed: no testbed two-brokers: no disk at all\n"
    # Two tests at once would measure each other.
    assert cluster.available().size() == 0
    assert cluster.all().size() == len(cluster)
    cluster.free(nodes)
    assert count(cluster.available(), "two-brokers") == 2
    assert cluster.max_used() == 2


def test_a_testbed_whose_hosts_a_killed_test_was_changing_is_not_used_again(cluster, monkeypatch, capsys):
    """Each later test of its topology was refused: it had one broker too many."""
    half, removed = FakeTestbed("suite-1"), []
    half.state = make(changing={"b3": "1@1@another boot"})
    monkeypatch.setattr(module.Testbed, "attach", lambda _name: half)
    monkeypatch.setattr(cluster, "_remove", removed.append)
    cluster._made = {"two-brokers": "suite-1"}
    assert cluster._standing("two-brokers") is None
    assert removed == [["two-brokers"]]
    assert "testbed suite-1 has b3, which a killed command was adding or removing" in capsys.readouterr().out
    cluster._made.clear()


@pytest.mark.parametrize("types", [[None] * 3, ["two-brokers", "three-brokers"], ["three-brokers", None]])
def test_a_test_that_names_no_topology_or_several_fails_alone(cluster, types, capsys):
    nodes = cluster.alloc(module.framework.spec(types))
    assert len(nodes) == len(types)
    assert all("the hosts of one topology" in node.problem for node in nodes)
    assert 'node_type="three-brokers"' in capsys.readouterr().out
    cluster.free(nodes)
    # A test without nodes needs no testbed.
    assert cluster.alloc(module.framework.spec([])) == []
    assert cluster.all().size() == len(cluster)


def test_a_testbed_named_in_the_file_that_is_not_up_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"on": {"two-brokers": "nowhere"}}))
    monkeypatch.setattr(module.atexit, "register", lambda _call: None)
    nodes = TestbedCluster(str(file)).alloc(asked("two-brokers", 2))
    assert "there is no testbed nowhere" in nodes[0].problem


def test_a_testbed_that_could_not_be_removed_is_tried_again(cluster, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    cluster._made = {"two-brokers": "suite-aa"}
    answers = [TestbedError("the engine does not answer"), None]

    def remove(_engine, _name):
        if answer := answers.pop(0):
            raise answer

    monkeypatch.setattr(module, "Engine", lambda: FakeTestbed("engine"))
    monkeypatch.setattr(module, "remove", remove)
    with pytest.raises(TestbedError, match="the engine does not answer"):
        cluster._remove(["two-brokers"])
    assert cluster._made == {"two-brokers": "suite-aa"}
    cluster._remove(["two-brokers"])
    assert (cluster._made, answers) == ({}, [])


def test_a_topology_of_automq_is_made_with_it_whatever_kafka_is_asked_for(cluster, monkeypatch):
    made = []
    monkeypatch.setattr(module.Testbed, "up", staticmethod(lambda topology, **_rest: made.append(topology)))
    monkeypatch.setattr(TestbedCluster, "_remove", lambda _self, _topologies: None)
    cluster._options = Options(kafka="4.2.1")
    cluster._make("automq")
    cluster._make("s3")
    automq, apache = made
    assert automq.automq is not None
    assert {host.kafka_version for host in apache.brokers} == {"4.2.1"}


def test_ducktape_listens_on_the_loopback_only(cluster):
    receiver = Receiver(5556, 5656)
    try:
        receiver.start()
        assert receiver.socket.getsockopt_string(zmq.LAST_ENDPOINT) == f"tcp://127.0.0.1:{receiver.port}"
    finally:
        receiver.close()


def test_what_was_made_is_removed_when_ducktape_ends_and_not_when_a_test_does(cluster, monkeypatch):
    down = []
    monkeypatch.setattr(module.subprocess, "run", lambda command, **_rest: down.append(command[3:]))
    cluster._made["two-brokers"] = "suite-abcdef"
    cluster._remove_all()
    assert down == [["testbed.cli.main", "down", "suite-abcdef"]]
    cluster._process += 1
    cluster._remove_all()
    assert len(down) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"kafak": "4.3.1"}', "kafak"),
        ('{"kafka": 4}', "kafka: expected"),
        ("{", "not a JSON document"),
        ('{"on": ["x"]}', "on: expected an object"),
    ],
)
def test_mistakes_in_the_cluster_file_are_named(tmp_path, text, words):
    file = tmp_path / "cluster.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=words):
        read_options(str(file))


def test_a_cluster_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nothing\.json: No such file"):
        read_options(str(tmp_path / "nothing.json"))


def test_without_a_cluster_file_everything_is_made():
    assert read_options(None) == Options()
