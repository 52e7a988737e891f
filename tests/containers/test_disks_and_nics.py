"""A disk of its own size, and replication on a NIC of its own, on real brokers; what a crash leaves is found."""

import os
import signal
import subprocess
import sys

import pytest
from confluent_kafka import Producer

from testbed.errors import TestbedError
from testbed.provision import machine
from testbed.provision import state as states
from testbed.provision.machine import no_bandwidth, no_netem
from testbed.provision.testbed import Testbed
from testbed.topology import loads
from testbed.wait import wait_until
from tests.containers.conftest import ROOT, cli, left_of, links_off

pytestmark = pytest.mark.containers

NAME = "ci-own"
TEXT = """
name: own
kafka: {version: 4.3.1}
defaults:
  nics: {data0: {rate: 400mbit}, repl0: {rate: 100mbit, use: replication}}
  disk: {size: 300MB}
hosts:
  b1: {role: both}
  b2: {role: broker}
"""
RECORDS, RECORD_BYTES = 200, 50_000


@pytest.fixture(scope="module")
def own(own_state):
    testbed = Testbed.up(loads(TEXT), name=NAME, progress=print)
    yield testbed
    testbed.close()
    assert cli("down", NAME).returncode == 0
    assert left_of(NAME) == []
    assert machine.attached_devices(NAME) == {}


def received_bytes(testbed: Testbed, host: str, device: str) -> int:
    return int(testbed.hosts[host].run(f"cat /sys/class/net/{device}/statistics/rx_bytes").stdout)


def test_kafka_has_a_file_system_of_the_declared_size(own):
    for host in own.hosts.values():
        kind, size_bytes = host.run("df --output=fstype,size -B1 /var/lib/kafka | tail -1").stdout.split()
        assert kind == "ext4"
        assert 0.85 * 300e6 <= int(size_bytes) <= 300e6
        assert "lost+found" not in host.run("ls -a /var/lib/kafka").stdout.split()
    assert len(machine.attached_devices(NAME)) == 2


def test_a_full_disk_is_that_hosts_alone(own):
    b1 = own.hosts["b1"]
    # In one command: Kafka writes there, too, and is to find it full for as short as can be.
    filler = "/var/lib/kafka/../kafka/.filler"
    filled = b1.run(f"dd if=/dev/zero of={filler} bs=1M count=400; rm {filler}", check=False)
    assert "No space left on device" in filled.stderr
    assert own.hosts["b2"].run("df --output=pcent /var/lib/kafka | tail -1").stdout.strip() != "100%"


def test_replicas_are_copied_on_the_nic_for_replication(own):
    with own.admin() as admin:
        admin.create_topic("copied", {0: [1, 2]})
    before = {device: received_bytes(own, "b2", device) for device in ("data0", "repl0")}
    producer = Producer({"bootstrap.servers": ",".join(own.bootstrap), "acks": "all", "compression.type": "none"})
    for _ in range(RECORDS):
        producer.produce("copied", value=os.urandom(RECORD_BYTES), partition=0)
    assert producer.flush(60) == 0
    after = {device: received_bytes(own, "b2", device) for device in ("data0", "repl0")}
    sent = RECORDS * RECORD_BYTES
    assert sent <= after["repl0"] - before["repl0"] <= 1.3 * sent
    assert after["data0"] - before["data0"] <= 0.1 * sent


def test_both_nics_carry_what_they_declare(own):
    assert links_off(own) == {}


def test_gc_detaches_the_loop_devices_of_an_up_that_was_killed(tmp_path):
    file = tmp_path / "killed.yaml"
    file.write_text(TEXT.replace("name: own", "name: ci-killed"))
    command = [sys.executable, "-m", "testbed.cli.main", "up", str(file)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: bool(machine.attached_devices("ci-killed")), 60, 0.02, "the first loop device")
    process.send_signal(signal.SIGKILL)
    process.wait()
    told = cli("gc")
    assert told.returncode == 0, told.stderr
    assert "/dev/loop" in told.stdout
    assert left_of("ci-killed") == []
    assert machine.attached_devices("ci-killed") == {}
    assert not states.folder("ci-killed").exists()


REFUSED = "{name: ci-refused, kafka: {version: 4.3.1}, hosts: {b1: {role: both, FIELDS}}}"


@pytest.mark.parametrize(
    ("fields", "why_not", "what"),
    [
        ("nic: {rate: 1gbit}, disk: {size: 300MB, bandwidth: 50MB/s}", no_bandwidth, "a disk's bandwidth"),
        ("nic: {rate: 1gbit, delay: 20ms}", no_netem, "delay, jitter and loss"),
    ],
)
def test_what_this_kernel_cannot_is_refused_before_anything_is_made(fields, why_not, what):
    """Where it can, there is nothing to refuse: then it comes up."""
    topology = loads(REFUSED.replace("FIELDS", fields))
    if why_not():
        with pytest.raises(TestbedError, match=f"this machine cannot provide {what}, declared by b1"):
            Testbed.up(topology)
    else:
        Testbed.up(topology).down()
    assert left_of("ci-refused") == []
    assert not states.folder("ci-refused").exists()
