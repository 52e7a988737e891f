"""Suites: every case can be run, and is run by exactly one ducktape test."""

import importlib
import itertools
import json
from pathlib import Path

import pytest

import ducktests.brief_test as brief
import ducktests.incidents_test as incidents
import ducktests.kip73_test as kip73
import ducktests.kip435_test as kip435
import ducktests.kip455_test as kip455
import ducktests.s3_test as s3
from testbed.errors import UsageError
from testbed.experiments.experiment import experiments
from testbed.runner.variant import of_case, resolve
from testbed.software.automq import VARIABLE
from testbed.suites.suite import CASES_VARIABLE, PROFILE_VARIABLE, Case, Suite, find_suite, suites
from testbed.topology.find import find

MODULES = {"brief": brief, "incidents": incidents, "kip73": kip73, "kip435": kip435, "kip455": kip455, "s3": s3}
SUPPLIED = "/tmp/automq"
"""Where AutoMQ would be: a case is resolved without looking there."""
PROFILES = [(suite.name, profile) for suite in suites().values() for profile in suite.profiles]


@pytest.mark.parametrize(("name", "profile"), PROFILES)
def test_every_case_can_be_run(monkeypatch, name, profile):
    monkeypatch.setenv(VARIABLE, SUPPLIED)
    for case in find_suite(name).cases(profile):
        resolved = resolve(of_case(case, profile, "4.3.1"))
        assert resolved.experiment.name == case.experiment
        versions = {host.kafka_version for host in resolved.topology.hosts if host.role.runs_kafka}
        assert versions == ({"4.3.1"} if resolved.topology.automq is None else {None})


def marked(monkeypatch, suite="kip73", **variables):
    """(case, test, nodes, their type) of each test of a suite, as ducktape would find them."""
    for variable in (PROFILE_VARIABLE, CASES_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    module = importlib.reload(MODULES[suite])
    found = []
    for name, method in vars(getattr(module, f"{suite.capitalize()}Test")).items():
        if not name.startswith("test"):
            continue
        arguments = None
        for mark in method.marks:
            if mark.name == "PARAMETRIZE":
                arguments = mark.injected_args
            elif mark.name == "RESOURCE_HINT_CLUSTER_USE":
                found.append((arguments["case"], name, mark.metadata["num_nodes"], mark.metadata["node_type"]))
            else:
                assert (mark.name, mark.injected_args) == ("MATRIX", {"case": []})
    return found


@pytest.mark.parametrize(("name", "profile"), PROFILES)
def test_each_case_has_one_ducktape_test_with_the_hosts_it_needs(monkeypatch, name, profile):
    tests = marked(monkeypatch, name, **{PROFILE_VARIABLE: profile, VARIABLE: SUPPLIED})
    cases = find_suite(name).cases(profile)
    assert sorted(case for case, *_rest in tests) == sorted(case.name for case in cases)
    for case in cases:
        [(_case, test, nodes, kind)] = [each for each in tests if each[0] == case.name]
        topology = resolve(of_case(case, profile)).topology
        assert (nodes, kind) == (len(find(topology.name).hosts), topology.name), test


def test_all_scenarios_of_the_plan_are_in_ci(monkeypatch):
    tests = {test for _case, test, *_rest in marked(monkeypatch)}
    written = {name for name in vars(kip73.Kip73Test) if name.startswith("test")}
    assert tests == written, f"these need a scenario in profile ci, too: {', '.join(sorted(written - tests))}"


def written_suites():
    """Those of experiments; the suite `incidents` is the folder of ready incidents, see test_library.py."""
    return [suite for suite in suites().values() if suite.name != "incidents"]


@pytest.mark.parametrize(("name", "profile"), [(each.name, p) for each in written_suites() for p in each.profiles])
def test_the_cases_of_each_suite_and_profile_are_those_written_down(name, profile):
    written = json.loads((Path(__file__).parent / "suite_scenarios.json").read_text(encoding="utf-8"))
    assert {suite: list(profiles) for suite, profiles in written.items()} == {
        suite.name: list(suite.profiles) for suite in written_suites()
    }
    cases = find_suite(name).profiles[profile]
    found = [[each.name, each.experiment, list(each.settings), each.topology, each.limit_s] for each in cases]
    assert found == written[name][profile]


def test_tests_are_made_for_the_cases_named_only(monkeypatch):
    tests = marked(monkeypatch, **{PROFILE_VARIABLE: "ci", CASES_VARIABLE: "stuck,two-node"})
    assert sorted(case for case, *_rest in tests) == ["stuck", "two-node"]


def test_an_unknown_case_is_refused_with_a_proposal():
    with pytest.raises(UsageError, match=r"no scenario 'two-nod', only .*; did you mean two-node\?"):
        find_suite("kip73").cases("ci", ["two-nod"])


def test_an_unknown_profile_and_suite_are_refused():
    with pytest.raises(UsageError, match="'nightly': suite kip73 has smoke, ci, release"):
        find_suite("kip73").cases("nightly")
    with pytest.raises(UsageError, match=r"no suite 'kip74'; there are .*s3; did you mean kip73\?"):
        find_suite("kip74")


def test_a_case_that_is_there_twice_is_a_mistake():
    with pytest.raises(ValueError, match="twice"):
        Suite("s", "", "t", {"ci": [Case("a", "kip73-two-node"), Case("a", "kip73-stuck")]})


def test_a_whole_profile_fits_into_its_time():
    """A case of `ci` takes some 90 s at most; what the limits allow is for the day on which something hangs."""
    assert len(find_suite("kip73").cases("smoke")) <= 4
    assert len(find_suite("kip73").cases("ci")) <= 16


@pytest.mark.parametrize("profile", ["smoke", "ci", "release"])
def test_every_mode_is_in_every_profile_of_kip435(profile):
    modes = {resolve(of_case(case, profile)).settings["mode"] for case in find_suite("kip435").cases(profile)}
    assert {"batched", "incremental"} <= modes
    assert profile == "smoke" or "unbatched" in modes


def test_the_release_has_every_reassignment_of_kip73_in_every_mode():
    ran = {
        (case.experiment, resolve(of_case(case, "release")).settings["mode"])
        for case in find_suite("kip435").cases("release")
    }
    moved = {case.experiment for case in find_suite("kip73").cases("release")} - {"kip73-bootstrap"}
    assert {(name, mode) for name in moved for mode in ("unbatched", "batched", "incremental")} <= ran


def test_every_experiment_of_kip455_is_a_case_of_ci():
    cases = {case.experiment for case in find_suite("kip455").cases("ci")}
    assert cases == {name for name in experiments() if name.startswith("kip455-")}


def test_cases_of_one_topology_follow_each_other():
    topologies = [resolve(of_case(case, "ci")).topology.name for case in find_suite("kip455").cases("ci")]
    changes = sum(a != b for a, b in itertools.pairwise(topologies))
    assert changes + 1 == len(set(topologies))
