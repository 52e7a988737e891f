"""What is read of a running testbed from outside: the live view, and a capture."""

import json

import pytest

from testbed.incidents.read import load
from testbed.kafka.types import TopicPartition
from testbed.reassignment.plan import Plan
from tests.containers.conftest import cli

pytestmark = pytest.mark.containers


def test_watch_shows_every_broker_with_its_rates(three):
    done = cli("watch", three.name, "--json", "--for", "4s")
    assert done.returncode == 0, done.stderr
    readings = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(readings) >= 3
    last = readings[-1]
    assert last["problem"] == "" and last["move"] is None
    assert [broker["host"] for broker in last["brokers"]] == ["b1", "b2", "b3"]
    for broker in last["brokers"]:
        assert broker["serves"] and broker["sent"] > 0 and broker["received"] > 0
        assert broker["sends_at_most"] == 50e6
    table = cli("watch", three.name, "--for", "1s").stdout
    assert "The controller lists no reassignment." in table and "SENDS MB/s" in table


def test_a_capture_of_a_plan_replays(three, tmp_path):
    with three.admin() as admin:
        admin.create_topic("captured", {p: [1, 2] for p in range(3)})
        try:
            plan = tmp_path / "plan.json"
            plan.write_text(Plan({TopicPartition("captured", 1): (3, 2)}).to_json())
            words = ("--bootstrap", ",".join(three.bootstrap), "--plan", str(plan), "--measure", "1s")
            done = cli("capture", "of-a-plan", *words, "--out", str(tmp_path / "made"))
            assert done.returncode == 0, done.stderr
            assert admin.reassignments() == {}
        finally:
            admin.delete_topic("captured")
    file = load(tmp_path / "made" / "incident.yaml")
    assert [list(topic.placement) for topic in file.broken.state.topics.values()] == [[("b1", "b2")] * 3]
    assert file.broken.entries[0].actions[0].hosts == [["b1", "b2"], ["b3", "b2"], ["b1", "b2"]]
