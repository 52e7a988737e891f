"""Spark SQL measures moves without a throttle as numpy does."""

from dataclasses import replace

import pytest

from results.contract.store import Store
from results.spark.recompute import recompute
from tests.results.judged import commit_judged
from tests.results.relocated import COLD, STREAMS, TIERED, Told, relocated
from tests.results.test_results_spark import differences

pytestmark = pytest.mark.spark

RUNS = {
    "disk00": ("s3-reassign", Told()),
    "tiered": ("s3-reassign", TIERED),
    "stream": ("s3-reassign", STREAMS),
    "gap000": ("s3-reassign", Told(gap=(3.0, 8.0))),
    "open00": ("s3-reassign", Told(done=False)),
    "mute00": ("scale-out", replace(TIERED, counted=False, device=None)),
    "slow00": ("scale-in", Told(slow_until=99.0)),
    "back00": ("scale-in", Told(slow_until=99.0, slow_us=4479)),
    "cold00": ("cold-read", Told(cold=COLD, device=590e6)),
}


def test_both_measure_and_judge_alike(spark, make_run, tmp_path):
    store, judged = Store.open(tmp_path), {}
    for token, (experiment, told) in RUNS.items():
        manifest, samples, events = relocated(token, experiment, told)
        run_id, judgement = commit_judged(store, manifest, samples, events)
        judged[run_id] = judgement
    run = make_run(token="plain0", partitions=10)
    judged[store.commit(run.data())] = run.judged()
    found = recompute(spark, store)
    assert found.problems == ()
    assert found.judgements.keys() == judged.keys()
    for run_id, judgement in judged.items():
        again = found.judgements[run_id]
        assert list(differences(judgement.measures, again.measures, run_id)) == []
        told = [[(c.name, c.host, c.verdict) for c in each.criteria] for each in (again, judgement)]
        assert told[0] == told[1]
    assert {judgement.verdict for judgement in judged.values()} == {"pass", "fail", "inconclusive"}
