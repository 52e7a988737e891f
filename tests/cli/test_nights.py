"""`testbed results judge|ack`: exit codes, forms, and refusals; Spark itself is tested elsewhere."""

import argparse
import json
from contextlib import contextmanager
from datetime import timedelta

import pytest

from results.contract.store import Store
from results.nights import policies, state
from results.nights.night import Night
from results.nights.state import SeriesState, SeriesVerdict
from results.series.decision import LevelChange
from results.series.history import History, ReportedChange
from results.spark import session
from results.spark.session import SparkMissing
from testbed.cli import nights
from testbed.cli.main import main
from tests.nights.made import BEGIN, about_of

REPORTED = ReportedChange(LevelChange("step", 3, 100.0, 120.0, 15.0, 25.0, 0.01), "bad", "good", "new")


@pytest.fixture
def judged(monkeypatch):
    """What `night` gives, instead of Spark."""

    asked, wanted = [], []

    def give(verdict, problems=()):
        reported = REPORTED if verdict in ("REGRESSED", "IMPROVED") else None
        history = History("", (REPORTED,)) if reported else History()
        own = SeriesState(
            "s1",
            "move",
            "seconds",
            history=history,
            said=SeriesVerdict(verdict, runs=40, reported=reported, reported_at=BEGIN),
        )

        def night(_spark, _store, *, include_noisy, wait, now, begun, **other):
            assert begun is None
            wanted.append(other["wanted"])
            assert wait == timedelta(0)  # who asks by hand can ask again
            asked.append(include_noisy)
            assert now.tzinfo is not None
            return Night((about_of(),), {"s1": own}, problems, 1)

        monkeypatch.setattr(nights, "night", night)

        @contextmanager
        def no_spark(_args: argparse.Namespace):
            yield None

        monkeypatch.setattr(nights, "spark_of", no_spark)

    give.asked, give.wanted = asked, wanted
    return give


@pytest.mark.parametrize(
    ("said", "verdict", "code"),
    [
        ("OK", "OK", 0),
        ("IMPROVED", "IMPROVED", 0),
        ("REGRESSED", "REGRESSED", 1),
        ("NOISY", "NOISY", 2),
        ("ENV-CHANGED", "ENV-CHANGED", 2),
        ("NO-DATA", "LEARNING", 0),
    ],
)
def test_codes_say_what_the_night_was(judged, tmp_path, capsys, said, verdict, code):
    judged(said)
    assert main(["results", "judge", "--store", str(tmp_path)]) == code
    out = capsys.readouterr().out
    assert out.startswith(verdict)
    assert out.splitlines()[-1].startswith(f"{verdict}  1 scenario, 1 new run")


def test_forms(judged, tmp_path, capsys):
    judged("REGRESSED", ("run x: cut",))
    junit = tmp_path / "out" / "junit.xml"
    assert main(["results", "judge", "--json", "--junit", str(junit), "--store", str(tmp_path)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["scenarios"][0]["series"][0]["first_bad"] == "bad"
    assert 'failures="1"' in junit.read_text()
    assert main(["results", "judge", "--markdown", "--store", str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith("### REGRESSED")
    assert judged.asked == [False, False]
    assert main(["results", "judge", "--include-noisy", "--store", str(tmp_path)]) == 1
    assert judged.asked[-1] is True
    capsys.readouterr()
    assert main(["results", "judge", "--experiment", "nothing", "--store", str(tmp_path)]) == 2
    assert "problem: run x: cut" in capsys.readouterr().out


def test_only_what_the_report_names_is_judged(judged, tmp_path):
    """A change that a judgement finds counts as reported, so a report without it would be the only one."""
    judged("OK")
    for option in ([], ["--experiment", "other"]):
        main(["results", "judge", *option, "--store", str(tmp_path)])
    whole, part = judged.wanted
    both = [about_of(), about_of(experiment="other")]
    assert ([whole(each) for each in both], [part(each) for each in both]) == ([True, True], [False, True])


@pytest.mark.parametrize("option", ["--junit", "--report"])
def test_what_could_not_be_written_is_refused_before_anything_is_judged(judged, tmp_path, option):
    judged("OK")
    assert main(["results", "judge", option, "/dev/null/there/x", "--store", str(tmp_path)]) == 64
    assert judged.asked == []


def test_policies_that_cannot_be_read_are_refused_before_anything_is_judged(judged, tmp_path, capsys):
    """A judgement stores what it reports: the change would be an earlier night's when they are mended."""
    Store.open(tmp_path).files.put(policies.POLICIES, b"{}")
    judged("REGRESSED")
    assert main(["results", "judge", "--store", str(tmp_path)]) == 70
    assert judged.asked == []
    assert policies.POLICIES in capsys.readouterr().err


def test_spark_that_does_not_start_is_told_in_a_line(tmp_path, capsys, monkeypatch):
    def none(_master, _memory):
        raise SparkMissing("Spark did not start")

    monkeypatch.setattr(session, "session", none)
    assert main(["results", "judge", "--memory", "2x", "--store", str(tmp_path)]) == 70
    told = capsys.readouterr().err
    assert "Traceback" not in told and "--memory is 2x" in told


def test_an_archive_is_no_store(tmp_path, capsys):
    (tmp_path / "kafka.tar").write_text("x")
    for action in ("list", "judge"):
        assert main(["results", action, "--store", str(tmp_path / "kafka.tar")]) in (64, 70)
        assert "is a file, not a store; `testbed results import`" in capsys.readouterr().err


def test_what_could_not_be_read_is_no_ok(judged, tmp_path):
    for verdict, code in (("OK", 2), ("REGRESSED", 1)):
        judged(verdict, ("run x: cut",))
        assert main(["results", "judge", "--store", str(tmp_path)]) == code


def test_ack_needs_a_reason_and_a_change(tmp_path, capsys):
    store = Store.open(tmp_path)
    state.save(store, [SeriesState("s1", "move", "seconds", history=History("b", (REPORTED,)))])
    where = ["--store", str(tmp_path)]
    assert main(["results", "ack", "s1", "--reason", " ", *where]) == 64
    assert main(["results", "ack", "s2", "--reason", "known", *where]) == 64
    assert state.load(store)["s1"].history.open
    assert main(["results", "ack", "move:seconds", "--reason", "known", "--by", "ann", *where]) == 0
    assert "acknowledged: move seconds [s1] +20.0% since bad" in capsys.readouterr().out
    (one,) = state.load(store)["s1"].history.reported
    assert (one.acknowledged.reason, one.acknowledged.by) == ("known", "ann")
    assert main(["results", "ack", "s1", "--reason", "known", *where]) == 64
    with store.files.lock():
        assert main(["results", "ack", "s1", "--reason", "known", *where]) == 70
