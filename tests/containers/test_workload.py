"""Loads on real brokers: nothing acknowledged is lost, and what is lost is named."""

import os
import signal
import time
from collections import defaultdict

import pytest

from testbed.kafka.node import DATA_DIR
from testbed.kafka.types import TopicPartition
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.topology import loads
from testbed.wait import wait_for, wait_until
from testbed.workload.preload import audit, preload
from testbed.workload.records import Fill, Recipe
from testbed.workload.replica_logs import replica_differences
from testbed.workload.spec import ConsumerSpec, ProducerSpec
from testbed.workload.workload import Workload
from tests.containers.conftest import ROOT

pytestmark = pytest.mark.containers
NAME, CLIENT = "ci-load", "load"
PARTITIONS = 6

CUT = """
import os, struct, sys
folder, number = sys.argv[1], int(sys.argv[2])
path = os.path.join(folder, "0" * 20 + ".log")
with open(path, "rb") as file:
    data = file.read()
begin, batches = 0, []
while begin < len(data):
    offset, length = struct.unpack_from(">qi", data, begin)
    batches.append((begin, begin + 12 + length))
    begin += 12 + length
first, last = batches[number]
with open(path, "wb") as file:
    file.write(data[:first] + data[last:])
# They say where batches lie; the broker makes them anew.
for suffix in (".index", ".timeindex"):
    os.remove(os.path.join(folder, "0" * 20 + suffix))
print(len(batches))
"""


@pytest.fixture(scope="module")
def cluster(own_state, engine):
    """Three brokers and a host for clients, of this file's own: some are killed."""
    text = (ROOT / "topologies" / "three-brokers.yaml").read_text()
    testbed = Testbed.up(loads(f"{text}  {CLIENT}:\n    role: client\n"), name=NAME)
    yield testbed
    testbed.close()
    remove(engine, NAME)


def topic(testbed, name, replicas=3, partitions=PARTITIONS):
    """Make it; returns its partitions. Led by the brokers in turn."""
    ids = [host.node_id for host in testbed.topology.brokers]
    with testbed.admin() as admin:
        placement = {p: [ids[(p + r) % 3] for r in range(replicas)] for p in range(partitions)}
        admin.create_topic(name, placement, {"min.insync.replicas": str(min(2, replicas))})
    return tuple(range(partitions))


class Newest:
    """The newest value of each process's metrics, and the largest."""

    def __init__(self):
        self.values, self.largest = {}, defaultdict(float)

    def add(self, samples):
        for sample in samples:
            self.values[sample.host, sample.metric] = sample.value
            self.largest[sample.host, sample.metric] = max(self.largest[sample.host, sample.metric], sample.value)

    def await_acked(self, name, records, timeout_s=30):
        wait_for(
            lambda: self.values.get((name, "client.produce.acked"), 0), lambda n: n >= records, timeout_s, 0.1, name
        )


def sent_by(testbed, host):
    """Bytes that the host's NIC has sent."""
    return int(testbed.hosts[host].run("cat /sys/class/net/data0/statistics/tx_bytes").stdout)


def test_clients_send_through_the_nic_of_the_topologys_client_host(cluster):
    partitions, events = topic(cluster, "behind"), []
    spec = ProducerSpec("producer-1", "behind", partitions, 2_000_000.0)
    for networks, behind in ((cluster.client_networks(), True), ({}, False)):
        before, newest = sent_by(cluster, CLIENT), Newest()
        with Workload(cluster.bootstrap, [spec], 5, newest.add, lambda *e: events.append(e), networks=networks) as load:
            load.start()
            newest.await_acked("producer-1", 3000)
            result = load.stop()
        sent = sent_by(cluster, CLIENT) - before
        bytes_acked = result.process("producer-1").acked * spec.record_bytes
        assert bytes_acked > 3_000_000
        assert sent > bytes_acked if behind else sent < 0.01 * bytes_acked, sent
    hosts = [detail["hosts"] for kind, _name, detail in events if kind == "load.started"]
    assert hosts == [{"producer-1": CLIENT}, {"producer-1": "driver"}]


def test_one_record_removed_from_a_log_is_named(cluster):
    ids = [host.node_id for host in cluster.topology.brokers]
    with cluster.admin() as admin:
        admin.create_topic("cut", {0: [ids[1]]}, {})
    newest = Newest()
    one_each = {"batch.num.messages": "1"}  # a batch is what can be cut out of a log
    spec = ProducerSpec("producer-1", "cut", (0,), 30_000.0, linger_ms=0.0, idempotence=False, client=one_each)
    with Workload(cluster.bootstrap, [spec], 5, newest.add) as load:
        load.start()
        newest.await_acked("producer-1", 40)
        result = load.stop()
    whole = audit(cluster.bootstrap, [], result.written, patience_s=30)
    assert (whole.lost, whole.found) == (0, result.process("producer-1").acked)

    node = cluster.node("b2")
    node.stop(timeout_s=60)
    batches = cluster.hosts["b2"].run(["python3", "-c", CUT, f"{DATA_DIR}/cut-0", "17"]).stdout
    assert int(batches) == whole.found
    node.start()
    cluster.wait_serving()

    found = audit(cluster.bootstrap, [], result.written, patience_s=30)
    assert found.complaints == (
        "cut-0: 1 of producer-1 lost, first at [17]",
        "cut-0: 1 of the log's offsets corrupt (a gap), first at [18, not 17]",
    )
    assert (found.lost, found.duplicated, found.reordered, found.corrupt) == (1, 0, 0, 1)


FLIP = """
import os, sys
path = os.path.join(sys.argv[1], "0" * 20 + ".log")
with open(path, "r+b") as file:
    file.seek(os.path.getsize(path) // 2)
    byte = file.read(1)[0]
    file.seek(-1, os.SEEK_CUR)
    file.write(bytes([byte ^ 1]))
"""


def test_a_follower_with_another_log_than_its_leader_is_named(cluster):
    """No consumer reads it: the audit finds every record."""
    ids = {host.name: host.node_id for host in cluster.topology.brokers}
    tp, fill = TopicPartition("unlike", 0), Fill("unlike", [0], 40, Recipe(1024, 3))
    with cluster.admin() as admin:
        admin.create_topic("unlike", {0: [ids["b1"], ids["b2"]]}, {})
        preload(cluster.bootstrap, [fill])
        assert replica_differences(cluster, admin, ["unlike"]) == ()

        node = cluster.node("b2")
        node.stop(timeout_s=60)
        cluster.hosts["b2"].run(["python3", "-c", FLIP, f"{DATA_DIR}/{tp}"])
        node.start()
        cluster.wait_serving()
        wait_until(lambda: len(admin.partitions(["unlike"])[tp].isr) == 2, 30, 0.2, "b2 to be in sync")

        found = audit(cluster.bootstrap, [fill], patience_s=30)
        assert (found.found, found.complaints) == (40, ())
        (line,) = replica_differences(cluster, admin, ["unlike"], timeout_s=1)
    assert line.startswith("unlike-0: the log on b2 is not that of its leader, b1, at offset ")


HIDE = """
import os, sys
path, topic, offset = os.path.join(sys.argv[1], "log-start-offset-checkpoint"), sys.argv[2], sys.argv[3]
with open(path) as file:
    version, _count, *lines = file.read().split("\\n")
lines = [*filter(None, lines), topic + " 0 " + offset]
with open(path, "w") as file:
    file.write("\\n".join([version, str(len(lines)), *lines]) + "\\n")
"""


def test_a_follower_whose_log_starts_later_than_its_leaders_is_named(cluster):
    """Its segments are whole, and so are the leader's records: only its consumers would miss some."""
    ids = {host.name: host.node_id for host in cluster.topology.brokers}
    tp, fill = TopicPartition("hidden", 0), Fill("hidden", [0], 40, Recipe(1024, 3))
    with cluster.admin() as admin:
        admin.create_topic("hidden", {0: [ids["b1"], ids["b2"]]}, {})
        preload(cluster.bootstrap, [fill])
        node = cluster.node("b2")
        node.stop(timeout_s=60)
        cluster.hosts["b2"].run(["python3", "-c", HIDE, DATA_DIR, "hidden", "20"])
        node.start()
        cluster.wait_serving()
        wait_until(lambda: len(admin.partitions(["hidden"])[tp].isr) == 2, 30, 0.2, "b2 to be in sync")
        found = audit(cluster.bootstrap, [fill], patience_s=30, by_time=True)
        assert (found.found, found.complaints) == (40, ())
        (line,) = replica_differences(cluster, admin, ["hidden"], timeout_s=1)
    assert line == "hidden-0: the log on b2 starts at offset 20, not at 0 as on its leader, b1"


MISLEAD = """
import os, struct, sys
path = os.path.join(sys.argv[1], "0" * 20 + ".timeindex")
with open(path, "rb") as file:
    entries = [each for each in struct.iter_unpack(">qi", file.read()) if each != (0, 0)]
with open(path, "wb") as file:
    file.write(b"".join(struct.pack(">qi", time, entries[-1][1]) for time, _offset in entries))
print(len(entries))
"""


def test_a_leader_with_a_wrong_time_index_is_named(cluster):
    ids = [host.node_id for host in cluster.topology.brokers]
    fill = Fill("misled", [0], 5000, Recipe(1024, 3))
    with cluster.admin() as admin:
        admin.create_topic("misled", {0: [ids[1]]}, {})
    preload(cluster.bootstrap, [fill])
    assert audit(cluster.bootstrap, [fill], patience_s=30, by_time=True).complaints == ()

    node = cluster.node("b2")
    node.stop(timeout_s=60)
    assert int(cluster.hosts["b2"].run(["python3", "-c", MISLEAD, f"{DATA_DIR}/misled-0"]).stdout) > 10
    node.start()
    cluster.wait_serving()
    found = audit(cluster.bootstrap, [fill], patience_s=30, by_time=True)
    assert (found.found, found.lost) == (5000, 0)
    # The last record is where the index says; the first one is not if the first entry has its very millisecond.
    assert found.corrupt in (1, 2)
    assert found.complaints[0].startswith(
        f"misled-0: {found.corrupt} of the log's offsets corrupt (not found by its time), first at ["
    )


@pytest.mark.nightly
def test_a_broker_lost_under_load_costs_no_acknowledged_record(cluster):
    partitions, newest = topic(cluster, "kept"), Newest()
    specs = [
        ProducerSpec("producer-1", "kept", partitions, 2_000_000.0),
        ProducerSpec("producer-2", "kept", partitions, 200_000.0, transaction_s=0.5),
        ConsumerSpec("consumer-1", ("kept",), "readers", from_beginning=True),
    ]
    with Workload(cluster.bootstrap, specs, 5, newest.add) as load:
        load.start()
        newest.await_acked("producer-1", 4000)
        cluster.node("b2").signal("KILL")
        at_kill = newest.values["producer-1", "client.produce.acked"]
        # More than was under way: the other two lead the partitions now.
        newest.await_acked("producer-1", at_kill + 12_000)
        cluster.node("b2").start()
        cluster.wait_serving()
        result = load.stop()
    found = audit(cluster.bootstrap, [], result.written, patience_s=60)
    assert (found.lost, found.corrupt) == (0, 0), found.complaints
    assert not any(each.refused_found for each in found.producers), found.complaints
    assert (found.duplicated, found.reordered) == (0, 0), found.complaints
    assert found.expected > 12_000
    [delivered] = result.live(found).deliveries
    assert delivered.wrong == 0, delivered.first
    assert delivered.records > 12_000
    assert newest.largest["producer-1", "client.late"] < 1.0


def test_a_killed_producer_holds_nobody_up(cluster):
    partitions, newest = topic(cluster, "killed"), Newest()
    specs = [
        ProducerSpec("producer-1", "killed", partitions, 500_000.0),
        ProducerSpec("producer-2", "killed", partitions, 500_000.0, transaction_s=0.5),
    ]
    with Workload(cluster.bootstrap, specs, 5, newest.add) as load:
        load.start()
        for name in ("producer-1", "producer-2"):
            newest.await_acked(name, 1000)
            os.kill(load._named(name).popen.pid, signal.SIGKILL)
        result = load.stop()
    assert [process.ended for process in result.processes] == [False, False]
    began = time.monotonic()
    found = audit(cluster.bootstrap, [], result.written, patience_s=60)
    # The transaction that it left open was ended: it keeps no reader from what lies behind it.
    assert time.monotonic() - began < 10
    assert (found.lost, found.duplicated, found.reordered, found.corrupt) == (0, 0, 0, 0), found.complaints
    assert found.expected >= 2000


@pytest.mark.nightly
def test_twenty_megabytes_a_second_are_held_on_an_idle_testbed(cluster):
    """Of one replica: what two cores' brokers can take. The producer itself takes a third of a core."""
    partitions, newest = topic(cluster, "full", replicas=1, partitions=12), Newest()
    spec = ProducerSpec("producer-1", "full", partitions, 20e6, batch_bytes=65536)
    with Workload(cluster.bootstrap, [spec], 5, newest.add) as load:
        load.start()
        newest.await_acked("producer-1", 30 * 19_500, timeout_s=40)
        result = load.stop()
    process = result.process("producer-1")
    print(f"{process.acked} records, {process.cpu_cores:.2f} cores")
    assert result.held, process.why
    found = audit(cluster.bootstrap, [], result.written, patience_s=120)
    assert (found.lost, found.duplicated, found.reordered, found.corrupt) == (0, 0, 0, 0), found.complaints
