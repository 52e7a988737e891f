"""`testbed replay`, as far as it needs no engine."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from results.contract.store import RunData
from results.criteria import judge
from results.criteria.findings import finding
from results.criteria.step_measures import UNREAD
from testbed.cli.main import main
from testbed.errors import TestbedError
from testbed.incidents import replay as replay_module
from testbed.incidents.replay import IncidentScenario, ReplayResult
from testbed.probes.recorder import Recorder
from tests.incidents.files import SMALL
from tests.provision.states import make
from tests.results.synthetic import synthetic_run


@pytest.fixture(autouse=True)
def no_engine(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    for variable in ("XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))


def test_a_dry_run_says_what_would_happen_when(capsys):
    assert main(["replay", "move-before-quota", "--dry-run", "--variant", "broken", "--set", "throttle=8MB/s"]) == 0
    shown = capsys.readouterr().out
    assert "  at 2s: move\n      do move orders to b2\n      expect throttle in force before the move\n" in shown
    assert "  at 4s: throttle\n      do set throttle 8MB/s for orders\n" in shown
    assert "the fixed variant" not in shown


def test_an_incident_may_be_replayed_on_another_release(capsys):
    assert main(["replay", "move-before-quota", "--dry-run", "--variant", "fixed", "--kafka", "4.1.1"]) == 0
    assert "brokers b1, b2, Kafka 4.1.1\n" in capsys.readouterr().out


def test_a_dry_run_of_a_file_shows_both_variants(capsys, tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    assert main(["replay", str(file), "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "  when isr of clicks < 2, 2s later (may not come): alarm" in shown
    assert "  after move 50% (by 30s): lost" in shown
    assert "load: 1MB/s to clicks, in records of 4KiB" in shown
    assert shown.count("the expected outcome") == 2


def test_every_mistake_of_a_file_is_shown_with_its_place(capsys, tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(SMALL.replace("at: 2s", "at: 2"))
    assert main(["replay", str(file), "--dry-run"]) == 64
    shown = capsys.readouterr().err
    assert f"{file}:15:9: timeline[0].at: 2 has no unit" in shown
    file.write_text(SMALL.replace("broker_kill: {host: b3}", "broker_kill: {host: b8}"))
    assert main(["replay", str(file), "--dry-run"]) == 64
    assert f"{file}:24:23: timeline[2].do.broker_kill: broker-kill host=b8: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["replay", "move-befor-quota"], "did you mean move-before-quota?"),
        (["replay", "move-before-quota", "--set", "throttle"], "expected NAME=VALUE, such as throttle=5MB/s"),
        (["replay", "move-before-quota", "--set", "throtle=5MB/s"], "there is no parameter throtle"),
        (["replay", "move-before-quota", "--set", "throttle=5"], "5 has no unit"),
        (
            ["replay", "move-before-quota", "--set", "throttle=5MB/s", "--set", "throttle=6MB/s"],
            "throttle is set twice: 5MB/s and 6MB/s; leave one out",
        ),
        (["replay", "move-before-quota", "--seed", "-1"], "allowed: 0 or more"),
        (["replay", "move-before-quota", "--dry-run", "--json"], "--dry-run prints text"),
        (["replay", "move-before-quota", "--repeats", "0"], "allowed: 1 or more"),
    ],
)
def test_refusals_say_what_is_allowed(words, shown, capsys):
    assert main(words) == 64
    assert shown in capsys.readouterr().err


def test_without_an_engine_nothing_is_begun(capsys):
    assert main(["replay", "move-before-quota"]) == 70
    assert "testbed doctor --fix" in capsys.readouterr().err


def test_a_testbed_with_a_host_that_a_killed_command_was_adding_is_named(capsys, monkeypatch):
    """The message was that the testbed has the topology of the incident's name."""
    testbed = SimpleNamespace(name="one", state=make(changing={"b9": "1@1@another boot"}), close=lambda: None)
    monkeypatch.setattr("testbed.provision.testbed.Testbed.attach", lambda _name: testbed)
    assert main(["replay", "move-before-quota", "--on", "one"]) == 70
    assert "testbed one has b9, which a killed command was adding or removing: `testbed" in capsys.readouterr().err


def test_a_replay_that_ends_early_leaves_an_inconclusive_run_and_its_reason(capsys, monkeypatch, tmp_path):
    """It ended in a traceback, and the command named neither the run nor the reason."""
    run, why = synthetic_run(), "preload: nothing came for 60 s"

    def run_on(_testbed, experiment, _settings, _profile, run_id, store, _progress):
        made = replace(run.manifest, run_id=run_id, experiment=experiment.name, move=None, failure=why)
        judgement = judge(made, run.samples, run.events)
        made = replace(made, verdict=judgement.verdict)
        store.commit(RunData(made, run.samples, run.events, list(judgement.criteria)))
        return judgement

    monkeypatch.setattr(replay_module, "_testbed", lambda *_: None)
    monkeypatch.setattr(replay_module, "run_on", run_on)
    assert main(["replay", "move-before-quota", "--store", str(tmp_path / "store")]) == 2
    shown = capsys.readouterr().out
    assert why in shown and "INCONCLUSIVE  incident-move-before-quota  broken" in shown
    assert "not as the file expects: could not be judged: " in shown


def test_records_that_cannot_be_read_back_lose_nothing_else(monkeypatch):
    def audit(*_args, **_named):
        raise TestbedError("audit: 1 partition was not read to the end")

    monkeypatch.setattr(replay_module, "audit", audit)
    monkeypatch.setattr(replay_module, "reader", lambda *_: None)
    recorder, testbed = Recorder(), SimpleNamespace(driver_bootstrap=["b1:9096"])
    scenario = SimpleNamespace(
        _written=None,
        _fills=["some"],
        _testbed=testbed,
        _admin=None,
        _recorder=recorder,
        _context=SimpleNamespace(progress=lambda _text: None),
    )
    assert IncidentScenario.read_back(scenario) is None
    [event] = recorder.events()
    assert (event.kind, event.detail) == (UNREAD, {"why": "audit: 1 partition was not read to the end"})


def test_several_replays_have_a_table_of_what_failed_how_often(capsys, monkeypatch, tmp_path):
    verdicts = iter(["fail", "pass", "fail"])

    def replay(request, _progress):
        verdict = next(verdicts)
        found = finding("rate", "at most", verdict, "why", observed=1.0, series=())
        deviation = None if verdict == "fail" else "should have failed and did not: rate"
        where = tmp_path / "r.html"
        return ReplayResult("r", "incident-x", request.incident.variant, verdict, (found,), deviation, where, "store")

    monkeypatch.setattr("testbed.incidents.replay.replay", replay)
    assert main(["replay", "move-before-quota", "--repeats", "3"]) == 1
    shown = capsys.readouterr().out
    assert "2 of 3 replays as the file expects" in shown
    assert re.search(r"rate +2 +1 +0 +9 % to 99 %", shown), shown
