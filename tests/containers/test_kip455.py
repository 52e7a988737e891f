"""KIP-455 on brokers: every scenario is judged as it is expected, by the controller's log and again in Spark."""

import json

import pytest

from results.contract.store import Store
from testbed.experiments.reports import default_store
from testbed.suites.suite import find_suite
from tests.containers.conftest import cli

pytestmark = [pytest.mark.containers, pytest.mark.spark, pytest.mark.nightly]


def test_the_suite_passes_and_its_runs_hold_the_trace(tmp_path):
    told = cli("suite", "kip455", "--out", str(tmp_path / "out"), "--json", timeout_s=1500)
    print(told.stderr)
    document = json.loads(told.stdout)
    assert {case["case"]: (case["ending"], case["why"]) for case in document["cases"]} == {
        case.name: ("pass", "") for case in find_suite("kip455").cases("ci")
    }
    assert (told.returncode, document["problems"]) == (0, [])
    store = Store.open(default_store())
    for case in document["cases"]:
        store.verify(case["run_id"])
        assert store.manifest(case["run_id"]).steps.equal is True
        kinds = set(store.events(case["run_id"])["kind"].to_pylist())
        assert {"trace.log", "trace.described", "trace.listed"} <= kinds
    assert cli("gc").stdout == "nothing to collect\n"
    assert cli("reassign", "recover").stdout == "nothing to recover\n"
