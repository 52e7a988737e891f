"""`testbed search`, as far as it needs no engine."""

import argparse
import json
from pathlib import Path

import pytest

from testbed.cli.commands import search as command
from testbed.cli.main import main
from testbed.search.coverage import Coverage
from testbed.search.database import Database, SearchSettings
from testbed.search.discovery import Discovery
from testbed.search.draft import Draft, DrawnStep, DrawnTopic
from testbed.search.replayer import topology_of
from testbed.search.search import SearchResult
from testbed.topology.find import find

READY = Path(__file__).parents[2] / "topologies"


@pytest.fixture(autouse=True)
def no_engine(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    monkeypatch.chdir(tmp_path)
    for variable in ("XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--topology", "three-broker"], "did you mean three-brokers?"),
        (["--defect", "log-not-delete"], "did you mean log-not-deleted?"),
        (["--seed", "-1"], "allowed: 0 or more"),
        (["--budget", "long"], "--budget long"),
        (["--findings", "0"], "--findings 0: allowed: 1 or more"),
        (["--resume", "nowhere"], "nowhere has no search"),
        (["--resume", "nowhere", "--seed", "2", "--defect", "late-isr"], "leave --seed, --defect out"),
    ],
)
def test_refusals_say_what_is_allowed_and_leave_nothing(words, shown, capsys, tmp_path):
    assert main(["search", *words]) == 64
    assert shown in capsys.readouterr().err
    assert not list(tmp_path.glob("search-*"))


def test_the_result_says_what_was_found_how_often_and_what_was_not_seen(tmp_path):
    draft = Draft("three-brokers", {"orders": DrawnTopic(1, ("b1",), 1000, 1)}, 0, (DrawnStep("move"),), 4.0)
    found = Discovery(
        "logs-removed", "broker 1 keeps orders-0", draft, 4, 5, 9, 3, 4, True, 60.0, 300.0, tmp_path / "f"
    )
    coverage = Coverage()
    coverage.add([("nic-rate", "copying"), ("move", "before")])
    result = SearchResult([found], ["moves-ended in try 3: x"], coverage, ("nic-rate",), 6, 5, ["busy"])
    result.kept, result.unknown, result.why_ended = {"records-intact": 5}, {"throttle-bound": 5}, "the budget ended"
    database = Database.new(tmp_path / "s", SearchSettings("three-brokers", 1, ("log-not-deleted",)))
    shown = command._as_text(result, database)
    assert "6 tries, 5 of them judged; the budget ended" in shown
    assert "broken on purpose: log-not-deleted" in shown
    assert "shrunk from 5 to 1 steps in 9 replays" in shown
    assert "fails in 3 of 4 replays (95 % interval 19 % to 99 %)" in shown
    assert "5 pairs of a fault and a phase were not seen" in shown
    assert "objectstore-full" in shown
    assert "not confirmed: moves-ended" in shown
    document = json.loads(command._as_json(result, database))
    assert document["found"][0]["invariant"] == "logs-removed"
    assert len(document["missing"]) == 5


@pytest.mark.parametrize(
    ("words", "kafka"), [([], find("three-brokers").brokers[0].kafka_version), (["--kafka", "4.2.1"], "4.2.1")]
)
def test_a_search_records_its_release_also_that_of_the_topology(words, kafka):
    parser = argparse.ArgumentParser()
    command.configure(parser)
    made = command._database(parser.parse_args([*words, "--out", "s"]))
    assert made.settings.kafka == kafka
    again = command._database(parser.parse_args(["--resume", "s"])).settings
    assert again.kafka == kafka and again == made.settings
    assert again.fault_kinds and {"broker-kill", "nic-rate"} <= {*again.fault_kinds}


def test_a_search_is_continued_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "own.yaml").write_text((READY / "three-brokers.yaml").read_text())
    parser = argparse.ArgumentParser()
    command.configure(parser)
    command._database(parser.parse_args(["--topology", "own.yaml", "--out", "s"]))
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    settings = command._database(parser.parse_args(["--resume", str(tmp_path / "s")])).settings
    assert topology_of(settings).name == "three-brokers"
