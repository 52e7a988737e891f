"""Files of others: no code runs, no path leaves its folder, no size is without a bound."""

import hashlib
import io
import json
import tarfile
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from results.contract import tables, untrusted
from results.contract.archive import ArchiveError, export_runs, import_runs
from results.contract.files import LocalFiles
from results.contract.maintenance import compact
from results.contract.manifest import Manifest, ManifestError
from results.contract.schema import SAMPLES, TableError
from results.contract.store import Store, StoreError
from results.contract.untrusted import parse_json, read_text
from results.series import series_file
from testbed.errors import TestbedError
from testbed.reassignment.plan_file import load_plan
from testbed.topology import loads as load_topology
from tests.results.many import filled, some_runs
from tests.results.synthetic import synthetic_run

OUTSIDE = "a file of someone else"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    store = filled(Store.open(folder / "store"), some_runs(synthetic_run().data(), 1))
    export_runs(store, store.runs(), folder / "runs.tar")
    return (folder / "runs.tar").read_bytes(), store.runs()[0]


def rebuilt(archive, change):
    """The archive with each member as `change` returns it: a list of (TarInfo, bytes or None)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(fileobj=out, mode="w") as new:
        for member in old:
            for info, data in change(member, old.extractfile(member).read()):
                new.addfile(info, None if data is None else io.BytesIO(data))
    return out.getvalue()


def member(name, data=b"x", kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(data or b""), kind, target
    return info, data


@pytest.mark.parametrize(
    "extra",
    [
        member("../outside.txt"),
        member("/outside.txt"),
        member("runs/../../outside.txt"),
        member("runs/20260901T030000Z-kip73-two-node-run000/../../../outside.txt"),
        member("manifests/../../outside.json"),
        member("outside.txt", None, tarfile.SYMTYPE, "/etc/passwd"),
        member("runs/20260901T030000Z-kip73-two-node-run000/samples.parquet", None, tarfile.SYMTYPE, "/etc/passwd"),
        member(
            "runs/20260901T030000Z-kip73-two-node-run000/samples.parquet", None, tarfile.LNKTYPE, "../../outside.txt"
        ),
        member("runs", None, tarfile.DIRTYPE),
        member("runs/20260901T030000Z-kip73-two-node-run000/report.html", None, tarfile.CHRTYPE),
        member("runs/20260901T030000Z-kip73-two-node-run000/report.html", None, tarfile.FIFOTYPE),
    ],
    ids=lambda extra: f"{extra[0].name[-24:]}-{extra[0].type!r}",
)
def test_an_archive_writes_nothing_outside_of_its_store(tmp_path, archive, extra):
    data, run_id = archive
    (tmp_path / "outside.txt").write_text(OUTSIDE)

    def change(old, content):
        plain = tarfile.TarInfo(old.name)
        plain.size = len(content)
        # Behind the head, before everything else.
        return [(plain, content), extra] if old.name == "archive.json" else [(plain, content)]

    (tmp_path / "runs.tar").write_bytes(rebuilt(data, change))
    store = Store.open(tmp_path / "store")
    done = import_runs(store, tmp_path / "runs.tar")
    assert (tmp_path / "outside.txt").read_text() == OUTSIDE
    assert {path.name for path in tmp_path.iterdir()} == {"outside.txt", "runs.tar", "store"}
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_symlink()]
    assert done.new in ([run_id], [])
    if done.new:
        store.verify(run_id)


def test_an_archive_with_a_huge_member_is_refused_before_it_is_read(tmp_path, archive):
    data, run_id = archive
    with tarfile.open(fileobj=io.BytesIO(data)) as old:
        head = old.extractfile("archive.json").read()
    huge = tarfile.TarInfo(f"runs/{run_id}/samples.parquet")
    huge.size = 2**40
    plain = tarfile.TarInfo("archive.json")
    plain.size = len(head)
    file = tmp_path / "runs.tar"
    file.write_bytes(plain.tobuf() + head + bytes(-len(head) % 512) + huge.tobuf() + b"x" * 512)
    begun = time.monotonic()
    done = import_runs(Store.open(tmp_path / "store"), file)
    assert time.monotonic() - begun < 5
    assert done.new == []
    assert "allowed are 1073741824" in done.problems[0]


def behind_the_head(archive, header):
    """The archive with a header of tar's own between its head and everything else."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as old:
        old.next()
        at = old.next().offset
    return archive[:at] + header + archive[at:]


def sparse(name, size):
    """A header of a sparse file: no byte follows, and `size` zeros are read."""
    info = tarfile.TarInfo(name)
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(format=tarfile.GNU_FORMAT))
    header[386:410] = b"00000000000\0" * 2
    header[483:495] = f"{size:011o}\0".encode()
    header[148:156] = f"{256 + sum(header[:148]) + sum(header[156:512]):06o}\0 ".encode()
    return bytes(header)


def test_a_sparse_member_is_no_file_of_a_run(tmp_path, archive, monkeypatch):
    """Some bytes of an archive would otherwise fill the memory: each such member is read whole."""
    data, run_id = archive
    (tmp_path / "runs.tar").write_bytes(behind_the_head(data, sparse(f"runs/{run_id}/samples.parquet", 2**28)))
    sizes = []
    read = tarfile.ExFileObject.read
    monkeypatch.setattr(tarfile.ExFileObject, "read", lambda self, *n: sizes.append(len(got := read(self, *n))) or got)
    done = import_runs(Store.open(tmp_path / "store"), tmp_path / "runs.tar")
    assert (done.new, done.problems) == ([run_id], [])
    assert max(sizes) < 2**24


@pytest.mark.parametrize("headers", [{"GNU.sparse.map": "a,b"}, {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}])
def test_an_archive_with_a_wrong_number_in_a_header_is_damaged(tmp_path, archive, headers):
    data, run_id = archive
    info = tarfile.TarInfo(f"runs/{run_id}/samples.parquet")
    info.pax_headers = headers
    (tmp_path / "runs.tar").write_bytes(behind_the_head(data, info.tobuf(format=tarfile.PAX_FORMAT)))
    done = import_runs(Store.open(tmp_path / "store"), tmp_path / "runs.tar")
    assert "runs.tar is cut or damaged: a header is damaged: " in done.problems[0]
    assert f"run {run_id}: not in " in done.problems[1]


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + "0" * 400, "NaN", "Infinity"])
def test_a_number_that_no_float_holds_is_refused_in_a_manifest_and_hides_no_other_run(tmp_path, number):
    """Such a number was read as infinite, which JSON cannot write: the import ended with a traceback."""
    source = filled(Store.open(tmp_path / "source"), some_runs(synthetic_run().data(), 2))
    first, second = source.runs()
    export_runs(source, source.runs(), tmp_path / "runs.tar")

    def change(old, content):
        if old.name == "archive.json":
            content = json.dumps({"schema": 1, "runs": {}}).encode()
        elif old.name == f"manifests/{first}.json":
            content = content.replace(b'"document": {', f'"document": {{"x": {number},'.encode(), 1)
        info = tarfile.TarInfo(old.name)
        info.size = len(content)
        return [(info, content)]

    (tmp_path / "hostile.tar").write_bytes(rebuilt((tmp_path / "runs.tar").read_bytes(), change))
    target = Store.open(tmp_path / "store")
    done = import_runs(target, tmp_path / "hostile.tar")
    assert done.new == target.runs() == [second]
    assert f"{number:.40} is not a JSON number, or too large for a float" in done.problems[0]
    assert not (tmp_path / "store" / "runs" / first).exists()


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    for content in (b"", b"PK\x03\x04", b"\x1f\x8b" + b"x" * 100, b"x" * 5000):
        (tmp_path / "runs.tar").write_bytes(content)
        with pytest.raises(ArchiveError, match="is no archive of runs"):
            import_runs(Store.open(tmp_path / "store"), tmp_path / "runs.tar")


@pytest.mark.parametrize(
    "path", ["../outside.txt", "/outside.txt", "runs/../../outside.txt", "runs/x/../../../outside.txt"]
)
def test_a_manifest_cannot_make_a_store_read_or_remove_a_file_outside(tmp_path, archive, path):
    data, run_id = archive
    (tmp_path / "runs.tar").write_bytes(data)
    (tmp_path / "outside.txt").write_text(OUTSIDE)
    store = Store.open(tmp_path / "store")
    import_runs(store, tmp_path / "runs.tar")
    file = tmp_path / "store" / "manifests" / f"{run_id}.json"
    document = json.loads(file.read_text())
    path = str(tmp_path / "outside.txt") if path.startswith("/") else path
    for entry in document["files"]:
        digest = hashlib.sha256(OUTSIDE.encode()).hexdigest()
        entry |= {"path": path, "bytes": len(OUTSIDE), "sha256": digest}
    document["report"] = path
    file.write_text(json.dumps(document))
    found = Store.open(tmp_path / "store")
    assert found.report(run_id) is None
    for read in (found.samples, found.events, found.criteria, found.verify):
        with pytest.raises(StoreError):
            read(run_id)
    files = LocalFiles(tmp_path / "store")
    for act in (files.discard, files.read, files.open, files.list, lambda p: files.put(p, b"x"), files.claim):
        with pytest.raises(FileNotFoundError, match="outside of the store"):
            act(path)
    assert (tmp_path / "outside.txt").read_text() == OUTSIDE


@pytest.mark.parametrize("path", ["runs", "runs/\0x", f"runs/{'y' * 300}"], ids=["folder", "nul", "long"])
def test_a_manifest_that_names_no_file_is_damage_of_its_run_alone(tmp_path, archive, path):
    data, run_id = archive
    (tmp_path / "runs.tar").write_bytes(data)
    store = Store.open(tmp_path / "store")
    import_runs(store, tmp_path / "runs.tar")
    file = tmp_path / "store" / "manifests" / f"{run_id}.json"
    document = json.loads(file.read_text())
    for entry in document["files"]:
        entry["path"] = path
    file.write_text(json.dumps(document))
    for read in (store.samples, store.verify):
        with pytest.raises(StoreError, match="is missing|cannot be read"):
            read(run_id)
    assert export_runs(store, [run_id], tmp_path / "b.tar")[0] == []


def test_two_columns_of_one_name_are_refused():
    table = pa.table([pa.array([1.0])] * 2, names=["value", "value"])
    sink = io.BytesIO()
    pq.write_table(table, sink)
    with pytest.raises(TableError, match="two columns have one name"):
        tables.from_parquet(sink.getvalue(), "x", SAMPLES, "samples")


def test_criteria_that_are_none_are_damage_of_their_run(tmp_path, archive):
    data, run_id = archive
    (tmp_path / "runs.tar").write_bytes(data)
    store = Store.open(tmp_path / "store")
    import_runs(store, tmp_path / "runs.tar")
    criteria = store.table(run_id, "criteria")
    verdicts = pa.array(["perhaps"] * len(criteria))
    place = criteria.column_names.index("verdict")
    content = tables.to_parquet(run_id, criteria.set_column(place, criteria.schema.field(place), verdicts))
    (tmp_path / "store" / "runs" / run_id / "criteria.parquet").write_bytes(content)
    file = tmp_path / "store" / "manifests" / f"{run_id}.json"
    document = json.loads(file.read_text())
    (entry,) = (entry for entry in document["files"] if entry["kind"] == "criteria")
    entry |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    file.write_text(json.dumps(document))
    with pytest.raises(StoreError, match=f"run {run_id}: its criteria are damaged: .*'perhaps' is none of pass"):
        store.criteria(run_id)


@pytest.mark.parametrize("content", [pa.table({"x": [1]}), pa.table({"run_id": ["a"]})])
def test_a_pack_without_manifests_is_damaged(tmp_path, content):
    store = filled(Store.open(tmp_path / "store"), some_runs(synthetic_run().data(), 2))
    compact(store, grace=timedelta(0))
    (file,) = (tmp_path / "store" / "packs").rglob("manifests.parquet")
    pq.write_table(content, file)
    for run_id in store.runs():
        with pytest.raises(StoreError, match="corrupt manifest .*missing columns"):
            Store.open(tmp_path / "store").manifest(run_id)
    assert len(store.scan().problems) == 2


@pytest.mark.parametrize("html", [["a", None], [1, 2]], ids=["null", "number"])
def test_a_report_in_a_pack_that_is_none_is_damaged(tmp_path, html):
    store = filled(Store.open(tmp_path / "store"), some_runs(synthetic_run().data(), 2))
    compact(store, grace=timedelta(0))
    (file,) = (tmp_path / "store" / "packs").rglob("report.parquet")
    run_id = store.runs()[1]
    for table in (pa.table({"run_id": [run_id, run_id], "html": html}), pa.table({"run_id": [run_id]})):
        pq.write_table(table, file)
        for read in (store.report, store.verify):
            with pytest.raises(StoreError, match=r"report\.parquet"):
                read(run_id)


def test_a_pack_without_statistics_is_damaged(tmp_path):
    store = filled(Store.open(tmp_path / "store"), some_runs(synthetic_run().data(), 2))
    compact(store, grace=timedelta(0))
    (file,) = (tmp_path / "store" / "packs").rglob("samples.parquet")
    pq.write_table(pq.read_table(file), file, write_statistics=False)
    with pytest.raises(StoreError, match="has 0 rows of it, the manifest says"):
        Store.open(tmp_path / "store").samples(store.runs()[0])


def test_a_pack_that_decompresses_to_very_much_is_refused(tmp_path, monkeypatch):
    store = filled(Store.open(tmp_path / "store"), some_runs(synthetic_run().data(), 2))
    compact(store, grace=timedelta(0))
    monkeypatch.setattr(tables, "MOST_ROWS", 30)
    with pytest.raises(StoreError, match="a run's table has 30 rows at most"):
        Store.open(tmp_path / "store").samples(store.runs()[0])


def test_a_small_table_that_decompresses_to_very_much_is_refused(monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 100_000)
    sink = io.BytesIO()
    pq.write_table(pa.table({"run_id": pa.array(["x"] * 200_000)}), sink, compression="zstd")
    assert len(sink.getvalue()) < 10_000
    with pytest.raises(TableError, match=r"200000 rows of \d+ bytes; a run's table has 100000 rows at most"):
        tables.from_parquet(sink.getvalue(), "x", SAMPLES, "samples")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('["\\ud800"]', "half of a surrogate pair"),
        ("9" * 5000, "digit"),
        ("{", "Expecting"),
    ],
    ids=["lists", "objects", "surrogate", "digits", "cut"],
)
def test_hostile_json_is_a_refusal(tmp_path, text, why):
    with pytest.raises(ValueError, match=why):
        parse_json(text)
    with pytest.raises(ManifestError):
        Manifest.from_json(text)
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(TestbedError, match=r"plan\.json"):
        load_plan(file)


def test_a_pair_of_surrogates_is_a_character():
    assert parse_json('["\\ud83d\\ude00"]') == parse_json(b'["\\uD83D\\uDE00"]') == ["\U0001f600"]


def test_a_file_larger_than_its_bound_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(untrusted, "MOST_BYTES", 100)
    file = tmp_path / "plan.json"
    with file.open("wb") as stream:
        stream.truncate(2**40)
    with pytest.raises(ValueError, match="larger than 100 bytes"):
        read_text(file)
    with pytest.raises(series_file.SeriesFileError, match=r"plan\.json: larger than 100 bytes"):
        series_file.read(file)
    with pytest.raises(ValueError, match="not a regular file"):
        read_text(Path("/dev/zero"))
    with pytest.raises(ValueError, match="not a regular file"):
        read_text(tmp_path)


MARK = "/tmp/testbed-hostile-yaml"
PYTHON = [
    f"!!python/object/apply:os.system ['touch {MARK}']",
    f"!!python/object/new:subprocess.Popen [['touch', '{MARK}']]",
    "!!python/name:os.system",
    "!!python/module:os",
    f"{{name: !!python/object/apply:os.system ['touch {MARK}']}}",
]


@pytest.mark.parametrize("text", PYTHON)
def test_yaml_runs_no_code(text):
    with pytest.raises(TestbedError, match="the tag"):
        load_topology(text)
    assert not Path(MARK).exists()


def test_yaml_that_expands_is_refused_soon():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    begun = time.monotonic()
    with pytest.raises(TestbedError, match="aliases expand to more than"):
        load_topology("\n".join(lines))
    assert time.monotonic() - begun < 5
