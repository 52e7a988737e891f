"""Compaction: the same runs in fewer files, for readers at any moment, and after a kill at any moment."""

import contextlib
import json
import math
import random
import re
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from results.contract.files import LocalFiles
from results.contract.maintenance import POLL_S, compact, locked
from results.contract.schema import SAMPLES
from results.contract.store import Store, StoreError
from results.contract.tables import same
from tests.killed_process import killed_at
from tests.results.many import contents, filled, local, objects, some_runs

NOW = timedelta(0)


def names(store, folder):
    return sorted({f.path.split("/")[1] for f in store.files.list(folder)})


@pytest.mark.parametrize("make", [local, objects])
def test_what_is_read_stays_the_same(tmp_path, data, make):
    store = filled(make(tmp_path / "store"), some_runs(data, 12))
    filled(store, some_runs(data, 3, "kip73-bootstrap"))
    before = contents(store)
    done = compact(store, grace=NOW)
    assert done.problems == []
    assert done.runs == 15
    assert [pack[:7] for pack in done.packs] == ["2026-09", "2026-10"]
    assert names(store, "runs") == names(store, "manifests") == []
    for each in (store, Store(store.files, store.location)):
        assert contents(each) == before
        assert [m.run_id for m in each.scan().manifests] == sorted(before)
        assert each.scan().problems == ()
        for run_id in each.runs():
            each.verify(run_id)
    assert compact(store, grace=NOW).packs == []


def test_files_for_other_readers_have_each_run_once(tmp_path, data):
    store = filled(Store.open(tmp_path), some_runs(data, 12))
    rows = {run_id: store.samples(run_id).num_rows for run_id in store.runs()}
    assert counted(store.uris("samples")) == rows
    compact(store)  # the loose files are still there
    assert len(store.uris("samples")) == 2
    assert counted(store.uris("samples")) == rows
    late = next(some_runs(data, 1, "kip73-bootstrap"))
    store.commit(late)
    assert counted(store.uris("samples")) == {**rows, late.manifest.run_id: 40}
    two = store.uris("samples", [late.manifest.run_id, sorted(rows)[0]])
    assert [uri.split("/")[-3] for uri in two] == ["packs", "runs"]


def counted(uris):
    found = {}
    for uri in uris:
        column = pq.read_table(uri).column("run_id").to_pylist()
        for run_id in set(column):
            assert run_id not in found
            found[run_id] = column.count(run_id)
    return found


def test_any_columns_of_a_packed_run_are_read(tmp_path, data):
    store = filled(Store.open(tmp_path), some_runs(data, 2))
    columns = ("name", "series", "why")
    run_id = store.runs()[0]
    loose = store.table(run_id, "criteria", columns)
    compact(store, grace=timedelta(0))
    assert store.table(run_id, "criteria", columns) == loose


def test_old_names_are_good_until_the_grace_is_over(tmp_path, data):
    store = filled(Store.open(tmp_path), some_runs(data, 3))
    run_id = store.runs()[0]
    old = store.manifest(run_id)
    begun = datetime.now(UTC)
    assert compact(store, grace=timedelta(hours=1), now=begun).removed == []
    assert store.manifest(run_id).files[0].packed
    assert store.table_of(old, "samples").equals(store.samples(run_id))
    assert compact(store, grace=timedelta(hours=1), now=begun + timedelta(minutes=59)).removed == []
    assert compact(store, grace=timedelta(hours=1), now=begun + timedelta(minutes=61)).removed != []
    assert not (tmp_path / "runs" / run_id).exists()
    assert store.samples(run_id).num_rows == 40


def test_small_packs_are_merged_with_what_came_since_and_full_ones_left(tmp_path, data):
    runs = list(some_runs(data, 6, every=timedelta(hours=1)))
    store = filled(Store.open(tmp_path), runs[:4])
    first = compact(store, grace=NOW).packs
    filled(store, runs[4:5])
    second = compact(store, grace=NOW).packs
    assert len(first) == len(second) == 1
    assert names(store, "packs") == second
    assert compact(store, grace=NOW, target_bytes=1).packs == []  # the pack is full, by that measure
    filled(store, runs[5:])
    assert compact(store, grace=NOW, target_bytes=1).packs == []  # and a run alone is no pack
    assert names(store, "packs") == second
    assert len(store.runs()) == 6


def test_runs_land_and_are_read_while_others_are_packed(tmp_path, data):
    """With no grace at all: names vanish under a reader, runs do not."""
    store = filled(Store.open(tmp_path), some_runs(data, 8))
    known = set(store.runs())
    stop, wrong = threading.Event(), []

    def read():
        mine = Store.open(tmp_path)
        while not stop.is_set():
            found = mine.runs()
            if missing := known - set(found):
                wrong.append(f"missing {missing}")
            if len(found) != len(set(found)):
                wrong.append("twice")
            for run_id in found:
                try:
                    mine.samples(run_id)
                    mine.report(run_id)
                except StoreError as error:
                    wrong.append(str(error))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for run in list(some_runs(data, 14))[8:]:
            store.commit(run)
            compact(store, grace=NOW)
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert wrong == []
    assert len(store.runs()) == 14


def test_a_damaged_run_stays_where_it_is_and_loses_nothing_else(tmp_path, data):
    store = filled(Store.open(tmp_path), some_runs(data, 5))
    bad = store.runs()[2]
    path = tmp_path / "runs" / bad / "samples.parquet"
    path.write_bytes(path.read_bytes()[:-7])
    done = compact(store, grace=NOW)
    assert len(done.problems) == 1
    assert str(path) in done.problems[0]
    assert done.runs == 4
    assert names(store, "runs") == [bad]
    for run_id in set(store.runs()) - {bad}:
        store.verify(run_id)


def with_nan(run):
    """The run, its first sample no number."""
    at = run.samples.column_names.index("value")
    values = pa.array([float("nan"), *run.samples["value"].to_pylist()[1:]], pa.float64())
    return replace(run, samples=run.samples.set_column(at, run.samples.schema.field(at), values))


def test_a_sample_that_is_no_number_is_packed_as_any_other(tmp_path, data):
    runs = list(some_runs(data, 3))
    store = filled(Store.open(tmp_path), [runs[0], with_nan(runs[1]), runs[2]])
    done = compact(store, grace=NOW)
    assert (done.runs, done.problems) == (3, [])
    value = store.samples(runs[1].manifest.run_id)["value"].to_pylist()
    assert math.isnan(value[0]) and value[1:] == runs[1].samples["value"].to_pylist()[1:]


def test_tables_are_the_same_with_nan_in_the_same_places_only():
    nan = float("nan")

    def table(*values, host="b1"):
        return pa.table({"host": [host] * len(values), "value": pa.array(values, pa.float64())})

    assert same(table(nan, 1.0, None), table(nan, 1.0, None))
    assert same(pa.concat_tables([table(nan), table(1.0)]), table(nan, 1.0))  # in how many chunks says nothing
    for other in (table(1.0, nan, None), table(nan, 2.0, None), table(nan, 1.0, 0.0), table(0.0, 1.0, None)):
        assert not same(table(nan, 1.0, None), other)
    assert not same(table(nan), table(nan, host="b2"))
    assert not same(table(nan), table(nan, nan))
    assert not same(table(nan), table(nan).rename_columns(["host", "other"]))


class Forgetful(Store):
    """Reads a row less of what is packed of October."""

    def table_of(self, manifest, kind, columns=None):
        table = super().table_of(manifest, kind, columns)
        packed = any(file.packed for file in manifest.files)
        return table.slice(1) if packed and manifest.run_id.startswith("202610") else table


def test_what_does_not_read_back_stays_as_it_is_and_stops_no_other(tmp_path, data):
    store = filled(Store.open(tmp_path), some_runs(data, 12))
    before = contents(store)
    done = compact(Forgetful(LocalFiles(tmp_path), str(tmp_path)), grace=NOW)
    assert [pack[:7] for pack in done.packs] == ["2026-09"]
    assert done.runs == 8
    (problem,) = done.problems
    assert problem.startswith("2026-10: nothing of it was packed: run ")
    assert problem.endswith("its samples do not read back from a pack as they were")
    assert contents(store) == before
    assert names(store, "packs") == done.packs  # what was written of the other is gone
    assert compact(store, grace=NOW).problems == []
    assert contents(store) == before


@pytest.mark.parametrize("kind", ["samples", "events", "criteria", "report"])
def test_damage_in_a_pack_loses_the_run_it_hits_and_no_other(tmp_path, data, kind):
    store = filled(Store.open(tmp_path), some_runs(data, 5))
    before = contents(store)
    compact(store, grace=NOW)
    runs, found = store.runs(), 0
    whole = {each: store.report(each) if kind == "report" else store.table(each, kind) for each in runs}
    (pack,) = (tmp_path / "packs").iterdir()
    path = pack / f"{kind}.parquet"
    intact, footer = path.read_bytes(), pq.read_metadata(path)
    for group in range(footer.num_row_groups):
        begin, end = extent(footer.row_group(group))
        run_id = footer.row_group(group).column(0).statistics.min
        for at in random.Random(group).sample(range(begin, end), 5):
            path.write_bytes(intact[:at] + bytes([intact[at] ^ 1]) + intact[at + 1 :])
            again = Store.open(tmp_path)
            for each in runs:
                try:
                    again.verify(each)
                    read = again.report(each) if kind == "report" else again.table(each, kind)
                except StoreError as error:
                    assert each == run_id and str(path) in str(error)
                    found += 1
                else:  # no damage, or that of a page's header which no value depends on
                    assert read == whole[each]
    assert found > 2 * footer.num_row_groups
    path.write_bytes(intact)
    assert contents(Store.open(tmp_path)) == before


def extent(group):
    """Where a row group begins and ends in its file."""
    columns = [group.column(i) for i in range(group.num_columns)]
    begins = [c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset for c in columns]
    return min(begins), max(b + c.total_compressed_size for b, c in zip(begins, columns, strict=True))


@pytest.mark.parametrize("name", ["samples.parquet", "manifests.parquet"])
def test_a_file_of_a_pack_that_is_cut_is_named_by_each_run_and_no_other_pack_is_hurt(tmp_path, data, name):
    store = filled(Store.open(tmp_path), some_runs(data, 12))
    compact(store, grace=NOW)
    (path,) = (tmp_path / "packs").glob(f"2026-09-*/{name}")
    path.write_bytes(path.read_bytes()[:-7])
    again = Store.open(tmp_path)
    for run_id in again.runs():
        if run_id.startswith("202610"):
            again.verify(run_id)
        else:
            with pytest.raises(StoreError, match="2026-09"):
                again.verify(run_id)


def test_an_index_of_an_earlier_version_is_read_without_packs_and_refused_with(tmp_path, data):
    store = filled(Store.open(tmp_path), some_runs(data, 3))
    first, *rest = store.runs()
    index = {"generation": 3, "packs": [], "dropped": {first: "2026-11-21T18:15:00"}, "replaced": {}, "aside": {}}
    store.files.put("index/index.json", json.dumps({**index, "schema": 1}).encode())
    assert store.runs() == rest
    assert compact(store, grace=NOW).problems == []
    assert (store.runs(), json.loads((tmp_path / "index" / "index.json").read_text())["schema"]) == (rest, 2)
    store.files.put("index/index.json", json.dumps({**index, "schema": 1, "packs": [{"id": "old"}]}).encode())
    with pytest.raises(StoreError, match="earlier version packed this store; export the runs with that version"):
        store.runs()


def test_a_pack_that_is_gone_is_damage_of_each_of_its_runs(tmp_path, data):
    store = filled(Store.open(tmp_path), some_runs(data, 3))
    compact(store, grace=NOW)
    shutil.rmtree(tmp_path / "packs")
    scan = Store.open(tmp_path).scan()
    assert scan.manifests == ()
    assert [problem.split(": ")[0] for problem in scan.problems] == [f"run {run_id}" for run_id in store.runs()]
    assert all(problem.endswith(" is missing") for problem in scan.problems)


@pytest.mark.parametrize("text", [None, b"", b"{", b"[]", b'{"schema": 9}', b'{"schema": 2, "packs": [{}]}'])
def test_a_damaged_index_is_named_and_loses_no_run(tmp_path, data, text):
    store = filled(Store.open(tmp_path), some_runs(data, 10))
    before = contents(store)
    compact(store, grace=NOW)
    path = tmp_path / "index" / "index.json"
    path.unlink() if text is None else path.write_bytes(text)
    again = Store.open(tmp_path)
    assert contents(again) == before
    assert "index.json" in again.scan().problems[0]
    assert [("index.json" in p) for p in compact(again, grace=NOW).problems] == [True]
    assert Store.open(tmp_path).scan().problems == ()
    assert contents(again) == before


def test_a_packed_run_is_not_written_again(tmp_path, data):
    runs = list(some_runs(data, 3))
    store = filled(Store.open(tmp_path), runs)
    compact(store, grace=NOW)
    with pytest.raises(StoreError, match="a run is never written twice"):
        store.commit(runs[0])
    assert store.unfinished_files(runs[0].manifest.run_id) == []
    assert store.orphans(datetime.now(UTC) + timedelta(days=1)) == []


def test_one_at_a_time(tmp_path, data):
    store = filled(Store.open(tmp_path), some_runs(data, 2))
    with store.files.lock(), pytest.raises(StoreError, match="another command compacts"):
        compact(store)
    compact(store)


@pytest.mark.parametrize("make", [local, objects])
def test_who_waits_has_the_lock_as_soon_as_it_is_free(tmp_path, make, monkeypatch):
    store, held, slept = make(tmp_path / "store"), contextlib.ExitStack(), []
    held.enter_context(store.files.lock())

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 3:
            held.close()

    monkeypatch.setattr("results.contract.maintenance.time.sleep", sleep)
    with locked(Store(store.files, store.location), timedelta(minutes=10)):
        assert slept == [POLL_S] * 3
        with pytest.raises(StoreError, match="try again when that is done"), locked(store):
            pass
    with locked(store):
        pass


def test_who_waits_in_vain_is_told(tmp_path):
    store, begun = Store.open(tmp_path), time.monotonic()
    in_vain = pytest.raises(StoreError, match="another command compacts")
    with store.files.lock(), in_vain, locked(store, timedelta(seconds=0.2)):
        pass
    assert 0.2 <= time.monotonic() - begun < 5


def test_an_object_stores_lock_names_its_holder(tmp_path, data):
    store = objects(tmp_path / "store")
    with store.files.lock(), pytest.raises(StoreError, match="held since .* by process .*; remove it"):
        compact(store)
    assert not store.files.exists("lock")


def test_a_run_without_samples_is_packed(tmp_path, data):
    runs = [replace(run, samples=SAMPLES.empty_table()) for run in some_runs(data, 2)]
    store = filled(Store.open(tmp_path), [*runs, *list(some_runs(data, 3))[2:]])
    before = contents(store)
    compact(store, grace=NOW)
    assert contents(store) == before


KILLED = """
from datetime import timedelta
import results.contract.files
from results.contract.maintenance import compact
from results.contract.store import Store
die_writing()
die_removing()
compact(Store.open(sys.argv[1]), grace=timedelta(0))
print("whole", left)
"""


def test_killed_at_any_point_every_run_is_there_once_and_what_is_left_goes_away(tmp_path, data):
    first = filled(Store.open(tmp_path / "first"), some_runs(data, 3))
    compact(first, grace=NOW)  # so that a pack is replaced as well
    filled(first, list(some_runs(data, 10))[3:])
    before = contents(first)
    whole = killed(tmp_path / "first", tmp_path / "whole", 10_000)
    steps = 10_000 - int(whole.stdout.split()[1])
    assert steps > 60
    clean = tree(tmp_path / "whole")
    rng = random.Random(8)
    points = sorted(rng.sample(range(steps), 8))
    for point in points:
        root = tmp_path / f"at-{point}"
        done = killed(tmp_path / "first", root, point)
        assert done.returncode == -signal.SIGKILL, (point, done.stderr)
        store = Store.open(root)
        assert contents(store) == before, point
        assert sorted(counted(store.uris("samples"))) == sorted(before), point
        assert store.scan().problems == ()
        again = compact(store, grace=NOW)
        assert again.problems == []
        assert contents(Store.open(root)) == before
        assert tree(root) == clean, point  # nothing is left over


def killed(source, root, point):
    subprocess.run(["cp", "-a", source, root], check=True)
    return killed_at(point, KILLED, root)


def tree(root):
    """The files of a store, packs without their random part."""
    paths = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(re.sub(r"^packs/(\d{4}-\d\d)[^/]*", r"packs/\1", path) for path in paths)


def test_a_disk_that_is_full_leaves_everything_as_it_was(tmp_path, data):
    class Full(LocalFiles):
        left = 3

        def put(self, path, data):
            if path.startswith("packs/"):
                self.left -= 1
            if self.left < 0:
                raise OSError(28, "No space left on device")
            super().put(path, data)

    store = filled(Store.open(tmp_path), some_runs(data, 4))
    before = contents(store)
    with pytest.raises(StoreError, match="cannot be written: No space left on device"):
        compact(Store(Full(tmp_path), "here"), grace=NOW)
    assert contents(Store.open(tmp_path)) == before
    assert compact(store, grace=NOW).problems == []
    assert contents(store) == before
    for run_id in store.runs():
        store.verify(run_id)
    assert len(names(store, "packs")) == len(store.catalogue.index().packs)
