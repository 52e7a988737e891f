"""A load's processes against a cluster that is played: started, listened to, stopped, killed."""

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from testbed.errors import TestbedError
from testbed.wait import wait_for, wait_until
from testbed.workload.preload import audit
from testbed.workload.spec import ConsumerSpec, ProducerSpec, Size
from testbed.workload.workload import Workload

ROOT = Path(__file__).parents[2]


class Heard:
    """What a load told, by process and metric."""

    def __init__(self):
        self.samples, self.events = defaultdict(list), []

    def add(self, samples):
        for sample in samples:
            self.samples[sample.host, sample.metric].append(sample)

    def event(self, kind, name, detail):
        self.events.append((kind, name, detail))

    def newest(self, host, metric):
        found = self.samples[host, metric]
        return found[-1].value if found else 0.0


@pytest.fixture
def heard():
    return Heard()


def load(cluster, specs, heard, **more):
    return Workload(cluster.bootstrap, specs, 7, heard.add, heard.event, **more)


def wait_acked(heard, host, records):
    wait_for(lambda: heard.newest(host, "client.produce.acked"), lambda n: n >= records, 20, 0.05, f"acks of {host}")


def gone(pid):
    """Whether a process has ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_everything_is_sent_acknowledged_read_and_found(cluster, heard):
    partitions = cluster.topic("whole")
    specs = [
        ProducerSpec("producer-1", "whole", partitions, 400_000.0),
        ProducerSpec(
            "producer-2",
            "whole",
            partitions,
            100_000.0,
            sizes=(Size(100, 9), Size(3000, 1)),
            keys=8,
            skew=1.0,
            compression="lz4",
            redundancy=0.5,
            idempotence=False,
        ),
        ProducerSpec("producer-3", "whole", partitions, 100_000.0, transaction_s=0.3),
        ConsumerSpec("consumer-1", ("whole",), "readers", from_beginning=True, client={"check.crcs": "false"}),
    ]
    with load(cluster, specs, heard) as running:
        running.start()
        for name in ("producer-1", "producer-2", "producer-3"):
            wait_acked(heard, name, 300)
        running.mark("moving")
        result = running.stop()
        assert running.stop() is result
    assert result.held, [process.why for process in result.processes]
    for process in result.processes[:3]:
        assert process.sent == process.acked > 300
        assert process.failed == process.in_doubt == 0
        counted = sum(s.value for s in heard.samples[process.name, "client.produce.latency"])
        assert counted == process.sent - len(partitions)  # those that opened the connections have no due time
        assert process.cpu_cores > 0
    # The played brokers end a transaction with a batch that has no checksum.
    found = audit(cluster.bootstrap, [], result.written, client={"check.crcs": "false"}, patience_s=20)
    assert (found.lost, found.duplicated, found.reordered, found.corrupt) == (0, 0, 0, 0), found.complaints
    assert found.found == sum(process.acked for process in result.processes)
    assert heard.newest("consumer-1", "client.consume.records") > 900
    assert heard.samples["consumer-1", "client.consume.latency"]
    kinds = [kind for kind, _name, _detail in heard.events]
    assert kinds == ["load.started", "load.mark", "load.stopped"]
    assert heard.events[1][2]["producer-1"]["acked"] >= 300
    live = result.live(found)
    assert [each.name for each in live.audits] == ["producer-1", "producer-2", "producer-3"]
    assert [each.exactly_once for each in live.audits] == [True, False, True]
    assert [each.kind for each in live.processes] == ["producer"] * 3 + ["consumer"]
    [delivered] = live.deliveries
    assert (delivered.name, delivered.wrong, delivered.first) == ("consumer-1", 0, ())
    assert delivered.records == result.process("consumer-1").read == found.found
    assert delivered.checked == delivered.compared == delivered.records
    begins = result.process("consumer-1").delivered.begins
    assert sorted(begins) == [("whole", partition) for partition in partitions]  # it had a position before the load


def test_a_killed_producer_loses_nothing_that_it_told_of(cluster, heard):
    specs = [ProducerSpec("producer-1", "killed", cluster.topic("killed"), 400_000.0)]
    with load(cluster, specs, heard) as running:
        running.start()
        wait_acked(heard, "producer-1", 300)
        os.kill(running._named("producer-1").popen.pid, signal.SIGKILL)
        wait_until(lambda: bool(heard.events[1:]), 10, 0.05, "the news of its death")
        result = running.stop()
    assert heard.events[1][:2] == ("load.died", "producer-1")
    process = result.process("producer-1")
    assert not process.held
    assert not process.ended
    assert all(written.sent is None for written in result.written)
    found = audit(cluster.bootstrap, [], result.written, patience_s=20)
    assert found.expected >= 300
    assert (found.lost, found.corrupt) == (0, 0)


def test_a_killed_parent_leaves_nothing(cluster):
    partitions = cluster.topic("orphan")
    script = f"""
import time
from testbed.workload.spec import ConsumerSpec, ProducerSpec
from testbed.workload.workload import Workload
specs = [ProducerSpec("producer-1", "orphan", {partitions}, 1e5), ConsumerSpec("consumer-1", ("orphan",), "orphans")]
load = Workload({cluster.bootstrap}, specs, 1, lambda samples: None)
load.start()
print(*(load._named(name).popen.pid for name in ("producer-1", "consumer-1")), flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2
    assert not any(gone(pid) for pid in pids)
    parent.kill()
    parent.wait()
    wait_until(lambda: all(gone(pid) for pid in pids), 5, 0.05, "the end of the load's processes")


def test_a_consumer_lags_while_it_pauses_and_catches_up(cluster, heard):
    specs = [
        ProducerSpec("producer-1", "lag", cluster.topic("lag"), 200_000.0),
        ConsumerSpec("consumer-1", ("lag",), "laggards"),
    ]
    with load(cluster, specs, heard) as running:
        running.start()
        wait_for(lambda: heard.newest("consumer-1", "client.consume.records"), lambda n: n > 50, 20, 0.05, "reading")
        running.pause("consumer-1")
        lagging = "client.consume.lag"
        wait_for(lambda: heard.newest("consumer-1", lagging), lambda n: n > 150, 20, 0.05, "lag")
        running.resume("consumer-1")
        caught_up = heard.newest("producer-1", "client.produce.acked") - 20
        read = "client.consume.records"
        wait_for(lambda: heard.newest("consumer-1", read), lambda n: n > caught_up, 20, 0.05, "the lag's end")
        result = running.stop()
    slowest = max(int(s.label) for s in heard.samples["consumer-1", "client.consume.latency"])
    assert slowest > 700_000  # µs: what waited for the consumer says so
    [delivered] = result.live(audit(cluster.bootstrap, [], result.written, patience_s=20)).deliveries
    assert (delivered.wrong, delivered.first) == (0, ())
    begins = result.process("consumer-1").delivered.begins
    assert len(begins) == len(specs[0].partitions)  # it knew where it begins before the load began
    assert delivered.compared == delivered.records


def test_a_consumer_whose_partitions_are_assigned_again_begins_where_its_group_committed(cluster, heard):
    group = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "200"}
    specs = [
        ProducerSpec("producer-1", "moved", cluster.topic("moved"), 100_000.0),
        ConsumerSpec("consumer-1", ("moved",), "movers", client={"auto.commit.interval.ms": "100", **group}),
    ]
    read, acked = "client.consume.records", "client.produce.acked"
    with load(cluster, specs, heard) as running:
        running.start()
        wait_for(lambda: heard.newest("consumer-1", read), lambda n: n > 100, 20, 0.05, "reading")
        # Another member takes partitions and gives them back; it commits nothing.
        settings = {"bootstrap.servers": ",".join(cluster.bootstrap), "group.id": "movers", "enable.auto.commit": False}
        settings |= group
        other = Consumer(settings)
        other.subscribe(["moved"])
        wait_until(lambda: other.poll(0.05) is not None or bool(other.assignment()), 20, 0.01, "its assignment")
        other.close()
        sent = heard.newest("producer-1", acked)
        wait_for(lambda: heard.newest("consumer-1", read), lambda n: n > sent, 20, 0.05, "reading on")
        result = running.stop()
    begins = result.process("consumer-1").delivered.begins
    committed = [begin.lowest for of in begins.values() for session, begin in of.items() if session > 2]
    assert len(committed) >= len(specs[0].partitions)
    assert min(committed) > 0
    [delivered] = result.live(audit(cluster.bootstrap, [], result.written, patience_s=20)).deliveries
    assert (delivered.wrong, delivered.first) == (0, ())


def test_a_process_that_cannot_begin_is_named_and_none_is_left(cluster, heard):
    specs = [
        ProducerSpec("producer-1", "bad", cluster.topic("bad"), 1e5),
        ProducerSpec("producer-2", "bad", (0,), 1e5, client={"security.protocol": "nonsense"}),
    ]
    running = load(cluster, specs, heard)
    with pytest.raises(TestbedError, match="producer-2 could not begin: .*security.protocol"):
        running.start()
    assert gone(running._named("producer-1").popen.pid)
    assert gone(running._named("producer-2").popen.pid)


NOISE = """
import os, threading, time

def talk():
    while True:
        os.write(2, b"%3|1764000000.000|FAIL|rdkafka#producer-1| ")
        time.sleep(1e-4)

threading.Thread(target=talk, daemon=True).start()
"""


def test_what_a_client_logs_is_no_part_of_its_reports(cluster, heard, monkeypatch, tmp_path):
    """librdkafka writes to the error output from threads of its own, while a broker is gone."""
    (tmp_path / "sitecustomize.py").write_text(NOISE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    sizes = tuple(Size(size, 1) for size in range(100, 4000, 100))
    spec = ProducerSpec("producer-1", "noise", cluster.topic("noise"), 3e6, sizes=sizes)
    with load(cluster, [spec], heard) as running:
        running.start()
        wait_acked(heard, "producer-1", 3000)
        process = running.stop().process("producer-1")
    assert process.ended
    assert process.sent == process.acked


def test_a_rate_that_cannot_be_held_is_not_said_to_be(cluster, heard):
    spec = ProducerSpec("producer-1", "much", cluster.topic("much"), 2e9, buffer_bytes=4 << 20)
    with load(cluster, [spec], heard) as running:
        running.start()
        wait_for(lambda: heard.newest("producer-1", "client.late"), lambda late: late > 1, 20, 0.05, "lateness")
        result = running.stop()
    process = result.process("producer-1")
    assert not process.held
    assert "after it was due" in process.why
    assert process.sent < process.due
    assert process.sent == process.acked + process.in_doubt


def test_two_loads_of_one_topic_are_told_apart(cluster, heard):
    partitions, results = cluster.topic("both"), []
    for first in (1, 2):
        spec = ProducerSpec(f"producer-{first}", "both", partitions, 100_000.0)
        with load(cluster, [spec], heard, first_producer=first) as running:
            running.start()
            results.append(running.stop())
    found = audit(cluster.bootstrap, [], [each for result in results for each in result.written], patience_s=20)
    assert (found.lost, found.duplicated, found.reordered, found.corrupt) == (0, 0, 0, 0)
    assert [each.name for each in found.producers] == ["producer-1", "producer-2"]


def test_a_process_whose_parent_is_another_ends_at_once():
    order = {"spec": {}, "bootstrap": "", "producer": 1, "seed": 1, "parent": 1, "clock_offset_ns": 0, "envelopes": []}
    done = subprocess.run(
        [sys.executable, "-m", "testbed.workload.produce"],
        input=json.dumps(order) + "\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
