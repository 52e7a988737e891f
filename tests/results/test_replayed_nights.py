"""Real runs as nights: what changes with the first broken night is reported, and only dates are moved."""

from dataclasses import replace

import pytest

from results.contract.defect import DefectRecord
from results.contract.store import Store
from testbed.runner.replayed_nights import night_changes
from tests.results.judged import commit_judged
from tests.results.synthetic import Options, synthetic_run

pytestmark = pytest.mark.spark
BROKEN = (DefectRecord("b1", "leader-throttle-leak", "share=0.25", "2026-11-21T18:20:00Z"),)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return thirteen healthy runs, and three with a throttle that leaks a quarter."""
    store = Store.open(tmp_path_factory.mktemp("store"))
    for number in range(16):
        broken = number >= 13
        options = Options(seed=number, token=f"run{number:03d}", real_quota=12.5e6 if broken else None)
        run = synthetic_run(options)
        commit_judged(store, replace(run.manifest, defects=BROKEN if broken else ()), run.samples, run.events)
    return store


def test_a_defect_is_reported_in_its_nights_and_healthy_nights_report_nothing(spark, store):
    runs = [(run_id,) for run_id in store.runs()]
    assert night_changes(spark, store, runs[:13]) == []
    found = night_changes(spark, store, [*runs[:10], *runs[13:]])
    # Criteria that fail are a series of each scenario. What else three nights report is up to the rules of nights.
    assert "failed-criteria" in {each.metric for each in found}
    assert {each.scenario for each in found} == {"kip73-two-node"}
    assert {each.night for each in found} <= {11, 12, 13}


def test_without_runs_nothing_is_reported(spark, store):
    assert night_changes(spark, store, []) == []
