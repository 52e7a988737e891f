"""The suite `kip435`: its cases in every mode, and one ducktape test for each of them."""

import importlib

import pytest

import ducktests.kip435_test as kip435
from testbed.suites.suite import CASES_VARIABLE, PROFILE_VARIABLE, find_suite
from testbed.topology.find import find


@pytest.fixture(params=["smoke", "ci", "release"])
def profile(request, monkeypatch):
    monkeypatch.setenv(PROFILE_VARIABLE, request.param)
    monkeypatch.delenv(CASES_VARIABLE, raising=False)
    return request.param


def made_for(module):
    """(case, nodes, their type) of each test, as ducktape would find them."""
    found = []
    for name, method in vars(module.Kip435Test).items():
        if name.startswith("test"):
            marks = list(method.marks)
            cases = [mark.injected_args["case"] for mark in marks if mark.name == "PARAMETRIZE"]
            uses = [mark.metadata for mark in marks if mark.name == "RESOURCE_HINT_CLUSTER_USE"]
            found += [(case, use["num_nodes"], use["node_type"]) for case, use in zip(cases, uses, strict=True)]
    return found


def test_each_case_has_one_ducktape_test_with_the_hosts_it_needs(profile):
    cases = find_suite("kip435").cases(profile)
    found = made_for(importlib.reload(kip435))
    assert sorted(case for case, *_rest in found) == sorted(case.name for case in cases)
    for case in cases:
        topology = case.resolve(profile).topology.name
        assert (case.name, len(find(topology).hosts), topology) in found


def test_every_mode_is_in_every_profile(profile):
    modes = {case.resolve(profile).settings["mode"] for case in find_suite("kip435").cases(profile)}
    assert {"batched", "incremental"} <= modes
    assert profile == "smoke" or "unbatched" in modes


def test_the_release_has_every_reassignment_of_kip73_in_every_mode():
    ran = {
        (case.experiment, case.resolve("release").settings["mode"]) for case in find_suite("kip435").cases("release")
    }
    moved = {case.experiment for case in find_suite("kip73").cases("release")} - {"kip73-bootstrap"}
    assert {(name, mode) for name in moved for mode in ("unbatched", "batched", "incremental")} <= ran
