"""Stores that earlier versions wrote are read, judged, packed and carried like those of today."""

import hashlib
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from results.contract.archive import export_runs, import_runs
from results.contract.maintenance import compact
from results.contract.manifest import SCHEMA_VERSION
from results.contract.schema import EVENTS, SAMPLES
from results.contract.store import Store
from results.contract.upgrade import UnknownSchemaError, upgraded
from results.criteria import judge
from tests.results.many import contents

FIXTURES = Path(__file__).parent / "fixtures"
STORES = ["store-1-first", "store-1"]


@pytest.fixture(params=STORES)
def old(request, tmp_path):
    """A copy: nothing here may write beside the fixtures."""
    shutil.copytree(FIXTURES / request.param, tmp_path / "old")
    return Store.open(tmp_path / "old")


def test_the_fixtures_are_of_earlier_versions():
    for name in STORES:
        for path in (FIXTURES / name / "manifests").iterdir():
            assert json.loads(path.read_text())["schema"] == 1 < SCHEMA_VERSION
        for path in (FIXTURES / name / "runs").rglob("*.parquet"):
            assert "run_id" not in pq.read_schema(path).names
    first = json.loads(next((FIXTURES / "store-1-first" / "manifests").iterdir()).read_text())
    assert not {"logs", "live"} & first["facts"].keys()
    assert not {"expected", "model_seconds"} & first["move"].keys()
    assert "incident" not in first


def test_they_are_read(old):
    scan = old.scan()
    assert scan.problems == ()
    assert [(m.run_id[-6:], m.verdict, m.schema) for m in scan.manifests] == [
        ("losing", "fail", 3),
        ("passes", "pass", 3),
    ]
    for run_id in old.runs():
        old.verify(run_id)
        samples = old.samples(run_id)
        assert samples.schema == SAMPLES
        assert samples.num_rows > 50
        assert old.events(run_id).schema == EVENTS
        criteria = {c.name: c.verdict for c in old.criteria(run_id)}
        assert criteria["records-intact"] == ("fail" if run_id.endswith("losing") else "pass")
        judged = judge(old.manifest(run_id), samples, old.events(run_id))
        assert {c.name: c.verdict for c in judged.criteria}["records-intact"] == criteria["records-intact"]


def test_some_columns_are_read_as_all_are_loose_and_packed(old, tmp_path):
    columns = ("metric", "value")
    wanted = {run_id: old.samples(run_id).select(columns) for run_id in old.runs()}
    assert {run_id: old.table(run_id, "samples", columns) for run_id in wanted} == wanted
    assert compact(old).problems == []
    packed = Store.open(tmp_path / "old")
    assert {run_id: packed.table(run_id, "samples", columns) for run_id in wanted} == wanted


def test_they_are_packed_and_carried(old, tmp_path):
    before = contents(old)
    assert export_runs(old, old.runs(), tmp_path / "a.tar") == (sorted(before), [])
    new = Store.open(tmp_path / "new")
    assert import_runs(new, tmp_path / "a.tar").new == sorted(before)
    assert contents(new) == before
    assert compact(old).problems == []
    assert contents(Store.open(tmp_path / "old")) == before
    assert import_runs(old, tmp_path / "a.tar").known == sorted(before)


def test_a_column_that_came_later_is_null_in_older_files(old, tmp_path):
    run_id = old.runs()[0]
    entry = old.manifest(run_id).files[0]
    path = tmp_path / "old" / entry.path
    pq.write_table(pq.read_table(path).drop_columns(["label"]), path)
    manifest = tmp_path / "old" / "manifests" / f"{run_id}.json"
    document = json.loads(manifest.read_text())
    data = path.read_bytes()
    document["files"][0] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest.write_text(json.dumps(document))
    samples = old.samples(run_id)
    assert samples.schema == SAMPLES
    assert samples["label"].null_count == samples.num_rows


@pytest.mark.parametrize("version", [0, 4, None, "1", True, 1.0])
def test_versions_that_are_not_known_are_refused(version):
    with pytest.raises(
        UnknownSchemaError, match="this version reads schema 1 to 3: use the version that wrote the run"
    ):
        upgraded({"schema": version}, SCHEMA_VERSION)
