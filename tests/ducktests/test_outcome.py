"""What became of a case, gathered and told: an inconclusive case never reads as one that passed."""

import xml.etree.ElementTree as ET

import pytest

from testbed.errors import TestbedError
from testbed.runner.case import EXIT, CaseOutcome, CaseRun, gather, reason, worst
from testbed.runner.suite import suite_junit as junit
from testbed.suites.suite import find_suite
from tests.results.synthetic import Options, synthetic_run


def outcome(case="two-node", verdict="pass", **changes):
    fields = {
        "run_id": f"20261121T181500Z-{case}-ab12cd",
        "why": "" if verdict == "pass" else "because",
        "seconds": 90.0,
    }
    return CaseOutcome(case, "kip73-two-node", "two-brokers", verdict, **{**fields, **changes})


def test_an_outcome_survives_being_written(tmp_path):
    made = outcome(verdict="inconclusive", evidence=str(tmp_path))
    made.write(tmp_path / "session" / "Test" / "1")
    assert gather(tmp_path) == {"two-node": made}


def test_of_a_case_that_ran_twice_the_worse_outcome_counts(tmp_path):
    outcome(verdict=None, run_id=None).write(tmp_path / "1")
    outcome().write(tmp_path / "2")
    assert gather(tmp_path)["two-node"].ending == "not done"


def test_the_outcome_of_the_attempt_before_does_not_stand_for_one_that_is_killed(tmp_path):
    outcome("stuck", "inconclusive").write(tmp_path)
    run = CaseRun(find_suite("kip73").cases("ci", ["stuck"])[0], "ci", None, tmp_path, ("run1: busy",))
    with run.recorded():
        assert gather(tmp_path) == {}


def test_a_damaged_outcome_is_an_error_that_names_the_file(tmp_path):
    (tmp_path / "outcome.json").write_text('{"case": 3}')
    with pytest.raises(TestbedError, match=r"outcome\.json: not a case's outcome"):
        gather(tmp_path)


@pytest.mark.parametrize(
    ("endings", "code"),
    [
        (["pass", "pass"], 0),
        (["pass", "inconclusive"], 2),
        (["inconclusive", "fail", "pass"], 1),
        (["pass", "not done", "inconclusive"], 1),
        ([], 1),
    ],
)
def test_fail_comes_before_inconclusive_and_nothing_run_is_no_pass(endings, code):
    assert EXIT[worst(endings)] == code


def test_junit_tells_fail_and_inconclusive_apart_and_skips_nothing():
    text = junit(
        "kip73",
        "ci",
        [
            outcome("a"),
            outcome("b", "fail", why="throttled-window b1 transmit: too much\nmore"),
            outcome("c", "inconclusive", why="machine-load: busy"),
            outcome("d", None, run_id=None, why="\x1b[31mcase d was not done after 420 s", evidence="/e"),
        ],
        ["run x: Spark judges otherwise"],
    )
    root = ET.fromstring(text)
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "1",
        "errors": "3",
        "skipped": "0",
    }
    said = {case.get("name"): case for case in root.iter("testcase")}
    assert said["a"].find("failure") is None and said["a"].find("error") is None
    assert said["b"].find("failure").get("message") == "fail: throttled-window b1 transmit: too much"
    assert said["c"].find("error").get("type") == "inconclusive"
    assert said["d"].find("error").get("type") == "not done"
    assert "evidence /e" in said["d"].find("system-out").text
    assert said["problem 1"].find("error").get("type") == "suite"


def test_the_reason_names_a_changed_quota_before_the_rates_that_it_explains():
    run = synthetic_run(Options(real_quota=14e6))
    told = reason(run.judged())
    assert told.startswith("quota-in-force b1")
    assert told.endswith(" more")
