"""Everything that reads what others wrote: each with valid inputs, and the errors with which it may refuse others."""

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from results.contract.archive import ArchiveError, export_runs, import_runs
from results.contract.canaries import parse as parse_canaries
from results.contract.manifest import Manifest, ManifestError
from results.contract.packs import Index, IndexDamagedError
from results.contract.schema import EVENTS, SAMPLES, TableError
from results.contract.store import Store, StoreError
from results.contract.tables import from_parquet
from results.contract.untrusted import visible
from results.criteria.judgement import UnknownExperimentError, judge
from results.series import series_file
from testbed.errors import TestbedError
from testbed.faults.parse import parse_fault
from testbed.faults.programs import store_proxy
from testbed.incidents.cluster_evidence import gathered
from testbed.incidents.evidence_text import read_texts
from testbed.incidents.file_capture import captured_files
from testbed.incidents.read import loads as load_incident
from testbed.kafka import java_formats
from testbed.kafka.command_config import CommandConfig
from testbed.reassignment.metadata_log import MetadataLogError, parse, replay
from testbed.reassignment.plan_file import load_plan, plan_from_json
from testbed.topology import loads as load_topology
from testbed.units import UnitError, parse_bit_rate, parse_byte_rate, parse_duration, parse_share, parse_size
from tests.incidents.files import SMALL
from tests.results.many import filled, some_runs
from tests.results.synthetic import synthetic_run

ROOT = Path(__file__).parents[2]
Read = Callable[[bytes, Path], object]


@dataclass(frozen=True)
class Reader:
    """`read` is given the input and an empty folder of its own. `seeds` are inputs that it accepts."""

    name: str
    read: Read
    refuses: tuple[type[Exception], ...]
    seeds: tuple[bytes, ...] = field(repr=False)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _file(read: Callable[[Path], object], name: str) -> Read:
    def from_file(data: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(data)
        return read(path)

    return from_file


def _archive(data: bytes, folder: Path) -> object:
    (folder / "runs.tar").write_bytes(data)
    store = Store.open(folder / "store")
    done = import_runs(store, folder / "runs.tar")
    outside = [path for path in folder.iterdir() if path.name not in ("runs.tar", "store")]
    assert not outside, f"an import wrote {outside}"
    for run_id in done.new:
        store.manifest(run_id)
        store.samples(run_id)
    return done


def _manifest(data: bytes, _folder: Path) -> object:
    """A manifest that can be read is judged: no value in it ends the judgement with anything but findings."""
    manifest = Manifest.from_json(data, "manifest")
    run = _run()
    return judge(manifest, run.samples.slice(0, 50), run.events)


def _units(data: bytes, _folder: Path) -> None:
    for each in (parse_bit_rate, parse_byte_rate, parse_duration, parse_share, parse_size):
        try:
            each(_text(data))
        except UnitError as error:
            assert str(error).isprintable(), str(error)


def _fault(data: bytes, _folder: Path) -> object:
    return parse_fault(_text(data))


def _visible(data: bytes, _folder: Path) -> None:
    shown = visible(_text(data))
    assert all(each.isprintable() or each in "\n\t\xa0" for each in shown)
    shown.encode()


def _request(data: bytes, _folder: Path) -> None:
    method, target, _headers = store_proxy.parse_head(data)
    store_proxy.operation(method, target)
    assert store_proxy.forwarded(data).endswith(b"\r\n\r\n")


@cache
def _run():
    return synthetic_run()


def readers() -> Iterator[Reader]:
    """Every reader, in the order of their names."""
    run = _run()
    data = run.data()
    with tempfile.TemporaryDirectory() as folder:
        store = filled(Store.open(Path(folder) / "store"), some_runs(data, 2))
        export_runs(store, store.runs(), Path(folder) / "runs.tar")
        archive = (Path(folder) / "runs.tar").read_bytes()
        run_id = store.runs()[0]
        files = store.files
        samples = files.read(f"runs/{run_id}/samples.parquet")
        events = files.read(f"runs/{run_id}/events.parquet")
        manifest = files.read(f"manifests/{run_id}.json")
    plan = plan_from_json(
        json.dumps({"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2]}]})
    )
    yield Reader("archive", _archive, (ArchiveError, StoreError), (archive,))
    yield Reader("canaries", lambda d, _f: parse_canaries(d, "c"), (StoreError,), (b'{"cpu": 1.5, "nic": 2}',))
    yield Reader(
        "command-config",
        _file(CommandConfig.load, "client.properties"),
        (TestbedError,),
        (
            b"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
            b'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";\n',
            b"security.protocol=SSL\nssl.truststore.location=ca.pem\nclient.id=\\u0041b\n",
        ),
    )
    yield Reader("events", lambda d, _f: from_parquet(d, run_id, EVENTS, "events"), (TableError,), (events,))
    evidence = sorted((ROOT / "tests" / "incidents" / "files").glob("*/*"))
    by_cluster = [
        b"".join(path.read_bytes() for path in evidence if path.parent.name == name) for name in ("kraft", "zookeeper")
    ]
    yield Reader(
        "evidence",
        _file(lambda path: captured_files(gathered(read_texts([path]))), "evidence"),
        (TestbedError,),
        tuple(by_cluster),
    )
    yield Reader(
        "fault",
        _fault,
        (TestbedError,),
        (b"nic-rate host=b2 rate=50mbit", b"disk-slow host=b1 rate=5MB/s", b"client-stampede host=b1 lasts=10s"),
    )
    yield Reader(
        "history",
        _file(series_file.read, "history.csv"),
        (series_file.SeriesFileError,),
        (
            b"commit,seconds\na,1.5\nb,2\nc,3e1\n",
            b'[{"commit": "a", "s": 1}, {"commit": "b", "s": 2}]',
            b'{"s": [1, 2]}',
        ),
    )
    incidents = sorted((ROOT / "topologies" / "incidents").glob("*.yaml"))
    yield Reader(
        "incident",
        lambda d, _f: load_incident(_text(d), "x.yaml"),
        (TestbedError,),
        (SMALL.encode(), *(path.read_bytes() for path in incidents)),
    )
    yield Reader("index", lambda d, _f: Index.from_json(d, "i"), (IndexDamagedError, StoreError), (b'{"schema": 2}',))
    yield Reader(
        "key-store",
        _file(lambda path: java_formats.trusted_from_file(path, None, "secret"), "store.p12"),
        (java_formats.KeyStoreError,),
        (
            b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
            b"\x30\x82\x01\x00\x02\x01\x03",
            b"\xfe\xed\xfe\xed",
        ),
    )
    yield Reader("manifest", _manifest, (ManifestError, UnknownExperimentError), (manifest,))
    yield Reader(
        "metadata-log",
        lambda d, _f: replay(parse(_text(d).splitlines())),
        (MetadataLogError,),
        (
            b"| offset: 3 CreateTime: 1700000000000 keySize: -1 valueSize: 9 sequence: -1 headerKeys: [] payload: "
            b'{"type":"TOPIC_RECORD","version":0,"data":{"name":"a","topicId":"x"}}\n',
        ),
    )
    yield Reader("plan", _file(load_plan, "plan.json"), (TestbedError,), (plan.to_json().encode(),))
    yield Reader("samples", lambda d, _f: from_parquet(d, run_id, SAMPLES, "samples"), (TableError,), (samples,))
    yield Reader(
        "s3-request", _request, (ValueError,), (b"PUT /b/k?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",)
    )
    topologies = sorted((ROOT / "topologies").glob("*.yaml"))
    yield Reader(
        "topology",
        lambda d, _f: load_topology(_text(d), "x.yaml"),
        (TestbedError,),
        tuple(path.read_bytes() for path in topologies),
    )
    yield Reader("units", _units, (), (b"10MB/s", b"1.5 Gbit/s", b"20ms", b"0.1%", b"5GiB"))
    yield Reader("visible", _visible, (), ("a\x1b[2Jb\u202ec\x07".encode(), b"\xff\x9b31m plain"))
