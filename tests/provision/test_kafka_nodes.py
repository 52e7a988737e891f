"""Kafka nodes that do not serve, differ from what was declared, or are to have other properties."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from testbed.errors import KafkaStuck, TestbedError
from testbed.provision import kafka_nodes
from testbed.provision import state as states
from testbed.provision.containers import Engine
from testbed.provision.testbed import Testbed
from testbed.topology.find import find
from tests.provision.states import make


@pytest.mark.parametrize(
    ("pid", "told"), [(7, "last seen: \\['b1: not registered, or fenced'\\]"), (None, "Kafka on b1 does not run")]
)
def test_a_broker_that_does_not_serve_or_has_ended_is_kafkas_doing(monkeypatch, pid, told):
    node = SimpleNamespace(pid=lambda: pid, log_tail=lambda: "OutOfMemoryError")
    topology = SimpleNamespace(hosts=(SimpleNamespace(name="b1", node_id=1),))
    testbed = SimpleNamespace(name="t", topology=topology, node=lambda _host: node)
    silent = "not registered, or fenced"
    monkeypatch.setattr(kafka_nodes, "silence", lambda _testbed, nodes: dict.fromkeys(nodes, silent))
    with pytest.raises(KafkaStuck, match=told):
        kafka_nodes.wait_serving(testbed, timeout_s=0)


def test_a_testbed_is_configured_when_nothing_is_to_be_restarted():
    has = {"overlay": {"a": "1"}, "defects": {"b1": ("x",)}}
    whole, restarting = (SimpleNamespace(state=make(**has, **more)) for more in ({}, {"restarting": "1@1@x"}))
    assert kafka_nodes.is_configured(whole, {"a": "1"}, {"b1": ("x",)})
    assert not kafka_nodes.is_configured(whole, {}, {"b1": ("x",)})
    assert not kafka_nodes.is_configured(whole, {"a": "1"}, {})
    assert not kafka_nodes.is_configured(restarting, {"a": "1"}, {"b1": ("x",)})


def test_properties_do_not_change_while_another_command_changes_the_testbed(tmp_path, monkeypatch):
    """A run and an upgrade at once: each saved the state of before, and hosts had another Kafka than the state said."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    topology, old, new = find("two-brokers"), {"b1": "4.2.1", "b2": "4.2.1"}, {"b1": "4.3.1", "b2": "4.3.1"}
    keys = {host.name: "ssh-ed25519 AAAA" for host in topology.hosts}
    state = make(topology=topology.to_document(), host_keys=keys, kafka=old)
    states.save(state)
    testbed, seen = Testbed(state, Engine()), []
    monkeypatch.setattr(
        kafka_nodes, "reconfigure", lambda testbed, *words: seen.append((testbed.state.kafka, *words[:2]))
    )
    with states.lock("one"), pytest.raises(TestbedError, match="another command is changing `one` right now"):
        testbed.reconfigure({"a": "1"})
    assert seen == []
    states.save(replace(state, kafka=new))
    testbed.reconfigure({"a": "1"})
    assert seen == [(new, {"a": "1"}, {})]


GIVEN = {
    "elasticstream.enable": "true",
    "autobalancer.controller.enable": "false",
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
}


def test_a_broker_that_goes_by_what_it_was_given_differs_in_nothing():
    assert kafka_nodes.compared("b1", GIVEN, GIVEN) == ([], [])


def test_each_setting_that_is_otherwise_is_named_with_both_values():
    wrong, unknown = kafka_nodes.compared("b1", GIVEN, {**GIVEN, "autobalancer.controller.enable": "true"})
    assert wrong == ["b1 has autobalancer.controller.enable=true, was given false"]
    assert unknown == []


def test_what_a_broker_does_not_report_is_not_taken_for_right():
    reported = {key: value for key, value in GIVEN.items() if "autobalancer" not in key}
    assert kafka_nodes.compared("b1", GIVEN, reported) == ([], ["autobalancer.controller.enable"])
