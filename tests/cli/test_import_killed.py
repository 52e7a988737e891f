"""An import that is killed leaves no half run: `gc` finds it by its note."""

import subprocess
import sys

import pytest

from results.contract.archive import export_runs
from results.contract.store import Store
from testbed.experiments.half_runs import collect_half_runs
from testbed.paths import data_dir
from testbed.wait import wait_until
from tests.results.many import filled, some_runs
from tests.results.synthetic import synthetic_run


def halves(store):
    whole = {path.stem for path in store.glob("manifests/*.json")}
    return [path.name for path in store.glob("runs/*") if path.name not in whole]


@pytest.mark.parametrize("runs", [3])
def test_gc_removes_what_a_killed_import_had_half_written(tmp_path, monkeypatch, runs):
    for name in ("STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    source = filled(Store.open(tmp_path / "source"), some_runs(synthetic_run().data(), 20))
    export_runs(source, source.runs(), tmp_path / "runs.tar")
    store = data_dir() / "store"
    process = subprocess.Popen(
        [sys.executable, "-m", "testbed.cli.main", "results", "import", str(tmp_path / "runs.tar")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: len(list(store.glob("runs/*"))) >= runs, 60, 0.0005, "some runs")
    process.kill()
    process.wait()
    half = halves(store)
    said = collect_half_runs(data_dir() / "reports", dry_run=False)
    assert [line.partition(":")[0] for line in said] == half
    assert halves(store) == []
    assert len(Store.open(store).runs()) >= runs - 1
    assert not list(store.rglob("*.tmp"))
