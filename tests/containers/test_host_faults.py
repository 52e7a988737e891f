"""Faults of disks, memory, processes, clients, the object store and a running move, on real brokers."""

import contextlib
import itertools
import json
import re
import subprocess
import time
from datetime import UTC, datetime

import pytest

from testbed.cgroups import CGROUPS, device_numbers, no_disk_rate
from testbed.faults import Faults, disks, parse_fault
from testbed.faults.catalogue import client_stampede, cpu_limit, memory_limit
from testbed.kafka.admin import Admin
from testbed.kafka.errors import UnreachableError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.paths import data_dir, state_dir
from testbed.provision import state as states
from testbed.provision.machine import MachineLacks, attached_devices, no_netem
from testbed.provision.resources import remove
from testbed.provision.status import status
from testbed.provision.testbed import Testbed
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import RATES
from testbed.topology import loads
from testbed.wait import wait_for, wait_until
from testbed.workload.preload import preload
from testbed.workload.records import Fill, Recipe
from tests.containers.conftest import cli, left_of

pytestmark = pytest.mark.containers
NAME = "ci-hosts"
TOPOLOGY = """
name: host-faults
kafka:
  version: 4.3.1
  properties: {broker.session.timeout.ms: 5000, broker.heartbeat.interval.ms: 1000}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both}
  b2: {role: broker, disk: {size: 500MB}}
  b3: {role: broker, disk: {size: 500MB}}
  s3: {role: objectstore}
"""


@pytest.fixture(scope="module")
def up(own_state, engine):
    testbed = Testbed.up(loads(TOPOLOGY), name=NAME)
    yield testbed
    testbed.close()
    remove(engine, NAME)


@pytest.fixture
def put(up):
    """Put a fault in; when the test ends it is healed, and the testbed is as declared again."""

    def add(text):
        begun = time.monotonic()
        fault_id = Faults(up).add(parse_fault(text))
        print(f"{text}: in effect after {time.monotonic() - begun:.1f} s")
        return fault_id

    yield add
    begun = time.monotonic()
    Faults(up).clear()
    print(f"healed in {time.monotonic() - begun:.1f} s")
    found = status(up, [fault.document() for fault in Faults(up).list()])
    assert found["ok"], found
    for host in ("b2", "b3"):
        assert disks.refusal(up, host) == ""
        assert (disks.rate_in_force(up, host), memory_limit.in_force(up, host)) == (None, None)
        assert ".filler" not in up.hosts[host].run("ls -a /var/lib/kafka").stdout
    assert client_stampede.clients(up, "b3").pid() is None


def running(testbed, host):
    return testbed.node(host).pid() is not None


def written(testbed, topic):
    """Create a topic: each broker writes that to its disk."""
    # The broker that shuts down for it may break the connection that waits for the topic's leader.
    with contextlib.suppress(UnreachableError), Admin(testbed.bootstrap[:1], timeout_s=20) as admin:
        admin.create_topic(topic, {0: [1]}, {})


@pytest.mark.parametrize(
    ("fault", "said"),
    # Kafka's index files are sparse and mapped: on a full disk their next page may be the first to fail.
    [("disk-full", "No space left on device|unsafe memory access"), ("disk-read-only", "Operation not permitted")],
    ids=["full", "read-only"],
)
def test_a_broker_that_cannot_write_shuts_down_and_is_started_when_it_can(up, put, fault, said):
    put(f"{fault} host=b2")
    written(up, f"a-{fault}")
    wait_until(lambda: not running(up, "b2"), 30, 0.2, "Kafka on b2 to shut down")
    assert re.search(said, up.node("b2").log_tail(400))
    assert running(up, "b1") and running(up, "b3")
    assert disks.refusal(up, "b3") == ""


def test_a_slow_disk_holds_what_is_written_through_the_page_cache(up, put):
    if no_disk_rate():
        with pytest.raises(MachineLacks):
            put("disk-slow host=b2 rate=4MB/s")
        return
    slow = put("disk-slow host=b2 rate=8MB/s")
    slower = put("disk-slow host=b2 rate=4MB/s")

    def seconds(host, size=20_000_000):
        # No fsync: it is the page cache that takes these bytes.
        command = f"dd if=/dev/zero of=/var/lib/kafka/.probe bs=100000 count={size // 100000}; rm /var/lib/kafka/.probe"
        return up.hosts[host].run(command).seconds

    at_4 = seconds("b2")
    assert seconds("b3") < 1
    assert 2.5 < at_4 < 9, "20 MB, of which 4 MiB may wait in the page cache"
    Faults(up).clear(slower)
    assert disks.rate_in_force(up, "b2") == 8_000_000
    assert seconds("b2") < 0.8 * at_4
    Faults(up).clear(slow)
    assert seconds("b2") < 1


def test_a_stalled_broker_stands_still_in_turn(up, put):
    put("broker-stall host=b3 pause=300ms every=600ms")
    stopped = set()
    deadline = time.monotonic() + 5
    while stopped < {True, False} and time.monotonic() < deadline:
        letter = up.hosts["b3"].run("sed 's/.*) //' /proc/$(cat /run/kafka.pid)/stat | cut -c1").stdout.strip()
        stopped.add(letter == "T")  # else it sleeps, or runs on busy cores
    assert stopped == {True, False}


@pytest.mark.nightly
def test_a_skewed_clock_is_that_of_kafka_alone(up, put):
    def written_at():
        """The time of the newest line of Kafka's log, less the machine's."""
        lines = re.findall(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", up.node("b3").log_tail(50), re.MULTILINE)
        return datetime.strptime(lines[-1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp() - time.time()

    def cpu_s(host):
        """The CPU time of Kafka's process so far."""
        ticks = up.hosts[host].run("sed 's/.*) //' /proc/$(cat /run/kafka.pid)/stat").stdout.split()[11:13]
        return sum(map(int, ticks)) / 100

    assert -600 < written_at() < 5
    skew = put("clock-skew host=b3 by=2h")
    assert 7200 - 120 < written_at() < 7200 + 5
    put("clock-skew host=b3 by=-30min")
    assert 5400 - 120 < written_at() < 5400 + 5
    assert abs(float(up.hosts["b3"].run("date +%s").stdout) - time.time()) < 5
    # Kafka's waits take as long as before: with a library that shifts their ends, every thread would spin.
    before, began = cpu_s("b3"), time.monotonic()
    time.sleep(3)
    assert cpu_s("b3") - before < 0.5 * (time.monotonic() - began)
    Faults(up).clear(skew)
    assert -1800 - 120 < written_at() < -1800 + 5


def test_the_kernel_holds_a_host_to_its_memory(up, put):
    put("memory-limit host=b3 memory=900MiB")
    assert memory_limit.in_force(up, "b3") == 900 * 2**20
    eat = "b = bytearray(1200 * 2**20); print(len(b))"
    killed = up.hosts["b3"].run(["python3", "-c", eat], check=False)
    assert (killed.stdout, killed.exit_status != 0) == ("", True)
    assert up.hosts["b2"].run(["python3", "-c", eat]).stdout.strip() == str(1200 * 2**20)


def test_a_stampede_connects_and_ends(up, put):
    put("client-stampede host=b3 brokers=b1,b2 connections=120 requests=60 lasts=10min")
    source = up.plan.data_ip("b3")
    assert [client_stampede.established(up, host, source) >= 60 for host in ("b1", "b2")] == [True, True]
    Faults(up).clear()
    wait_until(lambda: client_stampede.established(up, "b1", source) == 0, 10, 0.1, "the connections to be gone")


def test_the_store_fails_one_operation_and_serves_the_others(up, put):
    def seen(operation, count=1):
        return list(up.objectstore.answers(operation, count))

    assert (seen("put"), seen("list"), seen("delete")) == ([200], [200], [200])
    puts = put("objectstore-errors host=s3 operations=put status=503")
    lists = put("objectstore-errors host=s3 operations=list status=500 share=50%")
    assert seen("put") == [503]
    assert set(seen("list", 40)) == {200, 500}
    assert (seen("get"), seen("delete")) == ([404], [200])
    Faults(up).clear(puts)
    assert seen("put") == [200]
    assert 500 in seen("list", 40)
    Faults(up).clear(lists)
    put("objectstore-errors host=s3 operations=get status=timeout")
    assert (seen("get"), seen("put")) == ([0], [200])


def test_what_the_kernel_lacks_is_refused_and_named(up):
    if no_netem():
        with pytest.raises(MachineLacks, match="the machine cannot have it: the kernel has no netem"):
            Faults(up).add(parse_fault("nic-impair host=b1 corrupt=1%"))
    told = json.loads(cli("fault", "kinds", NAME, "--json").stdout)
    assert told["nic-impair"]["available"] == (not no_netem())
    assert told["disk-full"]["available"]
    assert "one rack" in told["uplink-cut"]["why_not"]


def test_the_object_stores_keys_are_in_their_own_files_only(up):
    credentials = up.objectstore.credentials
    keys = (credentials.access_key, credentials.secret_key)
    for name, host in up.hosts.items():
        own = {"/etc/testbed/s3/credentials", "/etc/testbed/s3/server.env"}
        for key in keys:
            # Read by grep from its input: an argument would itself be in the process list.
            folders = "/etc /opt/testbed /run /var/log /var/lib/kafka /tmp /root /proc/[0-9]*/cmdline"
            told = host.run(f"grep -rslaF -f /dev/stdin {folders}", check=False, stdin=key.encode())
            assert set(told.stdout.split()) <= own, name
            assert host.run("stat -c %a /etc/testbed/s3/*", check=False).stdout.split() in ([], ["600"], ["600", "600"])
    engine = subprocess.run(
        ["docker", "inspect", *(found.id for found in up.engine.containers(NAME))], capture_output=True, check=True
    ).stdout.decode()
    written = [path for root in (state_dir(), data_dir()) for path in root.rglob("*") if path.is_file()]
    own_file = states.credentials_path(NAME)
    for key in keys:
        assert key not in engine
        assert [path for path in written if key.encode() in path.read_bytes()] == [own_file]
    assert own_file.stat().st_mode & 0o077 == 0


def test_a_second_operator_cancels_one_move_and_redirects_another(up, put):
    tps = [TopicPartition("shared", n) for n in range(3)]
    with up.admin() as admin:
        admin.create_topic("shared", {n: [1] for n in range(3)}, {})
        preload(up.bootstrap, [Fill("shared", range(3), 400, Recipe(4096, 5))])
        for broker in (1, 2, 3):
            admin.alter_configs(ConfigResource.broker(broker), dict.fromkeys(RATES, "20000"))
        lists = dict.fromkeys(("leader.replication.throttled.replicas", "follower.replication.throttled.replicas"), "*")
        admin.alter_configs(ConfigResource.topic("shared"), lists)
        try:
            admin.alter_reassignments(Plan(dict.fromkeys(tps, (2,))).targets)
            assert set(admin.reassignments()) == set(tps)
            put("reassignment-alter")
            assert set(admin.reassignments()) == {*tps[1:]}
            redirected = put("reassignment-alter to=b3")
            running = admin.reassignments()
            assert (running[tps[1]].adding, running[tps[2]].adding) == ((3,), (2,))
            Faults(up).clear(redirected)
            assert set(admin.reassignments()) == {tps[2]}, "its own reassignment is cancelled, the operator's goes on"
        finally:
            admin.alter_reassignments(dict.fromkeys(admin.reassignments()))
            for broker in (1, 2, 3):
                admin.alter_configs(ConfigResource.broker(broker), {}, list(RATES))
            admin.delete_topic("shared")


def test_a_testbed_that_is_removed_with_its_faults_leaves_no_limit_behind(own_state, engine):
    name = "ci-hosts-gone"
    text = "{name: one, kafka: {version: 4.3.1}, hosts: {b1: {role: both, nic: {rate: 1gbit}, disk: {size: 300MB}}}}"
    testbed = Testbed.up(loads(text), name=name)
    for fault in ("disk-slow host=b1 rate=5MB/s", "memory-limit host=b1 memory=1GiB", "disk-read-only host=b1"):
        if not no_disk_rate() or "slow" not in fault:
            Faults(testbed).add(parse_fault(fault))
    (device,) = attached_devices(name)
    numbers = device_numbers(device)
    testbed.close()
    remove(engine, name)
    assert left_of(name) == []
    assert attached_devices(name) == {}
    throttled = CGROUPS / "blkio" / "blkio.throttle.write_bps_device"
    assert not throttled.exists() or numbers not in throttled.read_text().split()


THREE = {
    "nic": "nic-rate host=b2 rate=50mbit",
    "cpu": "cpu-limit host=b2 cpus=0.5",
    "process": "broker-pause host=b2",
}


ORDERS = [*itertools.permutations(THREE)]


@pytest.mark.parametrize(
    "order", [*ORDERS[:1], ORDERS[-1], *(pytest.param(each, marks=pytest.mark.nightly) for each in ORDERS[1:-1])]
)
def test_three_faults_of_one_host_are_healed_in_each_order(up, put, order):
    ids = {name: put(text) for name, text in THREE.items()}
    for name in order:
        Faults(up).clear(ids.pop(name))
        found = status(up, [])
        assert any("50mbit" in line for line in found["shaping"]) == ("nic" in ids)
        assert cpu_limit.in_force(up, "b2") == (0.5 if "cpu" in ids else None)
        assert state(up) == ("T" if "process" in ids else "S")


def state(testbed):
    command = "sed 's/.*) //' /proc/$(cat /run/kafka.pid)/stat | cut -c1"

    def letter():
        return testbed.hosts["b2"].run(command).stdout.strip()

    return wait_for(
        letter,
        lambda found: found in ("S", "T"),
        timeout_s=5,
        interval_s=0.05,
        what="Kafka's state",
    )
