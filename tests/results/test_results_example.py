"""The history that is shipped: whole, with what was read of the machine, and judged as any other."""

from pathlib import Path

import pytest

import results
from results.contract.archive import import_runs
from results.contract.canaries import canaries
from results.contract.store import Store
from results.nights.night import night
from results.nights.scenarios import scenarios
from testbed.suites.suite import find_suite

EXAMPLE = Path(results.__file__).parent / "example"


@pytest.mark.spark
def test_the_example_is_imported_and_judged(spark, tmp_path):
    store = Store.open(tmp_path)
    for archive in sorted(EXAMPLE.glob("*.tar")):
        done = import_runs(store, archive)
        assert (done.known, done.problems) == ([], [])
    ids = store.runs()
    assert {"cpu", "fsync", "nic", "transfer"} == set.intersection(*(set(canaries(store, each)) for each in ids))
    made = night(spark, store)
    assert (made.ingested, made.problems) == (len(ids), ())
    found = scenarios(made)
    moves = [case for case in find_suite("brief").cases("ci") if not case.experiment.startswith("kip455-")]
    assert len(found) == len(moves)  # the history is older than the suite's scenarios of placement
    assert all(line.about.runs >= 10 for each in found for line in each.lines if line.about.metric == "move-seconds")
    assert {each.environment["cpu"] for each in found} == {"AMD EPYC"}
