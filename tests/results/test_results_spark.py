"""Spark SQL and numpy must measure the same: two implementations, one store."""

import dataclasses
from dataclasses import replace

import pyarrow.compute as pc
import pytest
from pyarrow import fs

from results.contract.files import ObjectFiles
from results.contract.schema import Fetchers, Flow, NicMeasurement, Sample, samples_table
from results.contract.store import Store, StoreError
from results.spark.recompute import recompute
from results.spark.sources import views
from tests.results.judged import commit_judged
from tests.results.moves import simulate
from tests.results.scenes import bounce, live_change, mixed, one_to_two, stuck, two_node, two_to_one

pytestmark = pytest.mark.spark

KINDS = {
    "plain0": {},
    "double": {"real_quota": 20e6},
    "gap000": {"gap": ("b2", 30.0, 35.0)},
    "stops0": {"gap": ("b2", 45.0, 999.0)},
    "bursts": {"fetch": "default"},
    "late00": {"late_quota_host": "b2"},
    "client": {"client_bytes_per_s": 3e6},
    "short0": {"log_bytes": 60e6},
    "nologs": {"without_metrics": ("log.bytes",)},
    "nopoll": {"without_metrics": ("quota.leader.rate", "cpu.busy", "broker.bytes_in", "nic.rx.bytes")},
}

SCENES = {
    "sends0": one_to_two(2e6),
    "takes0": two_to_one(),
    "change": live_change(),
    "bounce": bounce(),
    "stuck0": stuck(),
    "mixed0": mixed(),
    "flaps0": one_to_two(2e6, flapping=("b1", 20.0), resets=("b2",)),
    "holes0": live_change(gap=("b2", 30.0, 35.0), without=("move.in_flight",)),
    "silent": two_node(3e6, 360e6, silent=(20.0, 24.0), real_quota=(("b1", 25.0, 999.0, 45e6),)),
    "lists0": live_change(unlisted=(("b1", 26.0, 30.0, 3), ("b2", 51.8, 52.5, 6))),
    "brief0": live_change(quotas=((0.0, 8e6), (26.0, 12e6), (33.0, 4e6)), without=("isr.size",)),
    "rested": two_node(rests=((11.0, 12.1), (24.0, 24.2), (37.0, 38.6)), batches_s=(11.0, 23.0, 36.0, 56.0)),
    "unseen": stuck(without=("move.lag", "broker.isr_shrinks", "client.produce.latency", "nic.tx.bytes")),
}
"""Moves of several flows, phases and loads."""


def differences(numpy, spark, where=""):
    if dataclasses.is_dataclass(numpy):
        for field in dataclasses.fields(numpy):
            yield from differences(getattr(numpy, field.name), getattr(spark, field.name), f"{where}.{field.name}")
    elif isinstance(numpy, tuple) and isinstance(spark, tuple) and len(numpy) == len(spark):
        for i, (a, b) in enumerate(zip(numpy, spark, strict=True)):
            yield from differences(a, b, f"{where}[{i}]")
    elif isinstance(numpy, float) and isinstance(spark, float):
        if abs(numpy - spark) > 1e-9 * max(abs(numpy), abs(spark)):
            yield f"{where}: numpy {numpy!r}, Spark {spark!r}"
    elif numpy != spark or type(numpy) is not type(spark):
        yield f"{where}: numpy {numpy!r}, Spark {spark!r}"


def three_brokers(run):
    """The same bytes, half of them to a third broker that is sampled at instants of its own."""
    table = run.samples
    rows = [
        Sample(_us(r["ts"]), r["host"], r["metric"], r["value"], r["topic"], r["partition"], r["label"])
        for r in table.to_pylist()
    ]
    moved = [
        s._replace(host="b3", ts_us=s.ts_us + 333_333)
        if s.host == "b2" and s.topic == "moving" and s.partition >= 5
        else s
        for s in rows
    ]
    move = run.manifest.move
    flows = (
        Flow("throttled", "moving", tuple(range(5)), "b1", "b2"),
        Flow("throttled", "moving", tuple(range(5, 10)), "b1", "b3"),
        *move.flows[1:],
    )
    fetchers = {**move.fetchers, "b3": Fetchers(0, 1)}
    move = replace(move, flows=flows, brokers=("b1", "b2", "b3"), fetchers=fetchers)
    nics = tuple(NicMeasurement("b3", "data0", d, 400_000_000, 47e6, 0.99, 2.0) for d in ("transmit", "receive"))
    manifest = replace(run.manifest, move=move, nics=run.manifest.nics + nics)
    return manifest, samples_table(moved)


def _us(moment):
    return round(moment.timestamp() * 1e6)


@pytest.fixture(scope="module")
def committed(make_run, tmp_path_factory):
    """A store with one run of each kind, and how numpy judges each."""
    store = Store.open(tmp_path_factory.mktemp("store"))
    judged = {}
    for token, options in KINDS.items():
        run = make_run(token=token, partitions=10, **options)
        judged[store.commit(run.data())] = run.judged()
    run = make_run(token="three0", partitions=10)
    manifest, samples = three_brokers(run)
    run_id, judgement = commit_judged(store, manifest, samples, run.events)
    judged[run_id] = judgement
    for token, scene in SCENES.items():
        run = simulate(replace(scene, token=token))
        judged[store.commit(run.data())] = run.judged()
    run = simulate(stuck(token="noend0"))
    events = run.events.filter(pc.not_equal(run.events["kind"], "move.done"))
    run_id, judgement = commit_judged(store, run.manifest, run.samples, events)
    judged[run_id] = judgement
    run = make_run(token="nostrt", partitions=10)
    events = run.events.filter(pc.not_equal(run.events["kind"], "move.started"))
    run_id, judgement = commit_judged(store, run.manifest, run.samples, events)
    judged[run_id] = judgement
    bad = store.commit(make_run(token="damage", partitions=10).data())
    store.files.put(f"runs/{bad}/samples.parquet", b"PAR1")
    return store, judged, bad


def test_spark_and_numpy_agree_on_every_run(spark, committed):
    store, judged, bad = committed
    found = recompute(spark, store)
    (problem,) = found.problems  # a damaged run is named and hides no other
    assert problem.startswith(f"run {bad}: ")
    assert "samples.parquet has 4 bytes" in problem
    assert found.judgements.keys() == judged.keys()
    for run_id, judgement in judged.items():
        again = found.judgements[run_id]
        assert list(differences(judgement.measures, again.measures, run_id)) == []
        assert [(c.name, c.host, c.direction, c.verdict, c.why) for c in again.criteria] == [
            (c.name, c.host, c.direction, c.verdict, c.why) for c in judgement.criteria
        ]
        assert again.verdict == store.manifest(run_id).verdict


def test_the_runs_are_not_all_alike(committed):
    """The comparison above means something only if the measures of the runs differ and are mostly there."""
    _, judged, _ = committed
    assert {j.verdict for j in judged.values()} == {"pass", "fail", "inconclusive"}
    three = next(j for r, j in judged.items() if r.endswith("three0"))
    assert [(r.host, r.direction) for r in three.measures.rates] == [
        ("b1", "transmit"),
        ("b2", "receive"),
        ("b3", "receive"),
    ]
    assert all(r.worst_window and r.steady and r.kafka_ratio for r in three.measures.rates[:2])
    scenes = {token: next(j.measures for r, j in judged.items() if r.endswith(token)) for token in SCENES}
    assert [len(scenes[token].phases) for token in ("sends0", "change", "bounce", "brief0")] == [1, 3, 4, 3]
    assert all(r.first_window and r.second_window for phase in scenes["change"].phases for r in phase.rates)
    assert max(r.worst_window.in_sync_bytes for r in scenes["mixed0"].rates) > 0
    assert scenes["flaps0"].isr.smaller > 0
    assert scenes["flaps0"].isr.hosts[0].shrinks == 3
    assert scenes["stuck0"].stuck.lag_since >= scenes["stuck0"].stuck.lag_before
    assert max(view.silence_s for view in scenes["silent"].clients) > 3
    assert scenes["unseen"].isr.hosts[0].shrinks is None


def test_runs_of_an_object_store_are_read_from_a_copy(spark, make_run, tmp_path):
    filesystem = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    store = Store(ObjectFiles(filesystem, "bucket/prefix"), "s3://bucket/prefix")
    run = make_run(token="plain0", partitions=10)
    run_id = store.commit(run.data())
    with views(spark, store, [store.manifest(run_id)]):
        assert spark.table("samples").where(f"run_id = '{run_id}'").count() == run.samples.num_rows


def test_a_run_that_is_not_there_is_refused(spark, tmp_path):
    with pytest.raises(StoreError, match="no run"):
        recompute(spark, Store.open(tmp_path), ["20260101T000000Z-kip73-two-node-nothin"])


def test_an_empty_store_gives_nothing(spark, tmp_path):
    assert recompute(spark, Store.open(tmp_path)).judgements == {}
