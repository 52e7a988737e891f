"""ducktape as a process: what it is told, what it says, and how it ends."""

import json
import sys
import threading
import time
from dataclasses import replace

import pytest

from testbed.errors import TestbedError
from testbed.runner import ducktape as module
from testbed.runner.ducktape import DucktapeSession, run, statuses
from testbed.runner.suite import SuiteRequest, outcomes_of, run_suite
from testbed.software.automq import VARIABLE
from testbed.suites.suite import CASES_VARIABLE, PROFILE_VARIABLE, find_suite
from tests.ducktests.test_outcome import outcome


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_remove_left", lambda _pid, _progress: None)
    suite = find_suite("kip73")
    return DucktapeSession(suite, "smoke", suite.cases("smoke"), None, str(tmp_path / "store"), tmp_path / "out")


def instead(monkeypatch, script):
    monkeypatch.setattr(DucktapeSession, "command", lambda _self: [sys.executable, "-c", script])


def test_ducktape_is_told_what_to_run_and_nothing_of_the_users_own(session):
    command = " ".join(session.command())
    assert "ducktests/kip73_test.py --cluster ducktests.cluster.TestbedCluster" in command
    assert "--config-file /dev/null" in command and "--max-parallel 1" in command
    assert session.environment()[PROFILE_VARIABLE] == "smoke"
    assert session.environment()[CASES_VARIABLE].split(",") == [case.name for case in session.cases]
    # A hang is our own limit's to end, with evidence, before it is ducktape's.
    assert session.hang_s > max(case.limit_s for case in session.cases) + 60


def test_an_automq_beside_the_user_is_found_from_the_folder_of_ducktape(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "./automq")
    assert session.environment()[VARIABLE] == str(tmp_path / "automq")
    monkeypatch.setenv(VARIABLE, "somebody/automq:1.6.0")
    assert session.environment()[VARIABLE] == "somebody/automq:1.6.0"
    monkeypatch.delenv(VARIABLE)
    assert VARIABLE not in session.environment()


def test_what_tests_tell_is_progress_and_everything_is_in_the_log(session, monkeypatch):
    instead(monkeypatch, "print('[INFO] noise'); print('testbed: case two-node: pass')")
    steps = []
    run(session, steps.append)
    assert steps == ["case two-node: pass"]
    assert (session.folder / "ducktape.log").read_text() == "[INFO] noise\ntestbed: case two-node: pass\n"
    assert json.loads((session.folder / "cluster.json").read_text()) == {
        "kafka": None,
        "store": session.store,
        "again": 0,
    }


ROUND = """
import signal, sys, time
def stop(*_):
    print('testbed: put back', flush=True)
    sys.exit(1)
signal.signal(signal.SIGINT, stop)
print('testbed: begun', flush=True)
time.sleep(60)
"""


def test_ctrl_c_reaches_ducktape_once_and_is_waited_for(session, monkeypatch):
    instead(monkeypatch, ROUND)
    steps = []

    def progress(text):
        steps.append(text)
        if text == "begun":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(session, progress)
    assert steps == ["begun", "interrupted: ending the test under way"]
    assert (session.folder / "ducktape.log").read_text() == "testbed: begun\ntestbed: put back\n"


def test_a_session_that_outlasts_everything_is_killed(session, monkeypatch):
    instead(monkeypatch, "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)")
    monkeypatch.setattr(DucktapeSession, "longest_s", 0.5)
    begun = time.monotonic()
    run(session, lambda _text: None)
    assert time.monotonic() - begun < 10
    assert threading.active_count() < 20


def report(session, *results):
    folder = session.folder / "ducktape" / "2026-11-21--001"
    folder.mkdir(parents=True, exist_ok=True)
    documents = [
        {"test_id": case, "injected_args": {"case": case}, "test_status": status, "summary": summary}
        for case, status, summary in results
    ]
    (folder / "report.json").write_text(json.dumps({"results": documents}))
    return folder


def test_each_case_has_an_outcome_whatever_became_of_its_test(session):
    folder = report(
        session,
        ("two-to-one-produce", "FAIL", "Test aborted: TimeoutError"),
        ("live-change", "FAIL", "services"),
        ("two-node", "FLAKY", "run 2: PASSED"),
    )
    outcome("live-change").write(folder / "a")
    outcome("two-node").write(folder / "b")
    found = {each.case: each for each in outcomes_of(session.cases, SuiteRequest("kip73", "smoke"), session.folder)}
    assert [each.ending for each in found.values()] == ["not done"] * 3
    assert found["two-to-one-produce"].why == "Test aborted: TimeoutError"
    assert found["two-to-one-produce"].topology == "three-brokers"
    assert found["live-change"].why == "its run passed, and its test did not: services"
    assert found["live-change"].run_id is not None


def test_a_case_that_ducktape_never_ran_is_not_done(session):
    report(session, ("two-node", "PASS", ""))
    found = {each.case: each for each in outcomes_of(session.cases, SuiteRequest("kip73", "smoke"), session.folder)}
    assert found["live-change"].why == "ducktape has not run it: see ducktape.log"
    # It passed for ducktape, and left nothing that says so.
    assert found["two-node"].ending == "not done"


def test_an_interrupted_suite_reports_what_is_done(session, tmp_path, monkeypatch):
    """ducktape writes no report of all then; each test has left its own outcome."""
    outcome("two-node").write(session.folder / "ducktape" / "1")
    asked = SuiteRequest("kip73", "smoke")
    found = {each.case: each for each in outcomes_of(session.cases, asked, session.folder, interrupted=True)}
    assert found["two-node"].ending == "pass"
    assert (found["live-change"].ending, found["live-change"].why) == ("not done", "the suite was interrupted")

    def interrupt(_session, _progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run", interrupt)
    asked = replace(asked, store=str(tmp_path / "store"), out=str(tmp_path / "report"))
    with pytest.raises(KeyboardInterrupt):
        run_suite(asked, print)
    for name in ("index.html", "junit.xml"):
        assert "the suite was interrupted" in (tmp_path / "report" / name).read_text()


def test_a_build_that_is_gone_when_the_suite_has_ended_takes_no_outcome_away(session, tmp_path):
    report(session)
    asked = SuiteRequest("kip73", "smoke", kafka=str(tmp_path / "gone"))
    found = {each.case: each for each in outcomes_of(session.cases, asked, session.folder)}
    assert found["live-change"].topology == "two-brokers"


def test_a_report_of_ducktape_that_is_none_is_an_error(session):
    report(session)
    next(session.folder.rglob("report.json")).write_text("{}")
    with pytest.raises(TestbedError, match="not a report of ducktape"):
        statuses(session.folder)
