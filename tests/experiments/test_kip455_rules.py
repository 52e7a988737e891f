"""Every scenario of KIP-455, taken on a controller in memory that goes by KRaft's rules, and judged as a run is."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `fakes`

from fakes.kraft_log import KraftLog

import testbed.experiments.kip455_executor as executor_module
from results.contract.logs import HostLog
from results.contract.manifest import Facts
from results.contract.schema import Event, Sample, events_table, samples_table
from results.contract.steps import StepsRecord
from results.criteria import judge
from testbed.experiments.kip455_actions import KillController, ScenarioStep, end, reassign, still
from testbed.experiments.kip455_executor import Kip455Executor, Kip455Scenario
from testbed.experiments.kip455_trace import differences, log_events
from testbed.kafka.types import TopicPartition
from testbed.probes.recorder import Recorder
from tests.experiments.test_kip455 import NAMES, scenario
from tests.results.synthetic import plain_run

IN_MEMORY = [name for name in NAMES if name != "kip455-override-failover"]


@pytest.fixture(autouse=True)
def faults_of_the_fake(monkeypatch):
    monkeypatch.setattr("testbed.experiments.kip455_executor.Faults", lambda testbed: testbed.faults)


class Faults:
    """Kills are the controller's."""

    def __init__(self, kraft):
        self.kraft, self.down = kraft, []

    def add(self, fault):
        self.down.append(int(fault.host.removeprefix("b")))
        self.kraft.kill(self.down[-1])
        return len(self.down)

    def clear(self, _number):
        self.kraft.live.add(self.down.pop())


def run(found: Kip455Scenario, name="kip455-example"):
    """Take the steps and judge them; settling times are left out."""
    kraft, recorder = KraftLog(range(1, 7)), Recorder()
    testbed = SimpleNamespace(
        topology=SimpleNamespace(brokers=[SimpleNamespace(name=f"b{i}", node_id=i) for i in range(1, 7)]),
        admin=lambda **_named: kraft,
        faults=Faults(kraft),
        bootstrap=("fake:9092",),
    )
    context = SimpleNamespace(testbed=testbed, recorder=recorder, progress=lambda _text: None, run_id="x-abc123")
    steps = [replace(step, settle_s=min(step.settle_s, 0.2), timeout_s=2.0) for step in found.steps]
    with Kip455Executor(context, replace(found, steps=steps, bytes=0)) as executor:
        executor.prepare()
        records = executor.walk()
        recorder.stop()
    history = kraft.history()
    events: list[Event] = [*recorder.events(), *log_events(history, [executor.topic])]
    there = {tp: kraft.partitions([tp.topic])[tp] for tp in kraft.now}
    assert differences(history, there, [executor.topic]) == []
    manifest = replace(
        plain_run().manifest,
        experiment=name,
        move=None,
        facts=Facts(logs=(HostLog("b1"),)),
        steps=StepsRecord((executor.topic,), tuple(records), True),
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
    steps = [step for step in found.steps if not isinstance(step.action, KillController)]
    judgement, _kraft = run(replace(found, steps=steps), "kip455-override-failover")
    assert {c.verdict for c in judgement.criteria} == {"pass"}


def test_another_end_is_found_out():
    found = Kip455Scenario(
        [(1, 2, 3)], [ScenarioStep("asked", reassign(4, 2, 3), (end("done", still((2, 3, 4), ordered=True)),))]
    )
    judgement, kraft = run(replace(found, hold_bytes_per_s=None))
    assert [c.name for c in judgement.criteria if c.verdict == "fail"] == ["1-asked.done"]
    assert kraft.now[TopicPartition("kip455-abc123", 0)].replicas == (4, 2, 3)
