"""The pytest plugin, the classes of testcontainers and the export, as another project uses them, on brokers."""

import json
import os
import signal
import subprocess
import sys

import pytest
from ducktape.cluster.cluster_spec import ClusterSpec
from ducktape.cluster.json import JsonCluster
from ducktape.cluster.node_spec import NodeSpec

from testbed.provision import state as states
from testbed.wait import wait_for
from tests.containers.conftest import ROOT, cli, left_of

pytestmark = pytest.mark.containers
TESTS = """
import os
import pathlib

import pytest
from testcontainers.core.container import DockerContainer

pytestmark = pytest.mark.topology("two-brokers")

def test_hosts_are_containers(kafka_cluster, testbed):
    host = kafka_cluster.broker(1)
    assert isinstance(host, DockerContainer)
    assert host.exec(["hostname"]).output.decode().strip() == "b1"
    assert host.get_wrapped_container().labels["testbed.name"] == testbed.name
    assert f"{host.get_container_host_ip()}:{host.get_exposed_port(9092)}" in kafka_cluster.bootstrap_servers
    with testbed.admin() as admin:
        assert {broker.id for broker in admin.cluster().brokers} == {1, 2}

def test_the_testbed_is_the_same_and_serves_again(testbed):
    pathlib.Path("name-" + testbed.name).touch()
    assert testbed.shaping_differences() == []
    testbed.node("b2").stop()

def test_what_was_stopped_is_started(kafka_cluster, testbed):
    pathlib.Path("name-" + testbed.name).touch()
    with testbed.admin() as admin:
        assert {broker.id for broker in admin.cluster().brokers} == {1, 2}
    assert 0, "evidence, please"

@pytest.mark.skipif("not config.getoption('keyword')", reason="waits until it is killed")
def test_waits(testbed):
    os.mkfifo("gate")
    pathlib.Path("waiting").touch()
    pathlib.Path("gate").read_text()
"""


def start(folder, *words):
    """Start pytest in a project of its own that has the plugin."""
    (folder / "test_theirs.py").write_text(TESTS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for name in [name for name in environment if name.startswith("PYTEST_XDIST")]:
        del environment[name]
    command = [sys.executable, "-m", "pytest", "-p", "testbed.testing.plugin", "-p", "no:cacheprovider", *words]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def sessions():
    return [name for name in states.names() if name.startswith("pytest-")]


def test_a_session_reuses_its_testbed_reports_evidence_and_leaves_nothing(tmp_path):
    told, _ = start(tmp_path).communicate(timeout=180)
    assert "1 failed, 2 passed, 1 skipped" in told, told
    assert "test_what_was_stopped_is_started" in told
    for section in (": status", ": NIC shaping of b1", ": log of b2, last 40 lines"):
        assert section in told, told
    assert "the kernel's shaping is the declared one" in told
    assert "qdisc" in told
    assert "not readable" not in told
    names = [path.name.removeprefix("name-") for path in tmp_path.glob("name-*")]
    assert len(names) == 1
    assert left_of(names[0]) == []
    assert sessions() == []


def test_two_workers_have_a_testbed_each(tmp_path):
    words = ("-p", "xdist.plugin", "-n", "2", "-k", "same or stopped")
    told, _ = start(tmp_path, *words).communicate(timeout=180)
    assert "1 failed, 1 passed" in told, told
    names = sorted(path.name.removeprefix("name-") for path in tmp_path.glob("name-*"))
    assert sorted(name.split("-")[2] for name in names) == ["gw0", "gw1"]
    assert [left_of(name) for name in names] == [[], []]
    assert sessions() == []


@pytest.mark.nightly
def test_a_killed_session_is_garbage_and_its_hosts_are_ducktapes_until_then(tmp_path):
    process = start(tmp_path, "-k", "waits")
    try:
        wait_for((tmp_path / "waiting").exists, bool, 90.0, 0.1, "the session's test to wait")
    finally:
        process.send_signal(signal.SIGKILL)
        told, _ = process.communicate()
    [up] = sessions()
    exported = cli("export", "ducktape-cluster", up)
    assert exported.returncode == 0, exported.stderr + told
    cluster = JsonCluster(json.loads(exported.stdout))
    nodes = cluster.alloc(ClusterSpec([NodeSpec("linux", "two-brokers"), NodeSpec("linux")]))
    names = {"".join(node.account.ssh_capture("hostname")).strip() for node in nodes}
    for node in nodes:
        cluster.free(node)
    assert names == {"b1", "b2"}
    assert f"{up}: the run it was made for is dead; removed" in cli("gc").stdout
    assert left_of(up) == []
