"""Nights with Spark: what is new is read once, every night is judged once, and what was found is kept."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from results.contract.aliases import VALUES_COLUMNS
from results.contract.maintenance import set_aside
from results.contract.store import Store, StoreError
from results.nights import state, values_table
from results.nights.ingest import ingest
from results.nights.judged_runs import night_of
from results.nights.night import judged, night
from results.nights.recent_values import recent_values
from results.nights.scenarios import scenarios, worst
from results.nights.values import VALUES
from results.report.nights import render_nights
from results.series.block import Block
from results.series.history import Acknowledgement
from results.series.judge import Judge
from results.series.noise_estimation import LearnedNoise, learn
from tests.results.many import filled, some_runs
from tests.results.synthetic import synthetic_run
from tests.results.test_results_report import Page
from tools import generate
from tools import simulation as simulate
from tools.bench import Sizes, bench, summaries
from tools.generate import Change, Spec

pytestmark = pytest.mark.spark

NEWEST = 31
CHANGES = (
    Change(3, 20, 0.3),
    Change(7, 29, 0.2),
    Change(12, 29, 0.2, machine=True),
    Change(16, NEWEST, 2, "spike"),
)
SPEC = Spec(20, NEWEST + 2, CHANGES)


@pytest.fixture(scope="module")
def learned():
    values = simulate.store(np.random.default_rng(1), "gaussian", 60, 100, 0.03)
    newest = night_of(np.array([round(generate.when(0, NEWEST).timestamp()) * 1_000_000]))
    return LearnedNoise(int(newest[0]), 60.0, learn(Block.of(values.T.tolist()), 1, 0.04))


def test_a_store_is_judged_night_after_night(spark, tmp_path, learned):
    store = Store.open(tmp_path)
    assert worst(scenarios(night(spark, store))) == "NO-DATA"
    state.save(store, [], learned)  # a store that was judged before: learning is tested by itself
    generate.history(store, replace(SPEC, end=NEWEST - 1))
    told = []
    for end in (NEWEST - 1, NEWEST, NEWEST + 1):
        generate.history(store, replace(SPEC, begin=end - 1, end=end))  # the first time it is there already
        done = night(spark, store)
        found = {each.name: each for each in scenarios(done)}
        told += [line for line in found["generated case=1"].lines if line.tonight]
    again = night(spark, store)
    assert (again.states, again.ingested) == (done.states, 0)
    (late,) = told  # on one night of the three
    assert late.verdict == "REGRESSED"
    near = [generate.id_of(1, run) for run in (28, 29, 30)]
    assert late.tonight.first_bad in near
    assert {name: each.verdict for name, each in found.items() if name != "generated case=1"} == {
        "generated case=0": "OK",  # the change was twelve nights ago, and is the baseline by now
        "generated case=2": "ENV-CHANGED",
        "generated case=3": "OK",
    }
    (early,) = [one for line in found["generated case=0"].lines for one in line.open]
    assert early.first_bad in [generate.id_of(0, run) for run in (19, 20, 21)]

    by = Acknowledgement("known", "me", "now")
    after, _ = state.acknowledge(state.load(store), [late.about.series], by)
    state.save(store, after.values())
    generate.history(store, replace(SPEC, begin=NEWEST + 1, end=NEWEST + 2))
    last = night(spark, store)
    every = scenarios(last)
    own = next(line for each in every for line in each.lines if line.about.series == late.about.series)
    assert own.verdict == "LEARNING"
    assert own.open == ()
    assert own.changes[0].acknowledged == by

    page = Page(render_nights("here", last, every, recent_values(spark, store, every, 10)))
    document = json.loads(next(text for attributes, text in page.scripts if attributes.get("id") == "nights"))
    assert len(document["scenarios"]) == 4
    assert all(len(each["ids"]) == 10 for each in document["scenarios"])


def test_a_change_is_reported_by_the_judgement_that_names_its_series(spark, tmp_path, learned):
    """The judgement of another experiment, a night before, leaves it to the one that shows it."""
    store = Store.open(tmp_path)
    state.save(store, [], learned)
    generate.history(store, replace(SPEC, end=NEWEST - 1))
    before = night(spark, store).states
    generate.history(store, replace(SPEC, begin=NEWEST - 1, end=NEWEST + 1))
    others = night(spark, store, wanted=lambda each: json.loads(each.parameters)["case"] != 1)
    [own] = [each.id for each in scenarios(others) if each.name == "generated case=1"]
    mine = {name for name, each in before.items() if each.scenario == own}
    assert {name: others.states[name] for name in mine} == {name: before[name] for name in mine}
    assert all(others.states[name] != before[name] for name in before if name not in mine)
    generate.history(store, replace(SPEC, begin=NEWEST + 1, end=NEWEST + 2))
    found = {each.name: each for each in scenarios(night(spark, store))}
    assert found["generated case=1"].verdict == "REGRESSED"


def test_only_new_runs_are_read_and_a_damaged_one_hides_no_other(spark, tmp_path):
    store = filled(Store.open(tmp_path), some_runs(synthetic_run().data(), 3))
    bad, *good = store.runs()
    path = store.files.root / store.manifest(bad).files[0].path
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    store.files.put(f"canaries/{good[0]}.json", b"[1]")
    taken = ingest(spark, store)
    assert taken.runs == 2
    lost, beside = sorted(taken.problems)
    assert lost.startswith(f"run {bad}: ")
    assert beside.startswith(f"run {good[0]}: ") and "not a canary's readings" in beside
    for run_id in good:  # they are not read again: nobody notices that they are gone
        (store.files.root / store.manifest(run_id).files[0].path).unlink()
    path.write_bytes(whole)
    again = ingest(spark, store)
    assert (again.runs, again.problems) == (1, ())
    assert (again := ingest(spark, store)).runs == 0
    known = [values_table.read(store, each) for each in values_table.paths(store)]
    assert sorted(run for table in known for run in set(table["run_id"].to_pylist())) == [bad, *good]


def test_a_store_of_which_every_run_was_set_aside_has_no_series_and_keeps_what_was_found(spark, tmp_path):
    store = filled(Store.open(tmp_path), some_runs(synthetic_run().data(), 3))
    ids, before = store.runs(), night(spark, store)
    assert before.about
    for run_id in ids:
        (store.files.root / store.manifest(run_id).files[0].path).write_bytes(b"PAR1")
    assert set_aside(store, dict.fromkeys(ids, "too short")) == ids
    again = night(spark, store)
    assert (again.about, again.states, again.problems) == ((), before.states, ())
    assert scenarios(again) == []


def test_a_run_that_is_in_two_parts_is_one(spark, tmp_path):
    store = Store.open(tmp_path)
    generate.history(store, Spec(5, 6))
    (path,) = values_table.paths(store)
    values_table.write(store, values_table.read(store, path).slice(10, 20))  # a merge was killed between its two steps
    assert len(values_table.paths(store)) == 2
    found = judged(spark, store, values_table.paths(store), {}, None, Judge())
    assert {each.runs for each in found.about} == {6}
    assert {line.verdict for each in scenarios(found) for line in each.lines} <= {"LEARNING"}


@pytest.mark.parametrize("earlier", [False, True], ids=["today", "earlier"])
def test_values_of_noisy_runs_count_on_request_in_parts_of_every_version(spark, tmp_path, earlier):
    store = Store.open(tmp_path)
    generate.history(store, Spec(5, 12))
    (path,) = values_table.paths(store)
    whole = values_table.read(store, path)
    every_other = pa.array([int(run[:8]) % 2 == 0 for run in whole["run_id"].to_pylist()])
    store.files.discard(path)
    part = whole.set_column(whole.schema.get_field_index("noisy"), "noisy", every_other)
    if earlier:
        before = {name: stored for stored, name in VALUES_COLUMNS.items()}
        part = part.rename_columns([before.get(name, name) for name in part.column_names])
    values_table.write(store, part)
    assert values_table.read(store, values_table.paths(store)[0]).schema.names == VALUES.names
    runs = {}
    for asked in (False, True):
        found = judged(spark, store, values_table.paths(store), {}, None, Judge(), include_noisy=asked)
        (runs[asked],) = {each.runs for each in found.about}
        drawn = recent_values(spark, store, scenarios(found), include_noisy=asked)
        assert {sum(value is not None for value in each.values) for each in drawn.values()} <= {runs[asked]}
    assert runs == {False: 6, True: 12}


def test_a_run_of_broken_brokers_is_in_no_history(spark, tmp_path):
    store = Store.open(tmp_path)
    generate.history(store, Spec(5, 12))
    (path,) = values_table.paths(store)
    whole = values_table.read(store, path)
    some = pa.array(["late-isr on b1" if int(run[:8]) % 3 == 0 else None for run in whole["run_id"].to_pylist()])
    store.files.discard(path)
    values_table.write(store, whole.set_column(whole.schema.get_field_index("defects"), "defects", some))
    found = judged(spark, store, values_table.paths(store), {}, None, Judge())
    assert {each.runs for each in found.about} == {8}


def test_parts_that_are_put_together_while_a_page_is_drawn_are_looked_up_again(spark, tmp_path, monkeypatch):
    store = Store.open(tmp_path)
    for run in range(12):
        generate.history(store, Spec(5, 12, begin=run, end=run + 1))
    found = scenarios(judged(spark, store, values_table.paths(store), {}, None, Judge()))
    before = recent_values(spark, store, found)
    assert {len(each.ids) for each in before.values()} == {12}
    whole = values_table.whole

    def merged_meanwhile(_store):
        known = whole(store)
        values_table.merge(store, most=1)
        return known

    monkeypatch.setattr(values_table, "whole", merged_meanwhile)
    assert len(values_table.paths(store)) == 12
    assert recent_values(spark, store, found) == before
    assert len(values_table.paths(store)) == 1
    monkeypatch.setattr(values_table, "whole", lambda _store: ["values/gone.parquet"])
    with pytest.raises(PySparkException):  # nothing was put together: it is an error as any
        recent_values(spark, store, found)


def test_numbers_without_rules_of_earlier_versions_have_no_direction(spark, tmp_path):
    store = Store.open(tmp_path)
    generate.history(store, Spec(5, 12))
    (path,) = values_table.paths(store)
    kept = values_table.read(store, path).to_pylist()
    for row in kept:
        if row["metric"] in ("latency", "rate"):
            row |= {"metric": f"{row['metric']} p99", "unit": "" if row["metric"] == "latency" else "s"}
    store.files.discard(path)
    values_table.write(store, pa.Table.from_pylist(kept, schema=VALUES))
    found = judged(spark, store, values_table.paths(store), {}, None, Judge())
    better = {each.metric: each.better for each in found.about}
    assert (better["latency p99"], better["rate p99"], better["seconds"]) == ("unknown", "lower", "lower")


def test_runs_dated_ahead_are_left_out_and_stop_nothing(spark, tmp_path, learned):
    store = Store.open(tmp_path)
    generate.history(store, Spec(5, 40))
    known, now = values_table.paths(store), generate.when(0, 30)
    frozen = judged(spark, store, known, {}, learned, Judge())
    assert frozen.problems == ()
    found = judged(spark, store, known, frozen.states, replace(learned, night=1_000_000), Judge(), now=now)
    assert {each.runs for each in found.about if each.better != "canary"} == {31}
    (line,) = found.problems
    assert line.startswith(f"9 runs, {generate.id_of(0, 31)} the first of them, are dated ahead")
    tonight = round(generate.when(0, 30).timestamp()) * 1_000_000
    assert {state.judged for state in found.states.values()} == {tonight}
    assert {state.said.runs for state in found.states.values() if state.said.runs} == {31}
    assert found.learned.night == int(night_of(np.array([round(now.timestamp()) * 1_000_000]))[0])
    early = judged(spark, store, known, {}, learned, Judge(), now=generate.START.replace(year=2020))
    assert (early.about, early.states, len(early.problems)) == ((), {}, 1)
    every = scenarios(found)
    assert {len(each.ids) for each in recent_values(spark, store, every, now=now).values()} == {31}


def test_a_night_waits_for_nobody_and_writes_nothing_under_another_lock(spark, tmp_path):
    store = Store.open(tmp_path)
    generate.history(store, SPEC)
    with Store.open(tmp_path).files.lock(), pytest.raises(StoreError, match="try again"):
        night(spark, store)
    assert not store.files.exists(state.SERIES)


def test_benchmarks_measure_what_they_say(spark, tmp_path):
    found = list(bench(spark, [1], Sizes(40_000, 50, 12), tmp_path))
    assert [(each.what.split(" beside")[0], each.amount) for each in found] == [
        ("sample rows summarised", 40_000),
        ("a night's runs ingested", 10),
        ("full history judged", 600),
        ("newest 60 runs judged", 50),
    ]
    assert all(each.seconds > 0 and each.memory > 100 << 20 for each in found)
    assert list(tmp_path.iterdir()) == []


def test_summaries_have_a_row_for_each_run_and_metric(spark, tmp_path):
    store = Store.open(tmp_path)
    list(generate.samples(store, range(3), 4, 20, Spec(1, 3)))
    rows = summaries(spark, store).collect()
    assert len(rows) == 12
    assert {row["count"] for row in rows} == {20}
