"""Spark SQL finds in a trace what Python finds."""

import pytest

from results.contract.store import Store
from results.spark.recompute import recompute
from tests.results.judged import commit_judged
from tests.results.stepped import VARIANTS, stepped
from tests.results.test_results_spark import differences

pytestmark = pytest.mark.spark


def test_both_measure_and_judge_alike(spark, make_run, tmp_path):
    store = Store.open(tmp_path)
    judged = {}
    for token, variant in VARIANTS.items():
        manifest, samples, events = stepped(token=token, **variant)
        run_id, judgement = commit_judged(store, manifest, samples, events)
        judged[run_id] = judgement
    # Beside a move: neither hides the other.
    run = make_run(token="plain0", partitions=10)
    judged[store.commit(run.data())] = run.judged()
    found = recompute(spark, store)
    assert found.problems == ()
    assert found.judgements.keys() == judged.keys()
    for run_id, judgement in judged.items():
        again = found.judgements[run_id]
        assert list(differences(judgement.measures, again.measures, run_id)) == []
        told = [[(c.name, c.host, c.verdict, c.why) for c in each.criteria] for each in (again, judgement)]
        assert told[0] == told[1]
    assert {judgement.verdict for judgement in judged.values()} == {"pass", "fail", "inconclusive"}
