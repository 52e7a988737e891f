import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from results.contract.files import LocalFiles
from results.contract.manifest import new_run_id
from results.contract.schema import EVENTS, SAMPLES
from results.contract.store import RunData, Store, StoreError
from tests.killed_process import ROOT, killed_at
from tests.results.many import local, objects


@pytest.fixture(scope="module")
def data(make_run):
    run = make_run(log_bytes=20e6, partitions=3).data()
    return replace(run, report_html="<!doctype html>é")


def renamed(data, token):
    return replace(data, manifest=replace(data.manifest, run_id=new_run_id("kip73-two-node", token=token)))


@pytest.mark.parametrize("make", [local, objects])
def test_a_run_is_read_as_it_was_committed(tmp_path, data, make):
    store = make(tmp_path / "store")
    assert store.runs() == []
    assert store.orphans() == []
    run_id = store.commit(data)
    assert store.runs() == [run_id]
    manifest = store.manifest(run_id)
    assert replace(manifest, files=(), report=None) == data.manifest
    assert manifest.report == f"runs/{run_id}/report.html"
    assert [(f.kind, f.rows) for f in manifest.files] == [
        ("samples", data.samples.num_rows),
        ("events", data.events.num_rows),
        ("criteria", len(data.criteria)),
        ("report", 0),
    ]
    assert store.samples(run_id).equals(data.samples)
    assert store.samples(run_id).schema == SAMPLES
    assert store.events(run_id).schema == EVENTS
    assert store.criteria(run_id) == data.criteria
    assert store.report(run_id) == data.report_html
    store.verify(run_id)


READER = """
import os, sys
from results.contract.store import Store
store = Store.open(sys.argv[1])
[run] = store.runs()
threads = len(os.listdir("/proc/self/task"))
assert store.samples(run).num_rows and store.events(run).num_rows and store.criteria(run)
print(len(os.listdir("/proc/self/task")) - threads)
"""


def test_a_run_is_read_without_threads_that_python_would_end_at_its_exit(tmp_path, data):
    """Such a thread ended a process with *terminate called without an active exception*."""
    Store.open(tmp_path).commit(data)
    read = subprocess.run(
        [sys.executable, "-c", READER, tmp_path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert read.stdout == "0\n"


@pytest.mark.parametrize("make", [local, objects])
def test_a_run_is_never_written_twice(tmp_path, data, make):
    store = make(tmp_path / "store")
    store.commit(data)
    with pytest.raises(StoreError, match="exists in .*; a run is never written twice"):
        store.commit(data)


@pytest.mark.parametrize("make", [local, objects])
def test_what_a_dead_commit_left_is_not_written_over(tmp_path, data, make):
    store = make(tmp_path / "store")
    store.files.put(f"runs/{data.manifest.run_id}/samples.parquet", b"half")
    with pytest.raises(StoreError, match="left from a commit that did not finish.*commit under a new run id"):
        store.commit(data)
    assert store.runs() == []


def test_the_manifests_verdict_is_that_of_its_criteria(tmp_path, data):
    wrong = replace(data, manifest=replace(data.manifest, verdict="pass"), criteria=[])
    with pytest.raises(StoreError, match="says 'pass', its criteria say 'inconclusive'"):
        Store.open(tmp_path).commit(wrong)
    assert list(tmp_path.iterdir()) == []


def test_uris(tmp_path, data):
    store = Store.open(f"file://{tmp_path}/a%20b")
    run_id = store.commit(data)
    assert (tmp_path / "a b" / "manifests" / f"{run_id}.json").is_file()
    assert Store.open(str(tmp_path / "a b")).runs() == [run_id]
    assert Store.open(tmp_path / "a b").uris("samples") == [f"{tmp_path}/a b/runs/{run_id}/samples.parquet"]
    assert Store.open(tmp_path / "a?b").uris("samples", [run_id]) == [f"{tmp_path}/a?b/runs/{run_id}/samples.parquet"]
    one_slash = Store.open(f"file:{tmp_path}/a%20b")
    assert (one_slash.runs(), one_slash.location) == ([run_id], store.location)
    for scheme in ("s3", "s3a"):  # nothing is reached for until something is read
        objects_there = Store.open(f"{scheme}://bucket/prefix?region=eu-central-1")
        assert (objects_there.files.filesystem.type_name, str(objects_there.files.root)) == ("s3", "bucket/prefix")
    with pytest.raises(StoreError, match="scheme 'ftp' is not known; use a path, file:// or s3://"):
        Store.open("ftp://host/x")
    with pytest.raises(StoreError, match="three slashes"):
        Store.open("file://host/x")


@pytest.mark.parametrize("run_id", ["../../etc/passwd", "x", "", "20261121T181500Z-x-ab12cd\n"])
def test_what_is_no_run_id_is_refused(tmp_path, run_id):
    with pytest.raises(StoreError, match="is not a run id"):
        Store.open(tmp_path).manifest(run_id)


def test_what_does_not_read_back_is_not_committed_and_leaves_nothing(tmp_path, data, monkeypatch):
    store = Store.open(tmp_path)
    monkeypatch.setattr(store.files, "read", lambda path: b"something else")
    with pytest.raises(StoreError, match=r"samples.parquet has 14 bytes, the manifest says"):
        store.commit(data)
    monkeypatch.undo()
    assert (store.runs(), store.files.list("runs")) == ([], [])


def test_a_manifest_that_no_json_can_hold_leaves_nothing(tmp_path, data):
    store = Store.open(tmp_path)
    load = replace(data.manifest.load, cpu_busy_mean=float("nan"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.commit(replace(data, manifest=replace(data.manifest, load=load)))
    assert (store.runs(), store.files.list("runs")) == ([], [])


def test_a_run_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StoreError, match="no run 20261121T181500Z-x-ab12cd in "):
        Store.open(tmp_path).samples("20261121T181500Z-x-ab12cd")


def test_damage_is_named(tmp_path, data):
    store = Store.open(tmp_path)
    run_id = store.commit(data)
    samples, events = (tmp_path / "runs" / run_id / f"{n}.parquet" for n in ("samples", "events"))
    intact = samples.read_bytes()
    samples.write_bytes(intact[:-1])
    events.unlink()
    with pytest.raises(StoreError) as caught:
        store.verify(run_id)
    assert f"samples.parquet has {len(intact) - 1} bytes, the manifest says {len(intact)}" in str(caught.value)
    assert "events.parquet is missing" in str(caught.value)
    samples.write_bytes(intact[:-1] + bytes([intact[-1] ^ 1]))
    with pytest.raises(StoreError, match="has sha256 .*, the manifest says"):
        store.samples(run_id)


@pytest.mark.parametrize("text", [b"", b'{"schema": 1, "run_id"', b"\xff\xfe", b'{"schema": 1}'])
def test_a_corrupt_manifest_is_named_and_hides_no_other_run(tmp_path, data, text):
    store = Store.open(tmp_path)
    run_id = store.commit(data)
    bad = new_run_id("kip73-two-node", token="bad000")
    (tmp_path / "manifests" / f"{bad}.json").write_bytes(text)
    scan = store.scan()
    assert [m.run_id for m in scan.manifests] == [run_id]
    assert len(scan.problems) == 1
    assert "corrupt manifest" in scan.problems[0]
    assert bad in scan.problems[0]


def test_a_manifest_under_another_name_is_corrupt(tmp_path, data):
    store = Store.open(tmp_path)
    run_id = store.commit(data)
    other = new_run_id("kip73-two-node", token="other0")
    path = tmp_path / "manifests" / f"{other}.json"
    path.write_text((tmp_path / "manifests" / f"{run_id}.json").read_text())
    with pytest.raises(StoreError, match=f"it says run_id '{run_id}'"):
        store.manifest(other)


class Failing(LocalFiles):
    """Fails at the n-th change."""

    def __init__(self, root, at):
        super().__init__(root)
        self.left = at

    def claim(self, folder):
        self.step()
        super().claim(folder)

    def put(self, path, data):
        self.step()
        super().put(path, data)

    def step(self):
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "no space left")


@pytest.mark.parametrize("at", range(6))
def test_a_failure_at_any_step_leaves_no_run(tmp_path, data, at):
    with pytest.raises(
        StoreError, match=r"run \S+ is not committed: here cannot be written: no space left; free space"
    ):
        Store(Failing(tmp_path, at), "here").commit(data)
    store = Store.open(tmp_path)
    assert store.runs() == []
    assert store.files.list("runs") == []
    assert store.scan().problems == ()
    store.commit(renamed(data, "after0"))
    assert len(store.runs()) == 1
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_steps_above_are_all_there_are(tmp_path, data):
    Store(Failing(tmp_path, 6), "here").commit(data)


class Interrupted(Failing):
    """Is interrupted before the n-th change, as by Ctrl-C; or after the last one."""

    def step(self):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

    def put(self, path, data):
        super().put(path, data)
        if self.left == 0 and path.startswith("manifests/"):
            raise KeyboardInterrupt


@pytest.mark.parametrize("at", range(6))
def test_an_interruption_at_any_step_leaves_no_run(tmp_path, data, at):
    """What was written stayed, and `gc` did not find it: the note of the writer was gone."""
    with pytest.raises(KeyboardInterrupt):
        Store(Interrupted(tmp_path, at), "here").commit(data)
    store = Store.open(tmp_path)
    assert store.runs() == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_interruption_when_the_manifest_is_there_leaves_a_whole_run(tmp_path, data):
    with pytest.raises(KeyboardInterrupt):
        Store(Interrupted(tmp_path, 6), "here").commit(data)
    store = Store.open(tmp_path)
    [run_id] = store.runs()
    store.verify(run_id)


KILLED = """
from results.contract.store import RunData, Store
from results.contract.manifest import Manifest
from results.contract.schema import SAMPLES, EVENTS
import results.contract.files
die_writing()
manifest = Manifest.from_json(Path(sys.argv[2]).read_text())
Store.open(sys.argv[1]).commit(RunData(manifest, SAMPLES.empty_table(), EVENTS.empty_table(), []))
print("whole")
"""


# Each file: sync, rename, sync of its folder; before them the folders. 30 steps are more than there are.
@pytest.mark.parametrize("steps", [0, 3, 7, 12, 14, 15, 30])
def test_killed_at_any_point_a_run_is_whole_or_not_there(tmp_path, data, steps):
    document = tmp_path / "manifest.json"
    document.write_text(replace(data.manifest, verdict="inconclusive").to_json())
    root = tmp_path / "store"
    done = killed_at(steps, KILLED, root, document)
    store = Store.open(root)
    if done.stdout.strip() == "whole":
        assert done.returncode == 0
        assert store.runs() == [data.manifest.run_id]
    else:
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert steps < 30
    for run_id in store.runs():
        store.verify(run_id)
        assert store.samples(run_id).num_rows == 0
    assert store.scan().problems == ()
    left = (root / "runs").is_dir() and any((root / "runs").iterdir())
    soon = store.orphans(datetime.now(UTC) + timedelta(hours=2))
    assert soon == ([data.manifest.run_id] if left and not store.runs() else [])


def test_orphans_are_old_and_have_no_manifest(tmp_path, data):
    store = Store.open(tmp_path)
    store.commit(data)
    dead = new_run_id("kip73-two-node", token="dead00")
    store.files.put(f"runs/{dead}/samples.parquet", b"x")
    empty = new_run_id("kip73-two-node", token="dead01")
    store.files.claim(f"runs/{empty}")
    assert store.orphans() == []
    assert store.orphans(datetime.now(UTC) + timedelta(minutes=61)) == sorted([dead, empty])


def test_a_folder_that_vanishes_while_it_is_listed_is_passed_over(tmp_path, monkeypatch):
    files, scandir = LocalFiles(tmp_path), os.scandir
    for name in "abc":
        files.put(f"runs/{name}/x", b"x")
    files.claim("runs/d")

    def vanishing(path):
        if path == str(tmp_path / "runs" / "b"):
            (tmp_path / "runs" / "b" / "x").unlink()
            (tmp_path / "runs" / "b").rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    assert sorted(found.path for found in files.list("runs")) == ["runs/a/x", "runs/c/x", "runs/d"]
    assert files.list("runs/b") == files.list("runs/a/x") == []


def test_a_folder_that_cannot_be_looked_at_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    files = LocalFiles(tmp_path)
    files.put("histories/series.json", b"x")

    def refused(path):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(PermissionError):
        files.list("histories")


def test_the_manifest_comes_last(tmp_path, data):
    order = []

    class Watched(LocalFiles):
        def put(self, path, data):
            order.append(path)
            super().put(path, data)

    run_id = Store(Watched(tmp_path), "here").commit(data)
    assert order[-1] == f"manifests/{run_id}.json"
    assert len(order) == 5
    files = json.loads((tmp_path / order[-1]).read_text())["files"]
    assert [f["path"] for f in files] == order[:-1]


def test_a_table_of_another_schema_is_refused_before_anything_is_written(tmp_path, data):
    with pytest.raises(ValueError, match="samples: missing columns"):
        Store.open(tmp_path).commit(RunData(data.manifest, data.events, data.events, data.criteria))
    assert list(tmp_path.iterdir()) == []
