"""Every scenario of KIP-455, taken on a controller in memory that goes by KRaft's rules, and judged as a run is."""

from dataclasses import replace

import pytest

import testbed.experiments.kip455_executor as executor_module
from results.contract.logs import HostLog
from results.contract.manifest import Facts
from results.contract.schema import Event, Sample, events_table, samples_table
from results.contract.steps import StepsRecord
from results.criteria import judge
from testbed.experiments.kip455_actions import KILL_CONTROLLER, end, reassign, step, still
from testbed.experiments.kip455_executor import Kip455Scenario
from testbed.experiments.kip455_trace import differences, log_events
from testbed.kafka.types import TopicPartition
from tests.experiments.kip455_cluster import TOPIC, take
from tests.experiments.test_kip455 import NAMES, scenario
from tests.fakes.kraft_log import KraftLog
from tests.results.synthetic import plain_run

IN_MEMORY = [name for name in NAMES if name != "kip455-override-failover"]


@pytest.fixture(autouse=True)
def faults_of_the_fake(monkeypatch):
    monkeypatch.setattr("testbed.experiments.kip455_actions.Faults", lambda testbed: testbed.faults)


def run(found: Kip455Scenario, name="kip455-example"):
    """Take the steps and judge them; settling times are left out."""
    kraft = KraftLog(range(1, 7))
    steps = [replace(each, settle_s=min(each.settle_s, 0.2), timeout_s=2.0) for each in found.steps]
    records, recorder = take(replace(found, steps=steps, bytes=0), kraft, kraft.kill, kraft.live, settled=True)
    history = kraft.history()
    events: list[Event] = [*recorder.events(), *log_events(history, [TOPIC])]
    there = {tp: kraft.partitions([tp.topic])[tp] for tp in kraft.now}
    assert differences(history, there, [TOPIC]) == []
    manifest = replace(
        plain_run().manifest,
        experiment=name,
        move=None,
        facts=Facts(logs=(HostLog("b1"),)),
        steps=StepsRecord((TOPIC,), tuple(records), True),
    )
    samples = samples_table([Sample(records[0].from_us, "machine", "cpu.busy", 0.1)])
    return judge(manifest, samples, events_table(events)), kraft


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(executor_module, "POLL_S", 0.01)


@pytest.mark.parametrize("name", IN_MEMORY)
def test_every_step_is_as_the_rules_have_it(name):
    judgement, kraft = run(scenario(name), name)
    assert [(c.name, c.expected, c.observed, c.why) for c in judgement.criteria if c.verdict != "pass"] == []
    assert kraft.configs == {}
    assert not any(p.adding or p.removing for p in kraft.now.values())


def test_the_failover_s_moves_are_as_the_rules_have_it_without_one():
    found = scenario("kip455-override-failover")
    steps = [each for each in found.steps if each.action is not KILL_CONTROLLER]
    judgement, _kraft = run(replace(found, steps=steps), "kip455-override-failover")
    assert {c.verdict for c in judgement.criteria} == {"pass"}


def test_what_a_scenario_kills_is_said_to_be_its_own(monkeypatch):
    kraft = KraftLog(range(1, 7))
    found = scenario("kip455-cancel")
    monkeypatch.setattr("testbed.experiments.kip455_actions.active_controller", lambda _testbed: "b2")
    steps = [found.steps[0], step("controller-down", KILL_CONTROLLER)]
    _records, recorder = take(replace(found, steps=steps, bytes=0), kraft, kraft.kill, kraft.live)
    killed = [(each.kind, each.host) for each in recorder.events() if each.kind.endswith(".killed")]
    assert killed == [("broker.killed", "b5"), ("controller.killed", "b2")]


def test_a_log_that_a_cancellation_leaves_is_found(monkeypatch):
    monkeypatch.setattr(executor_module, "DELETED_S", 0.1)
    monkeypatch.setattr(KraftLog, "_logs", lambda self, broker: [tp for tp in self.now if broker in (1, 2, 3, 4)])
    judgement, _kraft = run(scenario("kip455-cancel"), "kip455-cancel")
    [found] = [c for c in judgement.criteria if c.verdict == "fail"]
    assert (found.name, found.why) == (
        "logs-as-placed",
        "broker 4 has a log of partition 0, which has replicas on 1, 2, 3",
    )


def test_another_end_is_found_out():
    found = Kip455Scenario([step("asked", reassign(4, 2, 3), None, end("done", still((2, 3, 4), ordered=True)))])
    judgement, kraft = run(replace(found, hold_bytes_per_s=None))
    assert [c.name for c in judgement.criteria if c.verdict == "fail"] == ["1-asked.done", "steps-in-time"]
    assert kraft.now[TopicPartition(TOPIC, 0)].replicas == (4, 2, 3)
