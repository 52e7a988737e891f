"""What keeps Spark from judging runs is an error of one line, and the runs are not lost."""

import sys
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from results.contract.store import Store, StoreError
from results.spark import session
from results.spark.session import SparkMissing
from testbed.errors import TestbedError
from testbed.experiments import experiment_run
from testbed.experiments.experiment_run import RunRequest
from testbed.runner import campaign_run as module
from testbed.runner import suite
from testbed.runner.case import CaseOutcome
from testbed.runner.journal import RunDone, created, known
from tests.runner.fakes import campaign


@pytest.fixture(params=[SparkMissing("no Java"), OSError(28, "no space"), StoreError("damaged"), ModuleNotFoundError()])
def no_spark(request, monkeypatch):
    if isinstance(request.param, ModuleNotFoundError):
        monkeypatch.setitem(sys.modules, "py4j.protocol", None)

    @contextmanager
    def broken():
        raise request.param
        yield

    monkeypatch.setattr(session, "session", broken)


def test_without_spark_no_run_begins(tmp_path, monkeypatch):
    """A campaign of hours ended with it, and no run of it was judged."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setattr(experiment_run, "_testbed", lambda *_asked: pytest.fail("a testbed was made"))
    asked, missing = campaign(store=str(tmp_path / "store")), r"this needs pyspark: pip install 'testbed\[spark\]'"
    with pytest.raises(TestbedError, match=missing):
        module.run_campaign(asked, None, asked.command, None, print)
    assert known() == []
    with pytest.raises(TestbedError, match=missing):
        experiment_run.run(RunRequest("kip73-two-node", store=str(tmp_path / "store"), confirm=True), print)


def test_a_run_says_where_it_is(no_spark, tmp_path, monkeypatch):
    monkeypatch.setattr(experiment_run, "_testbed", lambda *_asked: None)
    monkeypatch.setattr(experiment_run, "run_on", lambda *_asked: SimpleNamespace(verdict="pass"))
    with pytest.raises(TestbedError, match=f"Spark could not judge the runs: .*\nrun .*, pass, is in {tmp_path}"):
        experiment_run.run(RunRequest("kip73-two-node", store=str(tmp_path), confirm=True), print)


def test_a_campaign_says_that_its_runs_are_there_and_how_they_are_judged(no_spark, tmp_path):
    asked = campaign(store=str(tmp_path / "store"))
    with created(asked) as journal:
        journal.append(RunDone(0, "r", "pass", {}, (), "jars", 1.0))
        with pytest.raises(
            TestbedError, match=f"Spark could not judge the runs: .*\n.*--resume {asked.id} has them judged"
        ):
            module._confirm(journal, Store.open(asked.store), print)


def test_a_suite_is_reported_all_the_same(no_spark, tmp_path):
    said = []
    outcomes = [CaseOutcome("a", "x", "t", "pass", "r", "", 1.0)]
    judged = suite._confirm(Store.open(tmp_path), outcomes, said.append)
    assert judged.runs == {}
    assert [each.startswith("the runs were not judged again: ") for each in judged.problems] == [True]


@pytest.mark.parametrize(("commit", "refused"), [("here", True), ("earlier", False)])
def test_a_run_that_another_version_recorded_may_be_judged_otherwise(monkeypatch, commit, refused):
    """A campaign that was continued with a newer version could not be reported any more."""
    finding = SimpleNamespace(name="x", host=None, direction=None, verdict="pass")
    recorded = SimpleNamespace(testbed="1", commit=commit)
    store = SimpleNamespace(criteria=lambda _run: [], manifest=lambda _run: SimpleNamespace(versions=recorded))
    again = SimpleNamespace(judgements={"r": SimpleNamespace(criteria=[finding])}, problems=())
    monkeypatch.setattr(experiment_run, "recompute", lambda *_asked: again)
    monkeypatch.setattr(experiment_run, "this_testbed", lambda: ("1", "here"))
    with pytest.raises(TestbedError, match="Spark.s findings differ") if refused else nullcontext():
        assert experiment_run.confirm(None, store, ["r"]) == again.judgements
