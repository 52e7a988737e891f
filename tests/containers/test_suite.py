"""The whole suite: it passes where the quota is kept to, and fails when somebody sees to it that it is not."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from results.contract.store import Store
from results.criteria.judgement import machine_criteria
from testbed.errors import TestbedError
from testbed.experiments.reports import default_store
from testbed.kafka.types import ConfigResource
from testbed.provision import state as states
from testbed.provision.testbed import Testbed
from testbed.suites.suite import find_suite
from testbed.throttle.configs import FOLLOWER_RATE
from testbed.wait import wait_for
from tests.containers.conftest import ROOT, cli, left_of, measured

pytestmark = [pytest.mark.containers, pytest.mark.spark, pytest.mark.alone]
QUOTA = 5_000_000
MACHINE = tuple(f"{name} " for name in machine_criteria())
"""What a verdict begins with that says the machine, or its network, was not fit to judge with."""


def suite_testbeds():
    return [name for name in states.names() if name.startswith("suite-")]


# For every change the shortest throttled case; `./run demo` has a test of its own, with the experiment of `two-node`.
@pytest.mark.parametrize(
    ("suite", "only"),
    [
        ("kip435", ("two-node-batched",)),
        pytest.param("kip73", (), marks=pytest.mark.nightly),
        pytest.param("kip435", (), marks=pytest.mark.nightly),
        pytest.param("s3", (), marks=[pytest.mark.nightly, pytest.mark.store]),
    ],
    ids=["one", "kip73", "kip435", "s3"],
)
def test_the_smoke_profile_passes_and_leaves_report_runs_and_nothing_else(tmp_path, suite, only):
    """All but one of its cases pass; the machine may make one inconclusive, with the reason."""
    words = ["suite", suite, "--profile", "smoke", "--retry-noisy", "1", "--out", str(tmp_path / "out"), "--json"]
    told = cli(*words, *(word for name in only for word in ("--scenario", name)), timeout_s=1500)
    print(told.stderr)
    document = json.loads(told.stdout)
    smoke = [case.name for case in find_suite(suite).cases("smoke")]
    assert [case["case"] for case in document["cases"]] == [name for name in smoke if name in only or not only]
    short = {case["case"]: (case["ending"], case["why"]) for case in document["cases"] if case["ending"] != "pass"}
    assert all(ending == "inconclusive" and why.startswith(MACHINE) for ending, why in short.values()), short
    verdict = "inconclusive" if short else "pass"
    assert (told.returncode, document["verdict"], document["problems"]) == (2 if short else 0, verdict, [])
    store = Store.open(default_store())
    for case in document["cases"]:
        store.verify(case["run_id"])
        assert (tmp_path / "out" / "runs" / f"{case['run_id']}.html").stat().st_size > 10_000
    page = (tmp_path / "out" / "index.html").read_text()
    assert all(f'href="runs/{case["run_id"]}.html"' in page for case in document["cases"])
    assert "judged again from the store" in page
    root = ET.parse(tmp_path / "out" / "junit.xml").getroot()
    counts = (str(len(document["cases"])), "0", str(len(short)))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == counts
    assert suite_testbeds() == []
    assert cli("gc").stdout == "nothing to collect\n"
    assert cli("reassign", "recover").stdout == "nothing to recover\n"
    if len(short) > 1:
        measured(
            [{"name": "machine-load", "verdict": ending, "why": why} for ending, why in short.values()], "the suite"
        )


def started(out, *words):
    command = [sys.executable, "-m", "testbed.cli.main", "suite", "kip73", "--profile", "smoke", "--out", str(out)]
    return subprocess.Popen(
        [*command, "--scenario", "two-node", "--json", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def in_force(process) -> Testbed:
    """The suite's testbed, once its case has the throttle in force on every broker."""

    def throttled():
        assert process.poll() is None, process.communicate()
        for name in suite_testbeds():
            try:
                testbed = Testbed.attach(name)
                with testbed.admin() as admin:
                    rates = {admin.broker_configs(broker).in_force(FOLLOWER_RATE) for broker in (1, 2)}
            except TestbedError:
                return None  # being made, or Kafka is being restarted with the experiment's properties
            if rates == {str(QUOTA)}:
                return testbed
            testbed.close()
        return None

    return wait_for(throttled, lambda testbed: testbed is not None, 180, 0.2, "the throttle of the suite's case")


@pytest.mark.nightly
def test_a_quota_that_somebody_doubles_on_one_broker_fails_the_suite(tmp_path):
    process = started(tmp_path / "out")
    testbed = in_force(process)
    with testbed.admin() as admin:
        admin.alter_configs(ConfigResource.broker(2), {FOLLOWER_RATE: str(2 * QUOTA)})
    testbed.close()
    out, told = process.communicate(timeout=400)
    print(told)
    document = json.loads(out)
    [case] = document["cases"]
    assert (process.returncode, document["verdict"], case["verdict"]) == (1, "fail", "fail")
    assert "quota-in-force" in case["why"]
    failure = ET.parse(tmp_path / "out" / "junit.xml").getroot().find("testsuite/testcase/failure")
    assert failure is not None and failure.get("type") == "fail"
    # What a failed test leaves: its report, and the brokers' logs.
    [folder] = [path.parent for path in (tmp_path / "out" / "ducktape").rglob("outcome.json")]
    assert (folder / "report.html").stat().st_size > 10_000
    assert {path.parts[-3] for path in folder.rglob("server.log")} == {"b1", "b2"}
    assert suite_testbeds() == []


@pytest.mark.nightly
def test_a_suite_killed_in_its_move_takes_ducktape_with_it_and_leaves_what_gc_finds(tmp_path):
    process = started(tmp_path / "out")
    testbed = in_force(process)
    name, owner = testbed.name, testbed.state.owner
    testbed.close()
    process.kill()
    process.communicate()
    pid = owner.partition("@")[0]
    wait_for(lambda: cli("gc").stdout, lambda said: name in said, 30, 0.5, f"ducktape ({pid}) to have died")
    assert left_of(name) == []
    assert cli("reassign", "recover").stdout == "nothing to recover\n"
