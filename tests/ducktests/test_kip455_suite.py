"""The suite `kip455`: every experiment is a case of it."""

import itertools

from testbed.experiments.experiment import experiments
from testbed.runner.variant import of_case, resolve
from testbed.suites.suite import find_suite


def test_every_experiment_is_a_case_of_ci():
    cases = {case.experiment for case in find_suite("kip455").cases("ci")}
    assert cases == {name for name in experiments() if name.startswith("kip455-")}


def test_cases_of_one_topology_follow_each_other():
    topologies = [resolve(of_case(case, "ci")).topology.name for case in find_suite("kip455").cases("ci")]
    changes = sum(a != b for a, b in itertools.pairwise(topologies))
    assert changes + 1 == len(set(topologies))
