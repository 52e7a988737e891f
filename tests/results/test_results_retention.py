"""What a store keeps: the newest, the young, and what baselines rest on."""

from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from results.contract.maintenance import compact, set_aside
from results.contract.store import NoRunError, Store, StoreError
from results.nights.retention import RetentionRule, leaving, retain
from results.series.decision import LevelChange
from results.series.history import History, ReportedChange
from tests.results.many import START, contents, damage, filled, some_runs

NOW = timedelta(0)
CHANGE = LevelChange("step", 3, 10.0, 9.0, -1.2, -0.8, 0.001)
TODAY = START + timedelta(days=40)


@pytest.fixture(params=[False, True], ids=["loose", "packed"])
def store(request, tmp_path, data):
    made = filled(Store.open(tmp_path), [*some_runs(data, 10), *some_runs(data, 3, "kip73-bootstrap")])
    if request.param:
        compact(made, grace=NOW)
    return made


def numbers(run_ids):
    return sorted((r.split("-")[2], int(r[-3:])) for r in run_ids)


def test_the_newest_of_each_experiment_stay(store):
    before = contents(store)
    done = retain(store, RetentionRule(newest=2), grace=NOW)
    assert done.problems == []
    kept = [("bootstrap", 1), ("bootstrap", 2), ("two", 8), ("two", 9)]
    assert numbers(store.runs()) == kept
    again = Store.open(store.location)
    assert contents(again) == {r: before[r] for r in again.runs()}
    for run_id in again.runs():
        again.verify(run_id)
    for run_id in done.gone:
        with pytest.raises(StoreError, match="no run"):
            again.samples(run_id)
        assert not any(run_id in f.path for f in store.files.list("runs") + store.files.list("manifests"))
    assert retain(store, RetentionRule(newest=2), grace=NOW).gone == []


@pytest.mark.parametrize(
    ("rule", "gone"),
    [
        (RetentionRule(newest=9), [0]),
        (RetentionRule(newest=0), list(range(10))),
        (RetentionRule(younger=timedelta(days=13)), list(range(7))),
        (RetentionRule(newest=5, younger=timedelta(days=13)), list(range(5))),
        (RetentionRule(newest=1, younger=timedelta(days=13)), list(range(7))),
    ],
)
def test_either_reason_is_enough_to_stay(tmp_path, data, rule, gone):
    runs = [run.manifest for run in some_runs(data, 10)]
    assert [int(r[-3:]) for r in leaving(runs, rule, TODAY)] == gone


@pytest.mark.parametrize("values", [{}, {"newest": -1}, {"younger": timedelta(-1)}])
def test_a_rule_says_something(values):
    with pytest.raises(ValueError, match=r"say how many|not negative"):
        RetentionRule(**values)


def test_a_dry_run_changes_nothing(store, tmp_path):
    before = sorted((f, f.stat().st_mtime_ns) for f in tmp_path.rglob("*"))
    done = retain(store, RetentionRule(newest=1), dry_run=True)
    assert len(done.gone) == 11
    assert sorted((f, f.stat().st_mtime_ns) for f in tmp_path.rglob("*")) == before


def test_what_a_reported_change_names_stays(store):
    runs = [r for r in store.runs() if "two-node" in r]
    kept = History(reported=(ReportedChange(CHANGE, runs[4], runs[3], runs[6]),))
    store.files.put("histories/rates.json", f"{History().to_json()}\n{kept.to_json()}\n".encode())
    done = retain(store, RetentionRule(newest=1), keep=[runs[0]], grace=NOW)
    assert done.protected == [runs[0], runs[3], runs[4], runs[6]]
    assert [r for r in store.runs() if "two-node" in r] == [runs[0], runs[3], runs[4], runs[6], runs[9]]


@pytest.mark.parametrize("line", ["{", "[]", '{"version": 9}', '{"version": 1}'])
def test_nothing_goes_while_it_is_not_known_what_baselines_rest_on(store, line):
    store.files.put("histories/rates.json", line.encode())
    before = store.runs()
    with pytest.raises(StoreError, match=r"rates.json, line 1: not a history: .* none is removed"):
        retain(store, RetentionRule(newest=1), grace=NOW)
    assert store.runs() == before


def test_readers_of_what_went_go_on_for_the_grace(store):
    run_id = store.runs()[0]
    old = store.manifest(run_id)
    begun = datetime.now(UTC)
    retain(store, RetentionRule(newest=1), now=begun, grace=timedelta(hours=1))
    assert run_id not in store.runs()
    assert store.table_of(old, "samples").num_rows == 40
    compact(store, now=begun + timedelta(hours=2), grace=timedelta(hours=1))
    with pytest.raises(StoreError, match="is missing"):
        store.table_of(old, "samples")


def test_a_run_that_goes_meanwhile_is_no_damage(store, monkeypatch):
    listed = store.runs()
    gone = retain(store, RetentionRule(newest=1), grace=NOW).gone
    with pytest.raises(NoRunError, match=f"no run {gone[0]} in "):
        store.verify(gone[0])
    with monkeypatch.context() as patch:
        patch.setattr(store, "runs", lambda: listed)
        scan = store.scan()
    assert ([run.run_id for run in scan.manifests], scan.problems) == (store.runs(), ())
    assert set_aside(store, {gone[0]: "it was read while it went"}) == []
    assert store.catalogue.index().aside == {}
    assert store.files.list("aside") == []
    assert len(store.runs()) == 2


def test_a_damaged_run_in_a_pack_is_set_aside_and_no_other(tmp_path, data):
    store = filled(Store.open(tmp_path), some_runs(data, 5))
    compact(store, grace=NOW)
    before = contents(store)
    runs = store.runs()
    damage(store, runs[1])
    done = retain(store, RetentionRule(newest=3), grace=NOW)
    assert done.gone == runs[:2]  # a damaged run is dropped as any other
    assert done.problems == []
    damage(store, runs[3])
    stays = retain(store, RetentionRule(newest=2), grace=NOW)
    assert stays.gone == [runs[2]]
    assert store.runs() == runs[3:]
    (problem,) = stays.problems
    assert problem.startswith("pack 2026-09-") and f" stays: run {runs[3]}: " in problem
    assert set_aside(store, {runs[3]: "zeros"}) == [runs[3]]
    assert contents(store) == {runs[4]: before[runs[4]]}
    aside = tmp_path / "aside" / runs[3]
    assert sorted(path.name for path in aside.iterdir()) == [
        "criteria.parquet",
        "events.parquet",
        "manifest.json",
        "problem.txt",
        "report.html",
    ]
    compact(store, grace=NOW)
    (pack,) = (tmp_path / "packs").iterdir()
    assert set(pq.read_table(pack / "samples.parquet")["run_id"].to_pylist()) == {runs[4]}
