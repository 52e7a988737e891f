"""The suite `kip455`: every experiment is a case of it, and every case has one ducktape test."""

import importlib
import itertools

import pytest

import ducktests.kip455_test as kip455
from testbed.experiments.experiment import experiments
from testbed.suites.suite import CASES_VARIABLE, PROFILE_VARIABLE, find_suite
from testbed.topology.find import find


@pytest.fixture(params=["smoke", "ci", "release"])
def profile(request, monkeypatch):
    monkeypatch.setenv(PROFILE_VARIABLE, request.param)
    monkeypatch.delenv(CASES_VARIABLE, raising=False)
    return request.param


def marked_in(module):
    """Case → (nodes, their type), as ducktape would find them."""
    found = []
    for name, method in vars(module.Kip455Test).items():
        if name.startswith("test"):
            marks = list(method.marks)
            cases = [mark.injected_args["case"] for mark in marks if mark.name == "PARAMETRIZE"]
            uses = [mark.metadata for mark in marks if mark.name == "RESOURCE_HINT_CLUSTER_USE"]
            found += [(case, use["num_nodes"], use["node_type"]) for case, use in zip(cases, uses, strict=True)]
    return found


def test_each_case_has_one_ducktape_test_with_the_hosts_it_needs(profile):
    cases = find_suite("kip455").cases(profile)
    found = marked_in(importlib.reload(kip455))
    assert sorted(case for case, *_rest in found) == sorted(case.name for case in cases)
    for case in cases:
        topology = case.resolve(profile).topology.name
        assert (case.name, len(find(topology).hosts), topology) in found


def test_every_experiment_is_a_case_of_ci():
    cases = {case.experiment for case in find_suite("kip455").cases("ci")}
    assert cases == {name for name in experiments() if name.startswith("kip455-")}


def test_cases_of_one_topology_follow_each_other():
    topologies = [case.resolve("ci").topology.name for case in find_suite("kip455").cases("ci")]
    changes = sum(a != b for a, b in itertools.pairwise(topologies))
    assert changes + 1 == len(set(topologies))
