"""ducktape's own cluster on a testbed's hosts, and `testbed kafkatest` on a made-up checkout."""

import json
import os
import signal
import subprocess
import sys

import pytest

from results.contract.store import Store
from testbed.wait import wait_for
from tests.containers.conftest import ROOT, cli, left_of
from tests.kafkatest.made_up import make_checkout

pytestmark = pytest.mark.containers
LIVE = """\
import socket
import time

from ducktape.mark import matrix
from ducktape.mark.resource import cluster
from ducktape.services.service import Service
from ducktape.tests.test import Test


class Hosts(Service):
    def start_node(self, node):
        pass

    def stop_node(self, node):
        pass

    def clean_node(self, node):
        node.account.ssh("sudo rm -rf /mnt/made")


class LiveTest(Test):
    @cluster(num_nodes=2)
    @matrix(wrong=[False, True])
    def test_hosts(self, wrong):
        hosts = Hosts(self.test_context, 2)
        hosts.start()
        first, second = hosts.nodes
        for node in hosts.nodes:
            assert socket.gethostbyname(node.account.hostname) == node.account.externally_routable_ip
            said = "".join(node.account.ssh_capture("id -un; hostname; getent hosts knode01 knode02"))
            assert said.startswith("ducker"), said
            for program in ("jps", "jcmd -l", "rsync --version", "killall --version", "nc -h", "less --version",
                            "sudo iptables -I INPUT -s %s -j DROP" % second.account.hostname,
                            "sudo iptables -D INPUT -s %s -j DROP" % second.account.hostname,
                            "mkdir /mnt/made", "ls /opt/kafka-dev/libs/kafka-clients-*.jar",
                            "/opt/kafka-dev/bin/kafka-run-class.sh", "ls /opt/kafka-dev/core/build/libs/*-test.jar"):
                node.account.ssh(program)
        seen = "".join(first.account.ssh_capture("ping -c 1 %s" % second.account.hostname))
        assert second.account.externally_routable_ip in seen, seen
        assert not wrong, "as it should"

    @cluster(num_nodes=1)
    def test_waits(self):
        Hosts(self.test_context, 1).start()
        open("waiting", "w").close()
        time.sleep(600)
"""


def test_a_ducktest_runs_on_an_exported_testbed(three, tmp_path):
    exported = cli("export", "ducktape-cluster", three.name)
    assert exported.returncode == 0, exported.stderr
    (tmp_path / "cluster.json").write_text(exported.stdout)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ducktape", str(ROOT / "tests/ducktests/exported_hosts.py")),
            *("--cluster", "ducktape.cluster.json.JsonCluster", "--cluster-file", "cluster.json"),
            *("--results-root", str(tmp_path / "ducktape"), "--config-file", os.devnull),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [report] = (tmp_path / "ducktape").glob("2*/report.json")
    [result] = json.loads(report.read_text())["results"]
    assert (result["test_status"], result["data"]) == ("PASS", {"hosts": ["b1", "b2", "b3"]})


@pytest.fixture
def checkout(tmp_path):
    folder = make_checkout(tmp_path / "kafka")
    (folder / "tests/kafkatest/tests/core/live_test.py").write_text(LIVE)
    return folder


@pytest.mark.nightly  # the image, the jars and the environment take minutes where they are new
def test_a_checkouts_tests_run_and_are_recorded(checkout, tmp_path):
    name, out, store = "ci-kafkatest", tmp_path / "out", tmp_path / "store"
    before = sorted(checkout.rglob("*"))
    done = cli(
        *("kafkatest", str(checkout), "live_test::LiveTest.test_hosts", "--kafka", "4.3.1", "--nic", "400mbit"),
        *("--name", name, "--out", str(out), "--store", str(store), "--json"),
        timeout_s=900,
    )
    assert done.returncode == 1, done.stderr
    tests = {each["arguments"]["wrong"]: each for each in json.loads(done.stdout)["tests"]}
    assert tests[False]["result"] == "pass", tests[False]["why"]
    assert tests[True]["result"] == "fail"
    assert "as it should" in tests[True]["why"]
    assert left_of(name) == []
    assert sorted(checkout.rglob("*")) == before
    runs = {run.parameters["argument.wrong"]: run for run in Store.open(store).scan().manifests}
    assert {wrong: run.verdict for wrong, run in runs.items()} == {"false": "pass", "true": "fail"}
    assert set(runs["false"].versions.kafka.values()) == {"4.3.1"}


@pytest.mark.nightly
def test_after_an_interruption_nothing_is_left(checkout, tmp_path):
    name, out = "ci-kafkatest-cut", tmp_path / "out"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "testbed.cli.main", "kafkatest", str(checkout), "live_test::LiveTest.test_waits"),
            *("--kafka", "4.3.1", "--name", name, "--out", str(out), "--store", str(tmp_path / "store")),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
    wait_for((out / "waiting").exists, bool, 600.0, 0.2, "the test to wait")
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=180)
    assert process.returncode == 130, told
    assert left_of(name) == []
    assert not [line for line in processes() if str(checkout) in line]


def processes():
    """Return the command line of every process of the machine."""
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
