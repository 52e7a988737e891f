"""The result store among objects, on real MinIO: a run is there whole or not at all, also after a kill -9."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from results.contract.manifest import new_run_id
from results.contract.store import Store, StoreError
from results.spark.objects import hadoop_version, s3_settings
from results.spark.recompute import recompute
from results.spark.session import session
from testbed.faults import Faults, parse_fault
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.software.maven import s3a_jars
from testbed.topology import loads
from tests.containers.conftest import ROOT
from tests.results.synthetic import Options, synthetic_run

pytestmark = [pytest.mark.containers, pytest.mark.nightly, pytest.mark.store]
NAME = "ci-results-s3"
TOPOLOGY = """
name: results-s3
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts: {b1: {role: both}, s1: {role: objectstore, nic: {rate: 1gbit}}}
"""
BUCKET = "testbed-results"


@pytest.fixture(scope="module")
def up(own_state, engine):
    testbed = Testbed.up(loads(TOPOLOGY), name=NAME, progress=print)
    yield testbed
    testbed.close()
    remove(engine, NAME)


@pytest.fixture(scope="module")
def location(up):
    """Where the store is; who may use it stands in the environment."""
    store = up.objectstore
    client = store.client()
    client.create_bucket(Bucket=BUCKET)
    client.close()
    patch = pytest.MonkeyPatch()
    patch.setenv("AWS_ACCESS_KEY_ID", store.credentials.access_key)
    patch.setenv("AWS_SECRET_ACCESS_KEY", store.credentials.secret_key)
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield f"s3a://{BUCKET}/nights?endpoint_override={store.endpoint.removeprefix('http://')}&scheme=http"
    patch.undo()


def run_data(token):
    run = synthetic_run(Options(token=token, partitions=3, log_bytes=20e6))
    return run.data()


def test_a_run_is_written_read_and_judged(location):
    store = Store.open(location)
    data = run_data("plain0")
    run_id = store.commit(data)
    assert Store.open(location).runs() == [run_id]
    store.verify(run_id)
    assert store.samples(run_id).equals(data.samples)
    with pytest.raises(StoreError, match="a run is never written twice"):
        store.commit(data)
    with session() as spark:
        assert recompute(spark, store, [run_id]).judgements[run_id].criteria == tuple(data.criteria)


# In a process of its own: the jars of a JVM that runs already are not changed.
READ = """
import json, sys
from results.spark.session import session
settings, uris = json.loads(sys.argv[1]), json.loads(sys.argv[2])
with session(settings=settings) as spark:
    print(spark.read.option("mergeSchema", True).parquet(*uris).groupBy("run_id").count().collect()[0]["count"])
"""


def test_spark_reads_it_where_it_lies(location):
    store = Store.open(location)
    data = run_data("spark0")
    run_id = store.commit(data)
    settings = s3_settings(location, s3a_jars(hadoop_version()))
    uris = [uri for uri in store.uris("samples") if run_id in uri]
    assert uris and uris[0].startswith("s3a://")
    code = [sys.executable, "-c", READ, json.dumps(settings), json.dumps(uris)]
    done = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, timeout=170, check=False)
    assert done.stdout.strip() == str(data.samples.num_rows), done.stderr[-3000:]
    assert "AWS_" not in " ".join(settings)


DYING = """
import os, pickle, signal, sys
from results.contract.files import Files
from results.contract.store import Store
left, real = int(sys.argv[3]), Files.put
def put(self, path, data):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, path, data)
Files.put = put
print(Store.open(sys.argv[1]).commit(pickle.load(open(sys.argv[2], "rb"))), flush=True)
"""


def start(folder, code, location, token, *words):
    """A process that commits a run to the store at `location`, in its own way."""
    data = folder / token
    data.write_bytes(pickle.dumps(run_data(token)))  # what is installed may have a package `tests` of its own
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, location, str(data), *map(str, words)]
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def left_whole_or_not_there(location, token):
    """Whether the run is there; what is there is whole, and of what is not nothing is seen."""
    store = Store.open(location)
    (run_id,) = {run_data(token).manifest.run_id}
    if run_id in store.runs():
        store.verify(run_id)
        assert store.unfinished_files(run_id) == []
        return True
    assert store.scan().problems == ()
    store.discard(run_id)
    assert store.unfinished_files(run_id) == []
    return False


@pytest.mark.parametrize("puts", range(5))
def test_killed_before_any_put_a_run_is_whole_or_not_there(tmp_path, location, puts):
    token = f"dying{puts}"
    process = start(tmp_path, DYING, location, token, puts)
    told = process.communicate(timeout=60)[0]
    whole = puts == 4  # samples, events, criteria, the manifest
    assert process.returncode == (0 if whole else -signal.SIGKILL)
    assert left_whole_or_not_there(location, token) is whole is bool(told)


LARGE = """
import pickle, sys
from dataclasses import replace
from results.contract.store import Store
data = pickle.load(open(sys.argv[2], "rb"))
print("writing", flush=True)
Store.open(sys.argv[1]).commit(replace(data, report_html="x" * 30_000_000))
"""


def test_killed_in_the_middle_of_a_put(tmp_path, up, location):
    """30 MB at 40 Mbit/s take 6 s."""
    with Faults(up).injected(parse_fault("nic-rate host=s1 rate=40mbit")):
        process = start(tmp_path, LARGE, location, "middle")
        assert process.stdout.readline() == "writing\n"
        time.sleep(3)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert left_whole_or_not_there(location, "middle") is False


def test_a_store_that_goes_away_while_it_is_written_to_is_an_error_and_leaves_nothing(up, location):
    store = Store.open(location)
    data = run_data("gone00")
    real, count = store.files.put, iter(range(10))
    faults = Faults(up)

    def put(path, content):
        if next(count) == 2:
            faults.add(parse_fault("objectstore-503 host=s1"))
        real(path, content)

    store.files.put = put
    with pytest.raises(StoreError, match=f"run {data.manifest.run_id} is not committed"):
        store.commit(data)
    faults.clear()
    assert left_whole_or_not_there(location, "gone00") is False
    again = replace(data, manifest=replace(data.manifest, run_id=new_run_id("kip73-two-node", token="again0")))
    assert Store.open(location).commit(again) in store.runs()
