"""A test that hangs, in ducktape as it is: it is ended in time, says where it hung, and takes no other test with it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.runner.case import gather
from testbed.suites.suite import CASES_VARIABLE, PROFILE_VARIABLE
from testbed.wait import wait_for, wait_until
from tests.ducktests.test_ducktape import ROOT, ducktape

HERE = Path(__file__).parent
BEGUN = "begun"
"""The file that `hanging.py` writes when its case hangs. Importing that module would patch this process, too."""
PATH = f"{ROOT}{os.pathsep}{HERE}"


def test_a_test_that_hangs_leaves_evidence_and_the_next_one_runs(tmp_path):
    told = ducktape(
        tmp_path,
        *("--cluster", "hanging.HangingCluster", "--results-root", "out"),
        **{"PYTHONPATH": PATH, PROFILE_VARIABLE: "ci", CASES_VARIABLE: "two-node,stuck"},
    )
    assert told.returncode == 1, told.stdout + told.stderr
    outcomes = gather(tmp_path / "out")
    assert {name: each.ending for name, each in outcomes.items()} == {"two-node": "pass", "stuck": "not done"}
    stuck = outcomes["stuck"]
    assert stuck.why.startswith("case stuck was not done after 2 s and was stopped; ")
    evidence = Path(stuck.evidence) / "evidence"
    assert "in hang_here" in (evidence / "stacks.txt").read_text()
    assert {path.name for path in evidence.iterdir()} == {
        "stacks.txt",
        "samples.parquet",
        "events.parquet",
        "missing.txt",
    }
    assert "b1: there is no such host" in (evidence / "missing.txt").read_text().replace("b1: b1", "b1")
    [report] = (tmp_path / "out").glob("*/report.json")
    results = {each["injected_args"]["case"]: each for each in json.loads(report.read_text())["results"]}
    assert results["two-node"]["test_status"] == "PASS"
    assert results["stuck"]["summary"].startswith("TimeLimitError(")


@pytest.fixture
def suite(tmp_path):
    """A suite in a process of its own, whose test hangs; and the number of the test's process."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "hanging.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": PATH, "TESTS_LIMIT_S": "60"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def begun():
        assert process.poll() is None, process.communicate()
        return [text for path in tmp_path.rglob(BEGUN) if (text := path.read_text())]

    try:
        [pid] = wait_for(begun, bool, 60, 0.1, "the test that hangs")
        yield process, int(pid)
    finally:
        process.kill()
        process.communicate()


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_suite_interrupts_its_test_and_waits_for_it(suite, tmp_path, number):
    process, pid = suite
    process.send_signal(number)
    try:
        out, _nothing = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        said = "\n".join(path.read_text() for path in sorted((tmp_path / "out").rglob("*.log")))
        pytest.fail(f"not ended after 60 s; its processes said:\n{said}")
    assert process.returncode != 0
    assert "interrupted: ending the test under way" in out
    assert gone(pid)
    assert gather(tmp_path / "out")["stuck"].why == "KeyboardInterrupt"


def test_a_suite_that_is_killed_takes_ducktape_and_its_test_with_it(suite):
    process, pid = suite
    process.kill()
    process.wait()
    wait_until(lambda: gone(pid), 20, 0.1, "the test to end")
