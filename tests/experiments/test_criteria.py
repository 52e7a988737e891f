"""Every experiment names criteria that exist."""

import pytest

from results.contract.aliases import criteria_of_experiment
from results.criteria.judgement import catalogue
from testbed.experiments.experiment import experiments


@pytest.mark.parametrize("name", experiments())
def test_every_experiment_names_criteria_that_exist(name):
    criteria = experiments()[name].criteria
    assert criteria
    assert set(criteria) <= set(catalogue())
    assert len(set(criteria)) == len(criteria)
    stored = criteria_of_experiment(name)
    assert stored is None or set(stored) <= set(criteria)  # runs before schema 3: by those that there were
