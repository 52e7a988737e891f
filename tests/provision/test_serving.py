"""Kafka that does not serve: an error that says Kafka is the cause."""

from types import SimpleNamespace

import pytest

from testbed.errors import KafkaStuck
from testbed.provision import serving
from tests.provision.states import make


@pytest.mark.parametrize(
    ("pid", "told"), [(7, "last seen: \\['b1: not registered, or fenced'\\]"), (None, "Kafka on b1 does not run")]
)
def test_a_broker_that_does_not_serve_or_has_ended_is_kafkas_doing(monkeypatch, pid, told):
    node = SimpleNamespace(pid=lambda: pid, log_tail=lambda: "OutOfMemoryError")
    topology = SimpleNamespace(hosts=(SimpleNamespace(name="b1", node_id=1),))
    testbed = SimpleNamespace(name="t", topology=topology, node=lambda _host: node)
    monkeypatch.setattr(serving, "silence", lambda _testbed, nodes: dict.fromkeys(nodes, "not registered, or fenced"))
    with pytest.raises(KafkaStuck, match=told):
        serving.wait_serving(testbed, timeout_s=0)


def test_a_testbed_is_configured_when_nothing_is_to_be_restarted():
    has = {"overlay": {"a": "1"}, "defects": {"b1": ("x",)}}
    whole, restarting = (SimpleNamespace(state=make(**has, **more)) for more in ({}, {"restarting": "1@1@x"}))
    assert serving.is_configured(whole, {"a": "1"}, {"b1": ("x",)})
    assert not serving.is_configured(whole, {}, {"b1": ("x",)})
    assert not serving.is_configured(whole, {"a": "1"}, {})
    assert not serving.is_configured(restarting, {"a": "1"}, {"b1": ("x",)})
