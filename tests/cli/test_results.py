"""`testbed results`: what was recorded, and what the rules of today make of it."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from results.contract.store import RunData, Store
from results.contract.verdict import overall
from results.nights import values_table
from results.nights.retention import RetentionRule, retain
from testbed.cli.main import main
from tests.results.many import damage, filled, some_runs
from tests.results.synthetic import synthetic_run
from tools import generate
from tools.generate import Spec


@pytest.fixture
def old_run(tmp_path, monkeypatch):
    """A run recorded before the brokers' logs were watched."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    run = synthetic_run()
    criteria = [c for c in run.judged().criteria if c.name != "logs-clean"]
    manifest = replace(run.manifest, verdict=overall(criteria), facts=replace(run.manifest.facts, logs=None))
    Store.open(tmp_path / "store").commit(RunData(manifest, run.samples, run.events, criteria))
    return str(tmp_path / "store")


def test_show_tells_what_was_recorded_then(old_run, capsys):
    assert main(["results", "show", "--store", old_run]) == 0
    told = capsys.readouterr().out
    assert "PASS  kip73-two-node" in told
    assert "logs-clean" not in told


def test_show_in_json_has_every_criterion(old_run, capsys):
    assert main(["results", "show", "--json", "--store", old_run]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["experiment"]) == ("pass", "kip73-two-node")
    assert {each["verdict"] for each in told["criteria"]} == {"pass"}
    assert told["parameters"]["fetch"] == "tuned"


def test_report_judges_by_the_rules_of_today_and_says_so(old_run, capsys):
    assert main(["results", "report", "--store", old_run]) == 0
    path, summary, *differences = capsys.readouterr().out.splitlines()
    assert path.endswith(".html")
    assert summary == "recorded as PASS; by the rules of today INCONCLUSIVE:"
    assert [line.split(":")[0].strip() for line in differences] == ["logs-clean (b1)", "logs-clean (b2)"]
    assert main(["results", "show", "--store", old_run]) == 0
    assert "PASS  kip73-two-node" in capsys.readouterr().out


@pytest.fixture
def several(tmp_path):
    """Two experiments, one run of which failed; another Kafka in the newest."""
    runs = list(some_runs(synthetic_run().data(), 4))
    newest = replace(
        runs[3].manifest, versions=replace(runs[3].manifest.versions, kafka={"b1": "4.2.0", "b2": "4.3.1"})
    )
    failed = [replace(c, verdict="fail") for c in runs[1].criteria]
    runs[1] = replace(runs[1], manifest=replace(runs[1].manifest, verdict="fail"), criteria=failed)
    runs[3] = replace(runs[3], manifest=newest)
    store = filled(Store.open(tmp_path / "many"), [*runs, *some_runs(synthetic_run().data(), 1, "kip73-bootstrap")])
    return store, str(tmp_path / "many")


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ([], ["run000", "run000", "run001", "run002", "run003"]),
        (["--experiment", "kip73-bootstrap"], ["run000"]),
        (["--experiment", "kip73-bootstrap", "--experiment", "kip73-two-node", "--verdict", "fail"], ["run001"]),
        (["--version", "4.2"], ["run003"]),
        (["--version", "4.2.0"], ["run003"]),
        (["--version", "4.3"], ["run000", "run000", "run001", "run002", "run003"]),
        (["--version", "4"], ["run000", "run000", "run001", "run002", "run003"]),
        (["--version", "4.2.01"], []),
        (["--since", "2026-11-21T18:00"], ["run000", "run000", "run001", "run002", "run003"]),
        (["--since", "2099-01-01"], []),
    ],
)
def test_list_filters(several, capsys, options, tokens):
    _, uri = several
    assert main(["results", "list", "--json", "--store", uri, *options]) == 0
    assert [run["run"][-6:] for run in json.loads(capsys.readouterr().out)["runs"]] == tokens
    assert main(["results", "list", "--store", uri, *options]) == 0
    assert sum("kip73-" in line for line in capsys.readouterr().out.splitlines()) == len(tokens)


@pytest.mark.parametrize("words", [["--since", "soon"], ["--since", "3 fortnights"], ["--since", ""]])
def test_what_is_no_filter_is_refused(several, capsys, words):
    assert main(["results", "list", "--store", several[1], *words]) == 64


def test_compact_export_import_retain(several, tmp_path, capsys):
    store, uri = several
    assert main(["results", "compact", "--grace", "0s", "--store", uri]) == 0
    assert "5 runs in 1 new packs" in capsys.readouterr().out
    assert main(["results", "show", "--store", uri, store.runs()[1]]) == 0
    archive = str(tmp_path / "runs.tar")
    assert main(["results", "export", "--out", archive, "--store", uri, "--experiment", "kip73-two-node"]) == 0
    for said in ("4 new runs, 0 there already", "0 new runs, 4 there already"):
        assert main(["results", "import", archive, "--store", str(tmp_path / "other")]) == 0
        assert said in capsys.readouterr().out
    assert main(["results", "retain", "--newest", "1", "--dry-run", "--store", uri]) == 0
    assert "3 runs would go" in capsys.readouterr().out
    assert len(store.runs()) == 5
    assert main(["results", "retain", "--newest", "1", "--store", uri]) == 0
    assert len(store.runs()) == 2
    assert main(["results", "verify", "--store", uri]) == 0


def test_an_archive_that_cannot_be_imported_keeps_no_other_out(several, tmp_path, capsys):
    store, uri = several
    archives = [tmp_path / f"{name}.tar" for name in "abc"]
    runs = store.runs()
    for archive, run_id in zip(archives, runs, strict=False):
        assert main(["results", "export", "--to", str(archive), "--store", uri, run_id]) == 0
    archives[1].write_bytes(b"x" * 5000)
    words = ["results", "import", *map(str, archives), str(tmp_path / "gone.tar"), "--store", str(tmp_path / "other")]
    assert main(words) == 64
    told = capsys.readouterr()
    assert f"not imported: {archives[1]} is no archive of runs" in told.out
    assert "2 of 4 archives could not be imported: " in told.err and "gone.tar cannot be read" in told.err
    other = Store.open(tmp_path / "other")
    assert other.runs() == [runs[0], runs[2]]
    with other.files.lock():
        assert main(words) == 70
    assert "4 of 4 archives could not be imported: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["export", "--to", "x.tar", "nothing"],
        ["export", "--to", "x.tar", "--since", "2099-01-01"],
        ["export"],
        ["list", "--verdict", "good"],
        ["import", "/nonexistent.tar"],
        ["retain"],
        ["retain", "--newest", "-1"],
        ["retain", "--newest", "1", "--keep", "nothing"],
        ["compact", "--target", "much"],
        ["compact", "--grace", "a while"],
    ],
)
def test_what_cannot_be_meant_is_refused(several, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    store, uri = several
    try:
        code = main(["results", *words, "--store", uri])
    except SystemExit as stopped:
        code = stopped.code
    assert code == 64
    assert len(store.runs()) == 5
    assert not (tmp_path / "x.tar").exists()


@pytest.mark.parametrize(
    ("action", "name"),
    [
        ("show", "runs/{}/criteria.parquet"),
        ("show", "manifests/{}.json"),
        ("report", "runs/{}/samples.parquet"),
        ("report", "manifests/{}.json"),
    ],
)
def test_a_damaged_file_is_named_with_what_to_do_and_without_a_traceback(several, capsys, action, name):
    store, uri = several
    path = store.files.root / name.format(store.runs()[-1])
    path.write_bytes(path.read_bytes()[:-7])
    assert main(["results", action, "--store", uri]) == 70
    told = capsys.readouterr().err
    assert told.startswith("testbed results: ") and told.count("\n") == 1
    assert str(path) in told
    assert "`testbed results verify --quarantine`" in told


def test_a_run_that_goes_before_it_is_shown_is_no_damage(several, capsys, monkeypatch):
    store, uri = several
    listed, gone = store.runs(), retain(store, RetentionRule(newest=1), grace=timedelta(0)).gone
    monkeypatch.setattr(Store, "runs", lambda _store: listed)
    assert main(["results", "show", "--store", uri, gone[0]]) == 70
    assert capsys.readouterr().err == f"testbed results: no run {gone[0]} in {uri}\n"


@pytest.mark.parametrize("packed", [False, True])
def test_verify_names_damage_and_sets_it_aside(several, capsys, packed):
    store, uri = several
    if packed:
        assert main(["results", "compact", "--grace", "0s", "--store", uri]) == 0
    bad = store.runs()[-1]
    path = damage(store, bad)
    assert main(["results", "verify", "--store", uri]) == 1
    assert f"{bad}: run {bad}: {path}" in capsys.readouterr().out
    assert main(["results", "verify", "--store", uri, "--quarantine"]) == 1
    assert main(["results", "verify", "--store", uri]) == 0
    assert f"{bad}: was set aside" in capsys.readouterr().out
    assert len(store.runs()) == 4


def test_a_run_that_is_dropped_while_it_is_listed_or_verified_is_not_damaged(several, capsys, monkeypatch):
    store, uri = several
    listed = store.runs()
    gone = retain(store, RetentionRule(newest=1), grace=timedelta(0)).gone
    monkeypatch.setattr(Store, "runs", lambda _store: listed)
    assert main(["results", "list", "--store", uri]) == 0
    assert main(["results", "verify", "--quarantine", "--store", uri]) == 0
    assert store.catalogue.index().aside == {}
    out = str(store.files.root.parent / "a.tar")
    assert main(["results", "export", "--out", out, "--store", uri, *listed]) == 1
    assert f"left out: no run {gone[0]} in {uri}" in capsys.readouterr().out
    monkeypatch.undo()
    assert main(["results", "import", out, "--store", str(store.files.root.parent / "other")]) == 0


def test_values_that_are_put_together_while_they_are_verified_are_not_damaged(several, capsys, monkeypatch):
    store, uri = several
    for run in range(3):
        generate.history(store, Spec(5, 3, begin=run, end=run + 1))
    listed = values_table.paths(store)
    values_table.merge(store, most=2)
    monkeypatch.setattr(values_table, "paths", lambda _store: listed)
    assert main(["results", "verify", "--store", uri]) == 0
    assert "every file is as it was committed" in capsys.readouterr().out


def test_the_runs_of_a_pack_whose_file_is_cut_are_set_aside(several, capsys):
    store, uri = several
    assert main(["results", "compact", "--grace", "0s", "--store", uri]) == 0
    runs = store.runs()
    path = next(store.files.root.glob("packs/*/samples.parquet"))
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["results", "verify", "--store", uri, "--quarantine"]) == 1
    told = capsys.readouterr().out
    assert all(f"{run_id}: run {run_id}: {path}: " in told for run_id in runs)
    assert main(["results", "verify", "--store", uri]) == 0
    assert store.runs() == []
    assert (store.files.root / "aside" / runs[0] / "events.parquet").exists()
