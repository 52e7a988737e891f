"""Runs carried from store to store: once, whole, and damaged ones by name."""

import hashlib
import io
import json
import random
import signal
import tarfile
from dataclasses import replace
from datetime import timedelta

import pyarrow.compute as pc
import pytest

from results.contract import durable
from results.contract.archive import ArchiveError, export_runs, import_runs
from results.contract.canaries import canaries, put_canaries
from results.contract.maintenance import compact, set_aside
from results.contract.store import Store, StoreError
from results.nights.retention import RetentionRule, retain
from tests.killed_process import killed_at
from tests.results.many import contents, filled, some_runs


@pytest.fixture
def source(tmp_path, data):
    return filled(Store.open(tmp_path / "source"), some_runs(data, 4))


def exported(store, path, run_ids=None):
    written, problems = export_runs(store, run_ids or store.runs(), path)
    assert problems == []
    assert written == sorted(run_ids or store.runs())
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_an_archive_is_a_store_and_importing_it_twice_is_once(tmp_path, source, packed):
    before = contents(source)
    loose = exported(source, tmp_path / "loose.tar").read_bytes()
    if packed:
        compact(source, grace=timedelta(0))
    archive = exported(source, tmp_path / "runs.tar")
    assert archive.read_bytes() == loose  # the same runs, the same bytes
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    assert contents(Store.open(tmp_path / "unpacked")) == before
    target = Store.open(tmp_path / "target")
    for known in (0, 4):
        done = import_runs(target, archive)
        assert (len(done.new), len(done.known), done.problems) == (4 - known, known, [])
        assert contents(target) == before
    compact(target, grace=timedelta(0))
    assert len(import_runs(target, archive).known) == 4
    assert contents(target) == before
    for run_id in target.runs():
        target.verify(run_id)


def test_what_was_read_beside_a_run_goes_with_it(tmp_path, source):
    first, second, *_ = source.runs()
    put_canaries(source, first, {"cpu": 0.7})
    archive = exported(source, tmp_path / "a.tar")
    target = Store.open(tmp_path / "target")
    assert import_runs(target, archive).problems == []
    assert canaries(target, first) == {"cpu": 0.7}
    assert canaries(target, second) == {}
    assert exported(target, tmp_path / "b.tar").read_bytes() == archive.read_bytes()


def test_what_was_read_beside_a_run_may_come_later(tmp_path, source):
    first = source.runs()[0]
    target = Store.open(tmp_path / "target")
    import_runs(target, exported(source, tmp_path / "a.tar"))
    put_canaries(source, first, {"cpu": 0.7})
    archive = exported(source, tmp_path / "b.tar")
    assert import_runs(target, archive).problems == []
    assert canaries(target, first) == {"cpu": 0.7}
    put_canaries(target, first, {"cpu": 0.8})  # more was known later
    assert import_runs(target, archive).problems == []
    assert canaries(target, first) == {"cpu": 0.8}
    fresh = Store.open(tmp_path / "fresh")
    put_canaries(fresh, first, {"cpu": 0.9})  # of a run that was killed
    assert import_runs(fresh, archive).problems == []
    assert canaries(fresh, first) == {"cpu": 0.7}


def test_canaries_that_cannot_be_read_stay_where_they_are(tmp_path, source):
    first = source.runs()[0]
    source.files.put(f"canaries/{first}.json", b"[1]")
    written, [problem] = export_runs(source, source.runs(), tmp_path / "a.tar")
    assert written == source.runs()
    assert f"canaries/{first}.json" in problem
    assert import_runs(Store.open(tmp_path / "target"), tmp_path / "a.tar").problems == []


def test_a_reading_that_no_float_holds_is_refused(tmp_path, source):
    first = source.runs()[0]
    source.files.put(f"canaries/{first}.json", b'{"cpu": 1' + b"0" * 400 + b"}")
    with pytest.raises(StoreError, match="not a canary's readings"):
        canaries(source, first)
    _written, [problem] = export_runs(source, source.runs(), tmp_path / "a.tar")
    assert f"canaries/{first}.json" in problem


def test_an_export_leaves_nothing_of_another_one_to_the_same_file(tmp_path, source):
    """Both wrote one partial file: each could move what the other had half written."""
    names = []
    sync = durable.sync

    def meanwhile(path):
        names.append(path.name)
        if len(names) == 1:
            exported(source, tmp_path / "a.tar", source.runs()[:1])
        sync(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable, "sync", meanwhile)
        exported(source, tmp_path / "a.tar")
    assert len(import_runs(Store.open(tmp_path / "target"), tmp_path / "a.tar").new) == 4
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_archive_of_before_there_were_canaries_in_it_is_read(tmp_path, source):
    def older(name, data):
        head = json.loads(data) if name == "archive.json" else {}
        return name, json.dumps({k: head[k] for k in ("schema", "runs")}).encode() if head else data

    done = import_runs(Store.open(tmp_path / "target"), rewritten(exported(source, tmp_path / "a.tar"), older))
    assert (len(done.new), done.problems) == (4, [])


def test_a_damaged_run_is_left_out_and_named(tmp_path, source):
    bad = source.runs()[1]
    path = tmp_path / "source" / "runs" / bad / "events.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    written, problems = export_runs(source, source.runs(), tmp_path / "a.tar")
    assert written == [r for r in source.runs() if r != bad]
    assert len(problems) == 1
    assert str(path) in problems[0]


def test_a_run_that_goes_while_an_archive_is_written_is_left_out_of_all_of_it(tmp_path, source, monkeypatch):
    first, gone, *rest = source.runs()
    for run_id in source.runs():
        put_canaries(source, run_id, {"cpu": 0.7})
    read = Store.table

    def meanwhile(store, run_id, kind):
        if run_id == gone and kind == "events":  # when some of it was read
            assert retain(source, RetentionRule(newest=2), keep=[first], grace=timedelta(0)).gone == [gone]
        return read(store, run_id, kind)

    monkeypatch.setattr(Store, "table", meanwhile)
    written, problems = export_runs(source, source.runs(), tmp_path / "a.tar")
    monkeypatch.undo()
    assert (written, problems) == ([first, *rest], [f"no run {gone} in {source.location}"])
    done = import_runs(Store.open(tmp_path / "target"), tmp_path / "a.tar")
    assert (done.new, done.problems) == ([first, *rest], [])


def rewritten(archive, edit):
    """The archive with each file's name and bytes put through `edit`; None leaves one out."""
    out = archive.with_name("edited.tar")
    with tarfile.open(archive) as tar, tarfile.open(out, "w") as new:
        for member in tar:
            found = edit(member.name, tar.extractfile(member).read())
            if found is not None:
                info = tarfile.TarInfo(found[0])
                info.size = len(found[1])
                new.addfile(info, io.BytesIO(found[1]))
    return out


@pytest.mark.parametrize("name", ["samples.parquet", "criteria.parquet", "report.html", "manifest", "canaries"])
@pytest.mark.parametrize("how", ["flipped", "cut", "gone"])
def test_what_is_damaged_in_an_archive_is_named_and_loses_no_other_run(tmp_path, source, name, how):
    run_id = source.runs()[1]
    put_canaries(source, run_id, {"cpu": 0.7})
    folders = {"manifest": "manifests", "canaries": "canaries"}
    path = f"{folders[name]}/{run_id}.json" if name in folders else f"runs/{run_id}/{name}"

    def edit(member, data):
        if member != path:
            return member, data
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        return {"flipped": (member, flipped), "cut": (member, data[:-1]), "gone": None}[how]

    target = Store.open(tmp_path / "target")
    done = import_runs(target, rewritten(exported(source, tmp_path / "a.tar"), edit))
    assert len(done.problems) == 1, done.problems
    assert f"run {run_id}: " in done.problems[0]
    assert done.new == target.runs() == [r for r in source.runs() if r != run_id]
    assert target.scan().problems == ()
    assert import_runs(target, exported(source, tmp_path / "b.tar")).new == [run_id]
    assert contents(target) == contents(source)


def test_a_cut_archive_brings_what_it_has_and_says_what_it_has_not(tmp_path, source):
    archive = exported(source, tmp_path / "a.tar").read_bytes()
    runs = source.runs()
    for cut in sorted(random.Random(3).sample(range(2048, len(archive) - 11_000), 6)):
        (tmp_path / "cut.tar").write_bytes(archive[:cut])
        target = Store.open(tmp_path / f"target-{cut}")
        done = import_runs(target, tmp_path / "cut.tar")
        assert done.new == target.runs() == runs[: len(done.new)]
        assert len(done.new) < len(runs)
        for missing in runs[len(done.new) :]:
            assert any(missing in problem for problem in done.problems)
        for run_id in target.runs():
            target.verify(run_id)


SIZE = 130
"""Where a tar's header says how large its file is."""


@pytest.mark.parametrize("name", ["samples.parquet", "report.html", "manifests", "canaries"])
def test_a_flipped_bit_in_a_header_loses_the_run_that_it_is_of_and_no_other(tmp_path, source, name):
    run_id = source.runs()[1]
    put_canaries(source, run_id, {"cpu": 0.7})
    archive = exported(source, tmp_path / "a.tar")
    with tarfile.open(archive) as tar:
        (header,) = [each.offset for each in tar if run_id in each.name and name in each.name]
    data = bytearray(archive.read_bytes())
    data[header + SIZE] ^= 1
    archive.write_bytes(data)
    target = Store.open(tmp_path / "target")
    done = import_runs(target, archive)
    assert len(done.problems) == 1, done.problems
    assert done.problems[0].startswith(f"run {run_id}: ")
    assert done.new == target.runs() == [r for r in source.runs() if r != run_id]


def test_without_its_head_an_archive_is_none(tmp_path, source):
    archive = exported(source, tmp_path / "a.tar")
    data = bytearray(archive.read_bytes())
    data[SIZE] ^= 1
    archive.write_bytes(data)
    with pytest.raises(ArchiveError, match="it begins with runs/.*, not with archive.json"):
        import_runs(Store.open(tmp_path / "target"), archive)
    archive.write_bytes(bytes(20_480))
    with pytest.raises(ArchiveError, match="is no archive of runs: there is no archive.json in it"):
        import_runs(Store.open(tmp_path / "target"), archive)


@pytest.mark.parametrize("head", [b"", b"{", b"[1]", b'{"schema": 1}', b'{"schema": 1, "runs": [1]}', b"\xff"])
def test_a_damaged_head_is_told_and_the_manifests_vouch_for_their_runs(tmp_path, source, head):
    first, bad, *rest = source.runs()
    put_canaries(source, first, {"cpu": 0.7})

    def edit(name, data):
        if name == "archive.json":
            return name, head
        return name, data[:-1] if name == f"runs/{bad}/samples.parquet" else data

    target = Store.open(tmp_path / "target")
    done = import_runs(target, rewritten(exported(source, tmp_path / "a.tar"), edit))
    assert done.new == target.runs() == [first, *rest]
    told, damaged = done.problems
    assert "archive.json is damaged: " in told and "what canaries read" in told
    assert damaged.startswith(f"run {bad}: samples.parquet has")
    assert canaries(target, first) == {}
    assert {r: each for r, each in contents(source).items() if r != bad} == contents(target)


def test_a_head_of_a_later_version_is_refused(tmp_path, source):
    def later(name, data):
        return name, json.dumps({**json.loads(data), "schema": 2}).encode() if name == "archive.json" else data

    archive = rewritten(exported(source, tmp_path / "a.tar"), later)
    with pytest.raises(ArchiveError, match="archive of schema 2; this version reads 1"):
        import_runs(Store.open(tmp_path / "target"), archive)


def test_archives_one_behind_the_other_are_one(tmp_path, source):
    runs = source.runs()
    both = [exported(source, tmp_path / f"{i}.tar", part).read_bytes() for i, part in enumerate((runs[:2], runs[2:]))]
    (tmp_path / "both.tar").write_bytes(b"".join(both))
    target = Store.open(tmp_path / "target")
    done = import_runs(target, tmp_path / "both.tar")
    assert (done.new, done.problems) == (runs, [])
    assert contents(target) == contents(source)


def test_another_run_under_a_known_id_is_refused(tmp_path, source, data):
    first = next(some_runs(data, 1))
    other = Store.open(tmp_path / "other")
    other.commit(replace(first, samples=first.samples.slice(1)))
    done = import_runs(source, exported(other, tmp_path / "a.tar"))
    assert done.problems == [
        f"run {first.manifest.run_id}: {source.location} has another run of that id: samples differ; it stays"
    ]
    assert source.samples(first.manifest.run_id).num_rows == 40


def test_a_run_with_a_sample_that_is_no_number_is_known_when_it_comes_again(tmp_path, data):
    run = next(some_runs(data, 1))
    at = run.samples.column_names.index("value")
    value = pc.if_else(pc.equal(run.samples["host"], "b1"), float("nan"), run.samples["value"])
    samples = run.samples.set_column(at, run.samples.schema.field(at), value)
    store = filled(Store.open(tmp_path / "source"), [replace(run, samples=samples)])
    done = import_runs(store, exported(store, tmp_path / "a.tar"))
    assert (done.known, done.problems) == (store.runs(), [])


@pytest.mark.parametrize("content", [b"", b"x" * 5000, b"{}"])
def test_what_is_no_archive_is_refused(tmp_path, source, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ArchiveError, match="is no archive of runs"):
        import_runs(source, tmp_path / "x")


def test_nothing_is_written_by_names_in_the_archive(tmp_path, source):
    run_id = source.runs()[0]
    archive = exported(source, tmp_path / "a.tar", [run_id])

    def edit(name, data):
        if name.startswith("manifests/"):
            document = json.loads(data)
            document["files"][0]["path"] = "../../../escaped/samples.parquet"
            return name, json.dumps(document).encode()
        if name == "archive.json":
            return name, json.dumps({"schema": 1, "runs": {}}).encode()
        return (f"runs/{run_id}/../../../escaped", data) if name.endswith("events.parquet") else (name, data)

    target = Store.open(tmp_path / "deep" / "er" / "target")
    done = import_runs(target, rewritten(archive, edit))
    assert len(done.problems) == 1
    assert not list(tmp_path.rglob("escaped*"))
    assert target.runs() == []
    (tmp_path / "odd.tar").write_bytes(archive.read_bytes())
    with tarfile.open(tmp_path / "odd.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("something"))
    with pytest.raises(ArchiveError, match="begins with something, not with archive.json"):
        import_runs(target, tmp_path / "odd.tar")


def test_a_run_that_was_set_aside_comes_back_with_a_good_copy(tmp_path, source):
    archive = exported(source, tmp_path / "a.tar")
    before = contents(source)
    bad = source.runs()[2]
    (tmp_path / "source" / "runs" / bad / "samples.parquet").write_bytes(b"PAR1")
    set_aside(source, {bad: "too short"})
    assert bad not in source.runs()
    with pytest.raises(StoreError, match=f"set aside in .*/aside/{bad}: too short"):
        source.manifest(bad)
    assert (tmp_path / "source" / "aside" / bad / "samples.parquet").read_bytes() == b"PAR1"
    assert import_runs(source, archive).new == [bad]
    assert contents(source) == before


KILLED = """
import results.contract.files
from results.contract import durable
from results.contract.archive import import_runs
from results.contract.store import Store
die_writing()
import_runs(Store.open(sys.argv[1]), Path(sys.argv[2]))
"""


def test_an_import_killed_at_any_point_is_finished_by_the_next(tmp_path, source):
    archive = exported(source, tmp_path / "a.tar")
    before = contents(source)
    for point in sorted(random.Random(5).sample(range(50), 6)):
        root = tmp_path / f"at-{point}"
        done = killed_at(point, KILLED, root, archive)
        assert done.returncode == -signal.SIGKILL, done.stderr
        store = Store.open(root)
        assert store.scan().problems == ()
        found = contents(store)
        assert found == {run_id: before[run_id] for run_id in found}
        again = import_runs(store, archive)
        assert again.problems == []
        assert again.known == sorted(found)
        assert contents(store) == before


def test_two_archives_of_the_same_run_differ_in_nothing(tmp_path, source):
    digests = {hashlib.sha256(exported(source, tmp_path / f"{i}.tar").read_bytes()).hexdigest() for i in range(2)}
    assert len(digests) == 1
