"""ducktape itself, with the plug-in and a testbed that there is not: no result is lost, and none passes."""

import json
import os
import subprocess
import sys
from pathlib import Path

from testbed.runner.case import gather
from testbed.suites.suite import CASES_VARIABLE, PROFILE_VARIABLE

ROOT = Path(__file__).parents[2]


def ducktape(folder, *words, **variables):
    """Run ducktape as docs/ducktape.md has it."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "ducktape", str(ROOT / "ducktests" / "kip73_test.py"), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state"), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_case_of_a_profile_is_collected(tmp_path):
    told = ducktape(tmp_path, "--collect-only", "--results-root", "out", **{PROFILE_VARIABLE: "smoke"})
    assert told.returncode == 0, told.stdout + told.stderr
    assert "Collected 3 tests" in told.stdout
    assert "'case': 'two-to-one-produce'" in told.stdout and '"node_type": "three-brokers"' in told.stdout


def test_without_a_testbed_each_test_fails_and_says_why(tmp_path):
    (tmp_path / "cluster.json").write_text(json.dumps({"on": {"two-brokers": "nowhere"}}))
    told = ducktape(
        tmp_path,
        *("--cluster", "ducktests.cluster.TestbedCluster", "--cluster-file", "cluster.json", "--results-root", "out"),
        **{PROFILE_VARIABLE: "ci", CASES_VARIABLE: "two-node,stuck"},
    )
    assert told.returncode == 1, told.stdout + told.stderr
    outcomes = gather(tmp_path / "out")
    assert {name: (each.ending, each.run_id) for name, each in outcomes.items()} == {
        "two-node": ("not done", None),
        "stuck": ("not done", None),
    }
    for each in outcomes.values():
        assert "there is no testbed nowhere" in each.why
        # What was sampled until then: nothing, but it is there.
        assert (Path(each.evidence) / "evidence" / "events.parquet").exists()
    [report] = (tmp_path / "out").glob("*/report.json")
    results = json.loads(report.read_text())["results"]
    assert {result["test_status"] for result in results} == {"FAIL"}
    assert all("there is no testbed nowhere" in result["summary"] for result in results)
