"""Whether replicas in sync have one log: by the digests of folders, and by the dumps of those that differ."""

import http.server
import json
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import ClassVar

import pytest

from results.contract.manifest import Records
from testbed.errors import TestbedError
from testbed.kafka.types import BrokerInfo, PartitionState, TopicPartition
from testbed.workload import replica_logs
from testbed.workload.log_digests import digests, log_starts
from testbed.workload.replica_logs import (
    LogDigest,
    first_difference,
    left_isr,
    read_digests,
    replica_differences,
    unlike,
    with_replicas,
)

ONE, OTHER = LogDigest("0.log", 10, "a", 0), LogDigest("0.log", 10, "b", 0)
LATER = LogDigest("0.log", 10, "a", 120)


def log(folder, *segments):
    folder.mkdir(parents=True)
    for base, content in segments:
        (folder / f"{base:020}.log").write_bytes(content)
        (folder / f"{base:020}.index").write_bytes(b"another on each broker")


def test_a_log_is_one_sequence_of_bytes_wherever_its_segments_end(tmp_path):
    log(tmp_path / "a" / "t-0", (0, b"one"), (5, b"two"))
    log(tmp_path / "b" / "t-0", (0, b"on"), (3, b"etw"), (9, b"o"))
    log(tmp_path / "c" / "t-0", (0, b"one"), (5, b"twe"))
    a, b, c = (digests(tmp_path / name, ["t-0", "t-1"]) for name in "abc")
    assert a == b != c
    assert a["t-0"][:2] == ["00000000000000000000.log", 6]


def test_a_log_without_segments_and_a_segment_that_goes_have_no_digest(tmp_path):
    (tmp_path / "empty").mkdir()
    log(tmp_path / "going", (0, b"one"))
    (tmp_path / "going" / "00000000000000000005.log").symlink_to(tmp_path / "gone")
    assert digests(tmp_path, ["empty", "going", "nowhere"]) == {}


class Metrics(http.server.BaseHTTPRequestHandler):
    """A broker's metrics: `starts` has the start of each log by its MBean."""

    starts: ClassVar[dict[str, int]] = {}

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert {(each["type"], each["attribute"]) for each in asked} == {("read", "Value")}
        replies = [
            {"status": 200, "value": self.starts[name]} if name in self.starts else {"status": 404}
            for name in (each["mbean"] for each in asked)
        ]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(replies).encode())

    def log_message(self, *_words):
        pass


def bean(topic, partition):
    return f"kafka.log:type=Log,name=LogStartOffset,topic={topic},partition={partition}"


@pytest.fixture
def metrics():
    """Yield the port of a broker's metrics."""
    with http.server.HTTPServer(("127.0.0.1", 0), Metrics) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_the_broker_says_where_its_logs_start(metrics, monkeypatch):
    monkeypatch.setattr(Metrics, "starts", {bean("t-a.b", 0): 0, bean("t", 12): 120})
    assert log_starts(metrics, ["t-12", "t-a.b-0"]) == [120, 0]
    assert log_starts(1, []) == []
    with pytest.raises(ValueError, match=r"the broker has no .*topic=u,partition=3: status 404"):
        log_starts(metrics, ["t-12", "u-3"])


def test_a_host_runs_the_source_with_its_python(tmp_path, monkeypatch, metrics):
    log(tmp_path / "t-0", (0, b"one"))
    monkeypatch.setattr(Metrics, "starts", {bean("t", 0): 2})
    monkeypatch.setattr(replica_logs, "DATA_DIR", str(tmp_path))
    monkeypatch.setattr(replica_logs, "AGENT_PORT", metrics)

    class Here:
        def run(self, command, *, timeout_s, stdin):
            done = subprocess.run([sys.executable, *command[1:]], input=stdin, capture_output=True, check=True)
            return SimpleNamespace(stdout=done.stdout.decode())

    found = read_digests(Here(), ["t-0", "t-9"])
    assert [(folder, each.bytes, each.start) for folder, each in found.items()] == [("t-0", 3, 2)]


@pytest.mark.parametrize(
    ("logs", "found"),
    [
        ({}, ""),
        ({"b1": ONE}, ""),
        ({"b1": ONE, "b2": ONE}, ""),
        ({"b1": ONE, "b2": ONE, "b3": OTHER}, "b3"),
        ({"b1": ONE, "b2": LogDigest("0.log", 9, "a", 0)}, "b2"),
        ({"b1": ONE, "b2": LogDigest("5.log", 4, "c", 5)}, "b2"),
        ({"b1": LATER, "b2": LogDigest("100.log", 4, "c", 120)}, ""),
        ({"b1": ONE, "b2": LATER}, "b2"),
        ({"b1": LATER, "b2": LATER}, ""),
    ],
    ids=[
        *("none", "one", "alike", "another", "shorter", "begins later", "deleted more", "starts later"),
        "both start later",
    ],
)
def test_a_follower_with_another_log_is_named(logs, found):
    assert unlike(logs) == found


def batch(base, crc, position=0):
    return (
        f"baseOffset: {base} lastOffset: {base + 4} count: 5 producerId: 1 CreateTime: 1795646771101 size: 99 "
        f"crc: {crc} isvalid: true position: {position}"
    )


@pytest.mark.parametrize(
    ("follower", "told"),
    [
        ([batch(0, 1, 7), batch(5, 2)], ""),
        ([batch(0, 1), batch(5, 9)], "at offset 5: crc 9, not crc 2"),
        ([batch(0, 1)], "at offset 5: no batch, not baseOffset 5 lastOffset 9"),
        ([batch(0, 1), batch(6, 2)], "at offset 5: baseOffset 6 lastOffset 10, not baseOffset 5 lastOffset 9"),
        ([batch(0, 1), batch(5, 2), batch(10, 3)], "at offset 10: baseOffset 10"),
    ],
    ids=["alike", "another checksum", "shorter", "another offset", "longer"],
)
def test_the_first_batch_that_differs_is_named(follower, told):
    leader = ["Dumping 0.log", batch(0, 1), batch(5, 2)]
    assert first_difference(leader, follower).startswith(told)
    assert bool(first_difference(leader, follower)) == bool(told)


class Cluster:
    """Two partitions on three brokers; `logs` has host → folder → digest, one state for each look."""

    def __init__(self, monkeypatch, *logs, isr=(1, 2, 3), live=(1, 2, 3), moving=()):
        self.logs, self.isr, self.asked = list(logs), isr, []
        self.live, self.moving = live, moving
        self.topology = SimpleNamespace(brokers=())
        self.hosts = {f"b{n}": f"b{n}" for n in (1, 2, 3)}
        monkeypatch.setattr(replica_logs, "names_by_id", lambda _brokers: {n: f"b{n}" for n in (1, 2, 3)})
        monkeypatch.setattr(replica_logs, "read_digests", self.read)
        monkeypatch.setattr(replica_logs, "_LOOK_S", 0.001)
        monkeypatch.setattr(replica_logs, "dump_log", self.dump)

    def partitions(self, _topics):
        self.now = self.logs.pop(0) if len(self.logs) > 1 else self.logs[0]
        tps = [TopicPartition("t", 0), TopicPartition("t", 1)]
        return {tp: PartitionState(tp, 2, 0, (1, 2, 3), self.isr, ()) for tp in tps}

    def brokers(self):
        return tuple(BrokerInfo(broker, None) for broker in self.live)

    def reassignments(self, _topics):
        return self.moving

    def read(self, host, folders):
        self.asked.append((host, folders))
        return {folder: self.now.get(host, {}).get(folder, ONE) for folder in folders}

    def dump(self, host, _folder):
        if host == "b1":
            raise TestbedError("no such host")
        return [batch(0, 1 if host == "b2" else 2)]


def test_logs_that_are_alike_are_read_once(monkeypatch):
    cluster = Cluster(monkeypatch, {})
    assert replica_differences(cluster, cluster, ["t"]) == ()
    assert cluster.asked == [(host, ["t-0", "t-1"]) for host in ("b2", "b1", "b3")]


def test_a_replica_that_catches_up_is_waited_for_and_the_other_partitions_are_not_read_again(monkeypatch):
    cluster = Cluster(monkeypatch, {"b3": {"t-1": OTHER}}, {})
    assert replica_differences(cluster, cluster, ["t"]) == ()
    assert cluster.asked[3:] == [(host, ["t-1"]) for host in ("b2", "b1", "b3")]


def test_a_log_that_stays_another_one_is_named_with_the_first_difference(monkeypatch):
    cluster = Cluster(monkeypatch, {"b3": {"t-1": OTHER}, "b1": {"t-0": LogDigest("0.log", 9, "c", 0)}})
    assert replica_differences(cluster, cluster, ["t"], timeout_s=0.01) == (
        "t-0: the log on b1 (9 bytes, not 10) is not that of its leader, b2, "
        "the logs could not be dumped: no such host",
        "t-1: the log on b3 is not that of its leader, b2, at offset 0: crc 2, not crc 1",
    )


def test_a_replica_that_is_not_in_sync_may_be_another(monkeypatch):
    cluster = Cluster(monkeypatch, {"b3": {"t-1": OTHER}}, isr=(1, 2))
    assert replica_differences(cluster, cluster, ["t"]) == ()


def test_a_log_that_starts_at_another_offset_is_named_with_both(monkeypatch):
    cluster = Cluster(monkeypatch, {"b3": {"t-1": LATER}})
    monkeypatch.setattr(replica_logs, "dump_log", lambda _host, _folder: [batch(0, 1)])
    assert replica_differences(cluster, cluster, ["t"], timeout_s=0.01) == (
        "t-1: the log on b3 starts at offset 120, not at 0 as on its leader, b2",
    )


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ({"isr": (1, 2)}, ("t-0 on b3", "t-1 on b3")),
        ({"isr": (1, 2, 3)}, ()),
        ({"isr": (1, 2), "live": (1, 2)}, ()),  # b3 is down: somebody ended it
        ({"isr": (1, 2), "moving": ("t-0",)}, ()),
    ],
    ids=["out of sync", "in sync", "a broker that is down", "being reassigned"],
)
def test_a_replica_of_a_live_broker_that_stays_out_of_sync_is_named(monkeypatch, state, found):
    cluster = Cluster(monkeypatch, {}, **state)
    assert left_isr(cluster, cluster, ["t"], timeout_s=0.01) == found


def test_a_replica_that_joins_the_isr_is_waited_for(monkeypatch):
    cluster = Cluster(monkeypatch, {}, isr=(1, 2))
    looks = []

    def partitions(topics):
        looks.append(topics)
        cluster.isr = (1, 2, 3) if len(looks) > 2 else (1, 2)
        return Cluster.partitions(cluster, topics)

    monkeypatch.setattr(cluster, "partitions", partitions)
    assert left_isr(cluster, cluster, ["t"]) == ()
    assert len(looks) == 3


def test_only_an_account_that_asks_for_it_has_replicas_that_are_out_of_sync(monkeypatch):
    """An incident may leave a replica out of sync: it is what the incident is about."""
    monkeypatch.setattr(replica_logs, "replica_differences", lambda *_: ())
    monkeypatch.setattr(replica_logs, "left_isr", lambda *_: ("t-0 on b3",))
    records = Records(9, 9, 0, 0, 0)
    assert with_replicas(records, None, None, ["t"]) == records
    found = with_replicas(records, None, None, ["t"], in_sync=True)
    assert found.out_of_sync == ("t-0 on b3",) and found.wrong == 0
