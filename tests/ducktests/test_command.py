"""`testbed suite`, refusing before anything is made, and telling what became of a suite."""

import contextlib
import json
import re
import sys

import pytest
from pyspark.errors import PySparkException

from results.contract.store import Store
from testbed.cli.main import main
from testbed.errors import TestbedError
from testbed.runner import suite as module
from testbed.runner.ducktape import DucktapeSession
from tests.ducktests.test_outcome import outcome
from tests.results.synthetic import synthetic_run


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["kip7"], "no suite 'kip7'; there are"),
        (["kip73", "--profile", "nightly"], "profile 'nightly': suite kip73 has smoke, ci, release"),
        (["kip73", "--scenario", "two-nod"], "did you mean two-node?"),
        (["kip73", "--store", "ftp://x/y"], "scheme 'ftp' is not known"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_made(words, said, capsys, tmp_path):
    assert main(["suite", *words]) == 64
    assert said in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_without_a_name_it_lists_the_suites(capsys):
    assert main(["suite"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "kip73 smoke 3 two-to-one-produce, live-change, two-node" in told


def test_a_folder_that_holds_something_is_not_written_into(tmp_path, capsys):
    (tmp_path / "mine").write_text("x")
    assert main(["suite", "kip73", "--out", str(tmp_path)]) == 64
    assert "there is something already" in capsys.readouterr().err


@pytest.mark.parametrize(("package", "extra"), [("ducktape", "ducktape"), ("pyspark", "spark")])
def test_without_its_extras_nothing_is_made(monkeypatch, capsys, tmp_path, package, extra):
    """ducktape ended at once, and every scenario counted as failed. The absence of Spark showed after all runs."""
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["suite", "kip73", "--out", str(tmp_path / "out")]) == 70
    assert capsys.readouterr().err == f"testbed suite: this needs {package}: pip install 'testbed[{extra}]'\n"
    assert not (tmp_path / "out").exists()


def ended(verdicts, run_id):
    """A ducktape that has run every case, with these verdicts."""

    def run(session: DucktapeSession, _progress):
        results = []
        for case, each in zip(session.cases, verdicts, strict=True):
            outcome(case.name, each, run_id=run_id).write(session.folder / "ducktape" / "1" / case.name)
            results.append(
                {
                    "injected_args": {"case": case.name},
                    "test_status": "PASS" if each == "pass" else "FAIL",
                    "summary": "",
                    "test_id": "t",
                }
            )
        (session.folder / "ducktape" / "1" / "report.json").write_text(json.dumps({"results": results}))

    return run


@pytest.mark.parametrize(
    ("verdicts", "code", "verdict"),
    [
        (["inconclusive", "fail", "pass"], 1, "fail"),
        (["pass", "inconclusive", "pass"], 2, "inconclusive"),
        (["pass", None, "pass"], 1, "fail"),
    ],
)
def test_the_exit_code_is_the_worst_of_its_cases(monkeypatch, capsys, tmp_path, verdicts, code, verdict):
    monkeypatch.setattr(module.sessions, "run", ended(verdicts, run_id=None))
    assert main(["suite", "kip73", "--profile", "smoke", "--out", str(tmp_path / "out"), "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == verdict
    assert [case["verdict"] for case in told["cases"]] == verdicts
    assert (tmp_path / "out" / "index.html").stat().st_size > 5000
    assert "<testsuites" in (tmp_path / "out" / "junit.xml").read_text()


@pytest.mark.parametrize("error", [TestbedError("it judges otherwise"), PySparkException("it judges otherwise")])
def test_a_run_that_spark_does_not_confirm_fails_the_suite_and_loses_no_report(monkeypatch, capsys, tmp_path, error):
    def fail(*_args):
        raise error

    run = synthetic_run().data()
    store = Store.open(tmp_path / "store")
    store.commit(run)
    run_id = run.manifest.run_id
    monkeypatch.setattr(module.sessions, "run", ended(["pass"], run_id=run_id))
    monkeypatch.setattr("results.spark.session.session", contextlib.nullcontext)
    monkeypatch.setattr(module, "confirm", fail)
    words = ["--scenario", "two-node", "--profile", "smoke", "--store", store.location, "--out", str(tmp_path / "out")]
    assert main(["suite", "kip73", *words]) == 1
    told = capsys.readouterr().out
    assert re.search("problem: the runs were not judged again: .*it judges otherwise", told)
    assert told.splitlines()[-3].startswith("FAIL  kip73 smoke")
    assert (tmp_path / "out" / "runs" / f"{run_id}.html").stat().st_size > 10_000
    assert "The runs were not judged again by Spark." in (tmp_path / "out" / "index.html").read_text()
    assert 'type="suite"' in (tmp_path / "out" / "junit.xml").read_text()
