"""Runs as rows; parts that appear whole; four numbers a metric; histories with changes where they were put."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from results.contract.canaries import canaries, put_canaries
from results.contract.defect import DefectRecord
from results.contract.store import RunData, Store, StoreError
from results.nights import values_table
from results.nights.ingest import rows_of
from results.nights.values import SUMMED, VALUES, Value, environment_of, rows, summarise
from results.series.judge import Judge
from tests.results.judged import commit_judged
from tests.results.relocated import Told, relocated
from tests.results.synthetic import Options, synthetic_run
from tools import generate
from tools.generate import Change, Spec


@pytest.fixture(scope="module")
def data():
    return synthetic_run().data()


@pytest.fixture
def committed(tmp_path, data):
    store = Store.open(tmp_path)
    store.commit(data)
    return store, data.manifest.run_id


def by_metric(found):
    return {row["metric"]: row for row in found}


def test_a_run_is_a_row_for_each_number(committed):
    store, run_id = committed
    put_canaries(store, run_id, {"cpu": 0.7})
    found = by_metric(rows_of(store, run_id, canaries(store, run_id)))
    assert {
        "failed-criteria",
        "move-seconds",
        "steady-mean",
        "canary.nic",
        "canary.steal",
        "canary.cpu",
    } <= found.keys()
    assert found["failed-criteria"]["value"] == 0
    assert found["failed-criteria"]["logged"] == "[]" and found["move-seconds"]["logged"] is None
    assert 50 < found["move-seconds"]["value"] < 70
    assert found["steady-mean"]["better"] == "higher"
    assert found["canary.cpu"]["value"] == 0.7
    assert len({row["scenario"] for row in found.values()}) == 1
    assert len({row["series"] for row in found.values()}) == len(found)
    assert pa.Table.from_pylist(list(found.values()), schema=VALUES).num_rows == len(found)


def test_a_move_without_a_throttle_is_followed_by_its_own_measures(tmp_path):
    store = Store.open(tmp_path)
    run_id, _ = commit_judged(store, *relocated("reloc0", "s3-reassign", Told()))
    found = by_metric(rows_of(store, run_id, canaries(store, run_id)))
    assert found["move-seconds"]["value"] == pytest.approx(13.2, abs=0.2)
    assert {"time-vs-log-size", "inter-broker-bytes", "longest-ack", "failed-criteria"} <= found.keys()
    assert not [metric for metric in found if metric.endswith(" p99")]  # nothing of what was merely sampled


def test_a_broker_slower_than_its_nic_has_values_and_a_busy_machine_none_that_count(tmp_path):
    store = Store.open(tmp_path)
    for token, told, disturbed in (("slow00", Told(seconds=30.0), False), ("busy00", Told(busy=0.95), True)):
        run_id, judgement = commit_judged(store, *relocated(token, "s3-reassign", told))
        assert judgement.verdict == "inconclusive"
        found = by_metric(rows_of(store, run_id, {}))
        assert found["move-seconds"]["value"] == pytest.approx(told.seconds, abs=0.2)
        assert found["move-seconds"]["noisy"] is disturbed


def test_what_has_no_rules_is_summarised_and_its_samples_are_not_read_twice(tmp_path, data, monkeypatch):
    store = Store.open(tmp_path)
    run_id = store.commit(replace(data, manifest=replace(data.manifest, experiment="mine", move=None)))
    monkeypatch.delattr(Store, "samples")  # the whole table, as a judgement wants it
    monkeypatch.delattr(Store, "events")
    found = by_metric(rows_of(store, run_id, canaries(store, run_id)))
    summed = {metric: row["better"] for metric, row in found.items() if re.search(SUMMED, metric)}
    assert "nic.tx.bytes mean" in summed and set(summed.values()) == {"unknown"}  # nobody said which way is better
    assert {row["better"] for metric, row in found.items() if metric not in summed} == {"lower", "canary"}


def test_what_is_inconclusive_has_no_values_but_canaries(data):
    run = replace(data.manifest, verdict="inconclusive")
    found = by_metric(rows(run, (), [Value("seconds", "s", "lower", 1.0), Value("canary.cpu", "s", "canary", 2.0)]))
    assert found["seconds"]["value"] is None
    assert found["canary.cpu"]["value"] == 2.0
    inf = by_metric(rows(data.manifest, (), [Value("seconds", "s", "lower", float("inf"))]))
    assert inf["seconds"]["value"] is None


def test_a_run_of_broken_brokers_says_so(data):
    defects = (DefectRecord("b1", "late-isr", "seconds=3", "2026-11-23T20:00:00Z", "t-0 kept out"),)
    found = rows(replace(data.manifest, defects=defects), (), [])
    assert {each["defects"] for each in found} == {"late-isr seconds=3 on b1"}
    assert {each["defects"] for each in rows(data.manifest, (), [])} == {None}


def test_a_run_that_only_the_machine_disturbed_has_values_that_say_so(data):
    run = replace(data.manifest, verdict="inconclusive")
    values = [Value("seconds", "s", "lower", 1.0), Value("canary.cpu", "s", "canary", 2.0)]
    found = by_metric(rows(run, (), values, noisy=True))
    assert (found["seconds"]["value"], found["seconds"]["noisy"]) == (1.0, True)
    assert found["canary.cpu"]["noisy"] is False
    assert by_metric(rows(data.manifest, (), values))["seconds"]["noisy"] is False


@pytest.mark.parametrize(
    ("options", "known"), [(Options(cpu_busy=0.99), True), (Options(gap=("b1", 10.0, 20.0)), False), (Options(), True)]
)
def test_by_the_machine_alone_is_read_from_the_samples(tmp_path, options, known):
    store = Store.open(tmp_path)
    run = synthetic_run(options).data()
    store.commit(run)
    found = by_metric(rows_of(store, run.manifest.run_id, canaries(store, run.manifest.run_id)))
    assert (found["move-seconds"]["value"] is not None) == known
    assert found["move-seconds"]["noisy"] == (run.manifest.verdict == "inconclusive" and known)


def test_series_are_told_apart_by_environment_and_not_by_kafka(data):
    run = data.manifest
    name = lambda other: rows(other, (), [])[0]["series"]  # noqa: E731
    assert name(replace(run, versions=replace(run.versions, kafka={"b1": "9"}))) == name(run)
    assert name(replace(run, machine=replace(run.machine, kernel="9"))) != name(run)
    assert name(replace(run, parameters={**run.parameters, "quota": 1})) != name(run)


@pytest.mark.parametrize(
    ("ratios", "network"),
    [([0.99, 1.0], "as declared"), ([0.99, 0.9], "off its rate"), ([0.99, None], "not measured"), ([], "not measured")],
)
def test_nics_are_a_part_of_the_environment(data, ratios, network):
    nics = tuple(replace(data.manifest.nics[0], ratio=ratio) for ratio in ratios)
    assert environment_of(replace(data.manifest, nics=nics))["network"] == network


def test_canaries_that_cannot_be_read_are_named(committed):
    store, run_id = committed
    assert canaries(store, run_id) == {}
    for said in (b"[1]", b'{"cpu": "quick"}', b'{"cpu": NaN}'):
        store.files.put(f"canaries/{run_id}.json", said)
        with pytest.raises(StoreError, match="not a canary's readings"):
            canaries(store, run_id)


def history(series=10, runs=3, **other):
    return Spec(series, runs, **other)


def test_the_same_part_twice_is_one(tmp_path):
    store = Store.open(tmp_path)
    generate.history(store, history())
    generate.history(store, history())
    (path,) = values_table.paths(store)
    assert values_table.read(store, path).num_rows == 3 * 12


def test_small_parts_are_put_together_and_hold_the_same(tmp_path):
    store = Store.open(tmp_path)
    for run in range(5):
        generate.history(store, history(runs=5, begin=run, end=run + 1))
    before = pa.concat_tables([values_table.read(store, path) for path in values_table.paths(store)])
    values_table.merge(store, most=5)
    assert len(values_table.paths(store)) == 5
    values_table.merge(store, most=4)
    (path,) = values_table.paths(store)
    key = [("series", "ascending"), ("at", "ascending")]
    assert values_table.read(store, path).sort_by(key).equals(before.sort_by(key))


def test_what_a_killed_merge_left_twice_is_there_once_after_the_next(tmp_path):
    store = Store.open(tmp_path)
    for run in range(5):
        generate.history(store, history(runs=5, begin=run, end=run + 1))
    before = pa.concat_tables([values_table.read(store, path) for path in values_table.paths(store)])
    values_table.write(store, before)  # and here it was killed
    values_table.merge(store, most=4)
    (path,) = values_table.paths(store)
    key = [("series", "ascending"), ("at", "ascending")]
    assert values_table.read(store, path).sort_by(key).equals(before.sort_by(key))


@pytest.mark.parametrize(
    "damage", [lambda d: b"", lambda d: d[:100], lambda d: d[:-1], lambda d: d[:20] + b"\0x" + d[22:]]
)
def test_a_damaged_part_is_set_aside_and_named(tmp_path, damage):
    store = Store.open(tmp_path)
    for run in range(2):
        generate.history(store, history(runs=2, begin=run, end=run + 1))
    bad, good = values_table.paths(store)
    path = store.files.root / bad
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StoreError, match="is damaged"):
        values_table.read(store, bad)
    known, problems = values_table.readable(store)
    assert known == [good]
    assert len(problems) == 1
    assert bad in problems[0]
    assert store.files.exists(f"aside/{bad}")
    assert values_table.readable(store) == ([good], [])


def test_a_summary_is_what_numpy_says():
    rng = np.random.default_rng(1)
    names = np.array(["a", "b", "c"])[rng.integers(0, 3, 5000)]
    values = rng.standard_normal(5000)
    samples = pa.table({"metric": names, "value": values})
    found, counts, numbers = summarise(samples)
    for name, count, (mean, top, p50, p99) in zip(found, counts, numbers, strict=True):
        own = np.sort(values[names == name])
        assert count == len(own)
        assert mean == pytest.approx(own.mean())
        assert top == own[-1]
        assert p50 == own[int(np.ceil(0.5 * len(own))) - 1]
        assert p99 == own[int(np.ceil(0.99 * len(own))) - 1]
    assert len(summarise(samples)[0]) == 3
    assert summarise(samples.slice(0, 0))[0] == []
    assert summarise(samples.slice(0, 1))[2][:, 3].tolist() == [values[0]]


def test_changes_are_where_they_were_put():
    changes = (Change(1, 50, 0.2), Change(2, 50, 0.2, "drift"), Change(3, 50, 0.2, "spike"))
    ratio = generate.matrix(Spec(5, 100, changes, sigma=0.0)) / generate.matrix(Spec(5, 100, sigma=0.0))
    assert ratio[:50] == pytest.approx(np.ones((50, 5)))
    assert ratio[50:, 1] == pytest.approx(1.2)
    assert ratio[[50, 59, 69, 99], 2] == pytest.approx([1.01, 1.1, 1.2, 1.2])
    assert ratio[[50, 51], 3] == pytest.approx([1.2, 1.0])


def test_a_generated_run_is_one_of_a_store(tmp_path):
    store = Store.open(tmp_path)
    spec = Spec(1, 3, (Change(0, 2, 0.5),))
    ids = list(generate.samples(store, [1, 2], 4, 50, spec))
    assert store.runs() == ids
    for run_id in ids:
        store.verify(run_id)
    means = [
        by_metric(rows_of(store, run_id, canaries(store, run_id)))["generated.m00 mean"]["value"] for run_id in ids
    ]
    assert means == pytest.approx([1.0, 1.5], rel=0.05)
    assert Judge().rule.night == 0.04
    assert isinstance(generate.sampled(generate.run_of(0, 1), 2, 3, 1), RunData)
