"""Spark judges the runs of a store as the process that recorded them did."""

import pytest

from results.contract.store import Store, StoreError
from results.spark.recompute import recompute
from tests.results.judged import commit_judged
from tests.results.moves import simulate
from tests.results.relocated import TIERED, relocated
from tests.results.scenes import live_change
from tests.results.stepped import VARIANTS, stepped

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def committed(make_run, tmp_path_factory):
    """A store with a few kinds of runs, their judgements, and the id of a damaged run."""
    store = Store.open(tmp_path_factory.mktemp("store"))
    judged = {}
    for token, options in {"plain0": {}, "double": {"real_quota": 20e6}, "gap000": {"gap": ("b2", 30.0, 35.0)}}.items():
        run = make_run(token=token, partitions=10, **options)
        judged[store.commit(run.data())] = run.judged()
    run = simulate(live_change(token="change"))
    judged[store.commit(run.data())] = run.judged()
    for run_id, judgement in (
        commit_judged(store, *relocated("tiered", "s3-reassign", TIERED)),
        commit_judged(store, *stepped(token="steps0", **next(iter(VARIANTS.values())))),
    ):
        judged[run_id] = judgement
    bad = store.commit(make_run(token="damage", partitions=10).data())
    store.files.put(f"runs/{bad}/samples.parquet", b"PAR1")
    return store, judged, bad


def test_spark_judges_every_run_as_it_was_recorded(spark, committed):
    store, judged, bad = committed
    found = recompute(spark, store)
    (problem,) = found.problems  # a damaged run is named and hides no other
    assert problem.startswith(f"run {bad}: ")
    assert "samples.parquet has 4 bytes" in problem
    assert found.judgements == judged
    assert {judgement.verdict for judgement in judged.values()} == {"pass", "fail", "inconclusive"}
    for run_id, judgement in found.judgements.items():
        assert list(judgement.criteria) == store.criteria(run_id)


def test_a_run_that_is_not_there_is_refused(spark, tmp_path):
    with pytest.raises(StoreError, match="no run"):
        recompute(spark, Store.open(tmp_path), ["20260101T000000Z-kip73-two-node-nothin"])


def test_an_empty_store_gives_nothing(spark, tmp_path):
    assert recompute(spark, Store.open(tmp_path)).judgements == {}
