"""A broker that did not serve when a cluster was captured does not serve in the replay."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from testbed.incidents.capture import BrokerOutage, CapturedCluster, CapturedTopic, capture
from testbed.incidents.captured_file import BEGIN_S, INCIDENT, incident_document, write_capture
from testbed.incidents.read import load
from testbed.incidents.scale_down import scale_down
from testbed.kafka.types import TopicPartition
from testbed.reassignment.plan import Plan
from tests.fakes.admin import FakeAdmin

ORDERS = TopicPartition("orders", 0)
SESSION_S = 9
"""Kafka's default of `broker.session.timeout.ms`."""


def test_a_plan_that_names_a_dead_broker_is_replayed_without_that_broker(tmp_path):
    admin = FakeAdmin({ORDERS: (1, 2), TopicPartition("orders", 1): (2, 1)})
    found = capture(admin, plan=Plan({ORDERS: (7, 2)}), measure_s=0.01)
    assert found.outages == (BrokerOutage(7, -1.0, None),)
    assert "brokers [7] did not serve; the replay stops them before the first move" in found.notes
    small = scale_down(found, 4, 10**9)
    document, _lost = incident_document("dead", small, 10**9)
    entries = {each["name"]: each for each in document["timeline"] if "name" in each}
    assert entries["stop-1"]["do"] == {"broker_kill": {"host": "b4"}} and "return-1" not in entries
    write_capture(tmp_path / "c", "dead", small, 10**9, datetime(2026, 11, 24, tzinfo=UTC))
    begins_s = {entry.name: entry.trigger.seconds for entry in load(tmp_path / "c" / INCIDENT).broken.entries[:2]}
    assert begins_s["move"] - begins_s["stop-1"] > SESSION_S


@pytest.mark.parametrize("stopped_s", [-0.5, -9.0, -86_400.0])
def test_a_broker_that_stopped_before_the_move_is_fenced_when_it_begins(stopped_s):
    moves = CapturedTopic(((1, 2),), ((3, 2),), (10**6,), (0.0,))
    found = CapturedCluster(dict.fromkeys((1, 2, 3)), {"t": moves}, 4_000_000)
    found = replace(found, outages=(BrokerOutage(3, stopped_s, 30.0),))
    document, _lost = incident_document("x", found, 10**9)
    at = {each["name"]: each["at"] for each in document["timeline"] if "name" in each}
    assert (at["stop-1"], at["move"], at["return-1"]) == ("1s", f"{BEGIN_S}s", f"{BEGIN_S + 30}s")
    assert BEGIN_S - 1 > SESSION_S
