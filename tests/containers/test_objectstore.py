"""The object store on real MinIO: it serves, says nothing of its credentials, is sampled, and fails when told to."""

import json
import subprocess
import sys
import time

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from testbed.faults import Faults, parse_fault
from testbed.objectstore import BUCKETS
from testbed.objectstore.server import ENVIRONMENT
from testbed.probes.brokers import watch_other_clients, watch_stores
from testbed.probes.recorder import Recorder
from testbed.provision import state as states
from testbed.provision.resources import remove
from testbed.provision.status import status
from testbed.provision.testbed import Testbed
from testbed.topology import loads
from testbed.wait import wait_until
from tests.containers.conftest import cli, left_of

pytestmark = [pytest.mark.containers, pytest.mark.store]
NAME = "ci-store"
TOPOLOGY = """
name: one-broker-s3
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both}
  s1: {role: objectstore, nic: {rate: 1gbit}, disk: {size: 1GB}}
"""
BUCKET = BUCKETS[0]
MIB = b"0123456789abcdef" * 2**16


@pytest.fixture(scope="module")
def up(own_state, engine):
    testbed = Testbed.up(loads(TOPOLOGY), name=NAME, progress=print)
    yield testbed
    testbed.close()
    remove(engine, NAME)


@pytest.fixture(scope="module")
def s3(up):
    client = up.objectstore.client(attempts=1)
    client.put_object(Bucket=BUCKET, Key="there", Body=MIB)
    yield client
    client.close()


@pytest.fixture
def put(up, s3):
    """Put a fault in; when the test ends it is healed, what was there is still there, and something can be added."""
    faults = Faults(up)

    def add(text):
        begun = time.monotonic()
        faults.add(parse_fault(text))
        print(f"{text}: in effect after {time.monotonic() - begun:.1f} s")

    yield add
    begun = time.monotonic()
    faults.clear()
    print(f"healed in {time.monotonic() - begun:.1f} s")
    assert got(s3, "there") == MIB
    s3.put_object(Bucket=BUCKET, Key="after", Body=MIB)
    found = status(up, [fault.document() for fault in Faults(up).list()])
    assert found["ok"], found


def got(s3, key):
    return s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()


def refused(call, **words):
    """The status and the code with which the store refuses a call."""
    with pytest.raises(ClientError) as error:
        call(Bucket=BUCKET, **words)
    answer = error.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


def test_it_is_up_before_kafka_and_has_its_buckets(up, s3):
    assert [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]] == sorted(BUCKETS)
    assert got(s3, "there") == MIB
    # On its own shaped NIC, reached from a broker; without a signature it gives nothing.
    look = f"import urllib.request as u; u.urlopen('{up.objectstore.endpoint}/{BUCKET}/there')"
    told = up.hosts["b1"].run(["python3", "-c", look], check=False)
    assert "HTTP Error 403" in told.stderr
    started = {name: up.daemon(name).pid() for name in ("s1", "b1")}
    ages = {
        name: float(up.hosts[name].run(["ps", "-o", "etimes=", "-p", str(pid)]).stdout) for name, pid in started.items()
    }
    assert ages["s1"] >= ages["b1"]


def test_its_credentials_are_seen_nowhere_but_in_private_files(up, engine, s3):
    keys = up.objectstore.credentials
    secrets = (keys.access_key, keys.secret_key)
    said = {"python": repr(up.objectstore.credentials) + repr(vars(up.objectstore))}
    ids = [found.id for found in engine.containers(NAME)]
    said["inspect"] = subprocess.run(["docker", "inspect", *ids], capture_output=True, text=True, check=True).stdout
    for found in ids:
        told = subprocess.run(["docker", "logs", found], capture_output=True, text=True, check=True)
        said[f"log of {found}"] = told.stdout + told.stderr
    for name in ("b1", "s1"):
        # With `e` the variables of every process.
        said[f"processes of {name}"] = up.hosts[name].run("ps axeww; cat /proc/[0-9]*/environ", check=False).stdout
        assert "MINIO_CONFIG_ENV_FILE" in said[f"processes of {name}"] or name != "s1"
    for words in (("status", NAME), ("status", NAME, "--json"), ("logs", NAME, "s1"), ("logs", NAME, "b1")):
        told = cli(*words)
        said[" ".join(words)] = told.stdout + told.stderr
    assert "MinIO" in said[f"logs {NAME} s1"]
    for path in states.folder(NAME).rglob("*"):
        if path.is_file() and path.suffix != ".img" and path.name != "s3-credentials":
            said[str(path)] = path.read_text(errors="replace")
    assert [place for place, text in said.items() if any(secret in text for secret in secrets)] == []
    for name, expected in (
        ("b1", {"/etc/testbed/s3/credentials"}),
        ("s1", {"/etc/testbed/s3/credentials", ENVIRONMENT}),
    ):
        # Looked for by half of it, so that the command does not find itself.
        holding = f"grep -rlF '{keys.secret_key[:20]}' /etc /run /tmp /root /var/log /opt/testbed 2>/dev/null || true"
        files = set(up.hosts[name].run(holding).stdout.split())
        assert files == expected
        modes = up.hosts[name].run(["stat", "-c", "%a %U", *files]).stdout.split("\n")
        assert {mode for mode in modes if mode} == {"600 root"}


def counted(recorder, since_us=0):
    """(metric, label) → the newest value of the store's host."""
    return {(s.metric, s.label): s.value for s in recorder.samples() if s.host == "s1" and s.ts_us >= since_us}


def test_the_probe_counts_each_request_and_the_nic_its_bytes(up, s3):
    recorder = Recorder()
    watch_stores(recorder, up.topology, up.hosts)
    watch_other_clients(recorder, up.topology, up.hosts, up.plan)
    try:
        recorder.wait_for_all()
        before = counted(recorder)
        puts = 30
        for number in range(puts):
            s3.put_object(Bucket=BUCKET, Key=f"many-{number}", Body=MIB)
        assert refused(s3.get_object, Key="missing") == (404, "NoSuchKey")
        recorder.wait_for_all()
        recorder.wait_for_all()
        after = counted(recorder)
    finally:
        recorder.stop()
    grown = {key: value - before.get(key, 0.0) for key, value in after.items()}
    assert grown["s3.requests", "PutObject"] == puts
    assert grown["s3.ttfb", "PutObject +Inf"] == puts
    assert after["s3.answer.seconds", None] >= 0
    assert (grown["s3.requests", "GetObject"], grown["s3.errors.4xx", "GetObject"]) == (1, 1)
    assert not [key for key, value in grown.items() if key[0] == "s3.errors.5xx" and value]
    payload = puts * len(MIB)
    # The test itself is another client than the hosts, at the driver's address; its connection stays open.
    others = {label: value for (metric, label), value in grown.items() if metric == "s3.others.bytes"}
    assert {label.split()[0] for label in others} == {str(up.plan.driver)}
    assert 0.9 * payload < sum(others.values()) < 1.2 * payload
    received, carried = grown["s3.rx.bytes", None] / payload, grown["nic.rx.bytes", "data0"] / payload
    print(f"of the payload the server counted {received:.3f}, its NIC {carried:.3f}")
    assert 1.0 <= received <= 1.02
    # Frames of 1514 bytes carry 1448.
    assert 1.04 <= carried <= 1.08
    assert len({s.ts_us for s in recorder.samples() if s.metric == "nic.rx.bytes"}) >= 3


def test_down(up, s3, put):
    put("objectstore-down host=s1")
    with pytest.raises(BotoCoreError, match="Could not connect"):
        got(s3, "there")
    told = cli("status", NAME, "--json")
    found = json.loads(told.stdout)
    assert (told.returncode, found["ok"], list(found["stores"])) == (1, False, ["s1"])
    assert "the object store's server on s1 is not ready" in cli("status", NAME).stdout


def test_restart(up, s3, put):
    before = up.objectstore.server("s1").pid()
    put("objectstore-restart host=s1")
    assert up.objectstore.server("s1").pid() not in (None, before)
    assert got(s3, "there") == MIB


def longest_s(s3):
    """Ask a hundred times, which outlasts the store's moments of 50 ms between two pauses."""
    found = 0.0
    for _ in range(100):
        begun = time.monotonic()
        s3.head_object(Bucket=BUCKET, Key="there")
        found = max(found, time.monotonic() - begun)
    return found


def test_slow(up, s3, put):
    put("objectstore-slow host=s1 pause=700ms every=750ms")
    assert longest_s(s3) > 0.5
    Faults(up).clear()
    # The machine may hold up one request; what stands still 14 of 15 parts of the time holds up one of any hundred.
    wait_until(lambda: longest_s(s3) < 0.5, 20, 0.05, "a hundred requests, none of them slow")


def test_full(up, s3, put):
    put("objectstore-full host=s1")
    assert refused(s3.put_object, Key="more", Body=MIB) == (507, "XMinioStorageFull")
    assert got(s3, "there") == MIB


def test_503(up, s3, put):
    put("objectstore-503 host=s1")
    assert refused(s3.get_object, Key="there") == (503, "SlowDownRead")
    assert refused(s3.put_object, Key="more", Body=MIB) == (503, "SlowDownWrite")


def test_what_a_killed_holder_put_in_is_healed_by_gc(up, s3, put):
    code = (
        "import os, signal\nfrom testbed.faults import Faults, parse_fault\n"
        f"from testbed.provision.testbed import Testbed\nfaults = Faults(Testbed.attach({NAME!r}))\n"
        "for text in ('objectstore-full host=s1', 'objectstore-down host=s1'): faults.add(parse_fault(text))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert up.objectstore.server("s1").pid() is None
    told = cli("gc")
    assert told.stdout.startswith(f"{NAME}: healed of objectstore-full host=s1, objectstore-down host=s1"), told.stderr


def test_nothing_is_left_of_it(up, engine):
    """The last of this file: it takes the testbed down."""
    up.close()
    remove(engine, NAME)
    assert left_of(NAME) == []
    assert not states.folder(NAME).exists()


SEVERAL = """
name: three-stores
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}}
hosts: {b1: {role: both}, s1: {role: objectstore}, s2: {role: objectstore}, s3: {role: objectstore}}
"""


@pytest.mark.nightly
def test_three_servers_are_one_store_that_does_without_one_of_them(own_state, engine):
    testbed = Testbed.up(loads(SEVERAL), name="ci-stores", progress=print)
    try:
        store = testbed.objectstore
        first, second = (store.client(endpoint=endpoint) for endpoint in store.endpoints[:2])
        first.put_object(Bucket=BUCKET, Key="there", Body=MIB)
        with Faults(testbed).injected(parse_fault("objectstore-down host=s3")):
            assert got(second, "there") == MIB
            second.put_object(Bucket=BUCKET, Key="more", Body=MIB)
        third = store.client(endpoint=store.endpoints[2])
        # With its own drives alone it would say NoSuchKey: they lack what came meanwhile.
        assert got(third, "more") == MIB
        assert status(testbed, [fault.document() for fault in Faults(testbed).list()])["ok"]
    finally:
        testbed.close()
        remove(engine, "ci-stores")
